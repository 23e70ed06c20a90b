"""Where to compute: one name for the command line, Python and the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcond.errors import GcondError

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> torch.device:
    """The device called ``name``: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, colon, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (colon and not (number.isascii() and number.isdigit())) or name == "cpu:":
        raise GcondError(f"unknown device '{name}': choose auto, cpu or cuda:0")
    if kind == "cpu":
        return torch.device("cpu")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not found:
        raise GcondError(f"device '{name}' is not there: torch finds no CUDA device on this machine, use cpu")
    if colon and int(number) >= found:
        raise GcondError(f"device '{name}' is not there: torch finds {found}, the last is cuda:{found - 1}")
    return torch.device(name)


def use_threads(count: int | None) -> None:
    """Let torch use ``count`` CPU threads; ``None`` leaves it as it is."""
    if count is None:
        return
    if count < 1:
        raise GcondError(f"{count} threads are too few: use --threads 1 or more")
    import torch

    torch.set_num_threads(count)

"""Devices to compute on, by one name for the command line, Python and the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gcond.errors import GcondError

if TYPE_CHECKING:
    import torch


def check_device(name: str) -> None:
    """Refuse a device that :func:`choose_device` would refuse, without importing torch unless it is a GPU."""
    if not re.fullmatch(r"auto|(cpu|cuda)(:[0-9]{1,4})?", name):
        raise GcondError(f"unknown device '{name}': choose auto, cpu or cuda:0")
    if not name.startswith("cuda"):
        return
    import torch

    _, colon, number = name.partition(":")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not found:
        raise GcondError(f"device '{name}' is not there: torch finds no CUDA device on this machine, use device='cpu'")
    if colon and int(number) >= found:
        raise GcondError(f"device '{name}' is not there: torch finds {found}, the last is cuda:{found - 1}")


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """The device called ``name``: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``."""
    import torch

    name = str(name)
    check_device(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name if name.startswith("cuda") else "cpu")

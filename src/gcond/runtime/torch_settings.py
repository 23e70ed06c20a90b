"""Torch as gcond computes with it, whatever the program around it has set: gradients, float32, the CPU by default."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def usual_torch() -> Iterator[None]:
    """Compute with torch's usual settings, and leave those of the program around as they were.

    Inside ``torch.no_grad()`` and ``torch.inference_mode()`` gradients are there again, ``torch.set_default_dtype`` and
    ``torch.set_default_device`` hold no longer, and nothing is rounded by ``torch.autocast``.
    """
    import torch

    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        if torch.is_autocast_enabled("cpu"):
            stack.enter_context(torch.autocast("cpu", enabled=False))
        if torch.cuda.is_available() and torch.is_autocast_enabled("cuda"):
            stack.enter_context(torch.autocast("cuda", enabled=False))
        if torch.get_default_device().type != "cpu":  # a mode of torch's that slows every call down, so only here
            stack.enter_context(torch.device("cpu"))
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, dtype)
        yield


def with_usual_torch(function: Callable[P, T]) -> Callable[P, T]:
    """``function``, computed with :func:`usual_torch`: for what a program calls."""

    @functools.wraps(function)
    def entered(*args: P.args, **kwargs: P.kwargs) -> T:
        with usual_torch():
            return function(*args, **kwargs)

    return entered

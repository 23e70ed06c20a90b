"""What a person, not a programmer, is meant to read: one exception, and one warning."""

import sys
import warnings


class GcondError(ValueError):
    """Something a person gave us is wrong.

    The message is one sentence that names the thing and says what would be right. The command line
    prints it and exits with code 2; every other exception is a bug and keeps its traceback.
    """


class DivergedError(GcondError):
    """Training went to numbers that are not finite; who only tries something can go on with something else."""


class GcondWarning(UserWarning):
    """Something that can be used is not what was expected; the command line says the same in its own voice."""


_WITHIN = ("gcond", "contextlib", "torch")
"""Packages between a person's line and a warning: gcond, and those whose ``with`` and decorators it uses."""


def warn(text: str) -> None:
    """Say ``text`` as a :class:`GcondWarning` of the line that called gcond, however deep in it we are."""
    depth, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _WITHIN:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, GcondWarning, stacklevel=depth)


_SAID: set[str] = set()
"""The notes that this process has said. They change nothing that is computed."""


def note_once(text: str) -> None:
    """:func:`warn` of what was decided or repaired, and need not be said again by every call of this process."""
    if text not in _SAID:
        _SAID.add(text)
        warn(text)

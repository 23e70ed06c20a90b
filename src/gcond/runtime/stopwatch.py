"""Time: how it is written, and how much of it work has taken that may have been interrupted."""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from pathlib import Path

from gcond.errors import GcondError

_UNITS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}


class Stopwatch:
    """Wall and CPU seconds since it was made, and those before the work was interrupted."""

    def __init__(self) -> None:
        self.earlier = (0.0, 0.0)
        self._began = (time.perf_counter(), time.process_time())

    def spent(self) -> tuple[float, float]:
        """Wall and CPU seconds of all of it so far."""
        wall, cpu = self._began
        return self.earlier[0] + time.perf_counter() - wall, self.earlier[1] + time.process_time() - cpu


def process_began() -> float:
    """When this process was started, by the monotonic clock; now, where the system does not say."""
    now = time.monotonic()
    with contextlib.suppress(OSError, ValueError, IndexError):
        # The 22nd field, in ticks since the machine started; the second, a name in brackets, may have blanks in it.
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return now - max(0.0, uptime - ticks / os.sysconf("SC_CLK_TCK"))
    return now


def parse_seconds(value: str | float, what: str = "within") -> float:
    """``"60s"``, ``"2min"``, ``"1.5h"`` or a number of seconds, above 0; ``what`` names it in messages."""
    seconds = math.nan
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", value.lower())
        seconds = float(match[1]) * _UNITS.get(match[2], math.nan) if match else math.nan
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if not 0 < seconds < math.inf:
        raise GcondError(
            f"{what}={value!r} is not a time: write for example {what}='60s', {what}='2min' or {what}='1h'"
        )
    return seconds

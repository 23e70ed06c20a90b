"""What this process has used, and what the machine has left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import sys

from gcond.errors import GcondError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def peak_rss_mb() -> float:
    """The most memory this process has held so far, in MB (10^6 bytes)."""
    try:
        # Linux's ru_maxrss also counts what the parent held when it started this process; VmHWM does not.
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / 10**6
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 10**6


def hand_back() -> None:
    """Let the system have the memory that was freed but that the allocator keeps; a millisecond or so."""
    with contextlib.suppress(AttributeError, OSError):  # malloc_trim is glibc's own
        ctypes.CDLL(None).malloc_trim(0)


def held_bytes() -> int:
    """Memory this process holds now, after the allocator has handed back what was freed.

    Where the system does not say, it is the peak so far, which is never less.
    """
    hand_back()
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return int(peak_rss_mb() * 10**6)


def available_bytes() -> int:
    """Memory that can be taken without swapping; half of the machine's where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def parse_bytes(text: str | int) -> int:
    """``"500MB"``, ``"2 GiB"`` or a plain number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?I?B?)\s*", str(text).upper())
    unit = match and (match[2] if match[2] in _UNITS else match[2] + "B")
    if not match or unit not in _UNITS:
        raise GcondError(f"memory '{text}' is not a size: write for example 500MB or 2GB")
    return int(float(match[1]) * _UNITS[unit])

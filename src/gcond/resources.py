"""What this process has used, and what the machine has left."""

from __future__ import annotations

import os
import re
import resource
import sys

from gcond.errors import GcondError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def peak_rss_mb() -> float:
    """The most memory this process has held so far, in MB (10^6 bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 10**6


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

"""Memory: how much this process has used, and how much the machine has left."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from gcond.errors import GcondError

SAFE_SHARE = 0.75
"""Of the memory that is free, what may be taken: the rest is left to other programs."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def peak_rss_mb() -> float:
    """The most memory this process has held so far, in MB (10^6 bytes)."""
    # Linux's ru_maxrss also counts what the parent held when it started this process; VmHWM does not.
    if (peak := _said_by_linux("/proc/self/status", "VmHWM:")) is not None:
        return peak / 10**6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 10**6


def reset_peak_rss() -> None:
    """Let :func:`peak_rss_mb` count from now on, where the system can; elsewhere it goes on from the start."""
    hand_back()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def hand_back() -> None:
    """Let the system have the memory that was freed but that the allocators keep; a millisecond or so."""
    if (arrow := sys.modules.get("pyarrow")) is not None:  # it has one of its own
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # malloc_trim is glibc's own
        ctypes.CDLL(None).malloc_trim(0)


def reuse_memory() -> None:
    """Let the allocator keep what is freed for the next tensor of that size, for a program that trains for long.

    By default glibc maps a large tensor anew each time, and the kernel clears every page of it: loops over
    tensors of a few megabytes take up to twice as long. It holds for the whole process, so it is for programs
    to decide and not for the library; :func:`hand_back` still gives memory back.
    """
    with contextlib.suppress(AttributeError, OSError):  # mallopt is glibc's own
        libc = ctypes.CDLL(None)
        # M_MMAP_THRESHOLD: the largest tensor that is not mapped on its own; some versions refuse more than 32 MB
        _ = libc.mallopt(-3, 2**30) or libc.mallopt(-3, 2**25)
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: how much may lie free


def map_large_tensors() -> None:
    """Map large tensors one by one again, so that what is freed is the system's at once: the opposite of
    :func:`reuse_memory`, for a graph that is worked on within a limit.

    Tensors of up to 16 MB, as those of a training on a small graph, are still kept for the next.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 2**24)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**26)  # M_TRIM_THRESHOLD


def held_bytes() -> int:
    """Memory this process holds now, after the allocator has handed back what was freed.

    What nothing but a ring of references holds is freed first: inputs and what was made of them are such rings. Where
    the system does not say, it is the peak so far, which is never less.
    """
    gc.collect()
    hand_back()
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return int(peak_rss_mb() * 10**6)


def available_bytes() -> int:
    """Memory that can be taken without swapping, or without breaking the limit of a container."""
    return min([_machine_has_left(), *_groups_have_left()])


def _machine_has_left() -> int:
    """The free memory that the system reports, or half of the machine's memory where it does not."""
    left = _said_by_linux("/proc/meminfo", "MemAvailable:")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if left is None else left


def _said_by_linux(file: str, key: str) -> int | None:
    """The bytes that one line of a file of the kernel tells in kB."""
    with contextlib.suppress(OSError), open(file) as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)
    return None


def _groups_have_left(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """The bytes left to each control group of this process; Linux limits containers and jobs by such groups.

    ``own`` has one line per hierarchy, ``number:controllers:path``; version 2 is the one without a controller. A limit
    on a group also holds for the groups inside it. Inside a container the path may be that of the host and lead
    nowhere; the container's own group is then at the root.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            base, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base, names = root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = Path(path.lstrip("/"))
        for place in (base / group, *(base / parent for parent in group.parents)):
            if (left := _group_has_left(place, *names)) is not None:
                yield left


def _group_has_left(group: Path, limit: str, used: str, cache: str) -> int | None:
    """The limit less what is in use; file pages that nobody has looked at lately are let go of when needed."""
    try:
        most, now = int((group / limit).read_text()), int((group / used).read_text())
        held = dict(line.split(maxsplit=1) for line in (group / "memory.stat").read_text().splitlines())
        return max(0, most - now + int(held.get(cache, 0)))
    except (OSError, ValueError):  # not there, not readable, or "max": no limit
        return None


def parse_bytes(text: str | int) -> int:
    """``"500MB"``, ``"2 GiB"`` or a plain number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?I?B?)\s*", str(text).upper())
    unit = match and (match[2] if match[2] in _UNITS else match[2] + "B")
    if not match or unit not in _UNITS:
        raise GcondError(f"memory '{text}' is not a size: write for example 500MB or 2GB")
    return int(float(match[1]) * _UNITS[unit])

"""Files that went bad: a byte of the header changed, and what a reader says about it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from gcond.errors import GcondError


def header_length(whole: bytes) -> int:
    """Where the tensors of a safetensors file start."""
    return 8 + struct.unpack("<Q", whole[:8])[0]


def damaged_headers(whole: bytes) -> Iterator[bytes]:
    """``whole`` with one byte of its header changed, each to anything.

    The letter of a type (F32) is also changed to that of each other: such a file is whole, but its tensors are not
    what they were.
    """
    stream = np.random.default_rng(0)
    for position in range(header_length(whole)):
        letters = b"FIUC" if whole[position] in b"FIUC" else b""
        for byte in {int(stream.integers(0, 256)), *letters} - {whole[position]}:
            yield whole[:position] + bytes([byte]) + whole[position + 1 :]


def damaged_tensors(whole: bytes) -> Iterator[bytes]:
    """``whole`` with one byte of its tensors changed, every fifth in turn."""
    stream = np.random.default_rng(0)
    for position in range(header_length(whole), len(whole), 5):
        yield whole[:position] + bytes([int(stream.integers(0, 256))]) + whole[position + 1 :]


def sentence(read: Callable[[Path], object], path: Path) -> str | None:
    """What ``read`` refuses ``path`` with, or nothing if it takes it; any other exception goes on."""
    try:
        read(path)
    except GcondError as error:
        return str(error)
    return None

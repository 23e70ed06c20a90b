"""A matrix of small whole numbers in few bytes: written and read here and nowhere else.

Each number is a symbol (:func:`_symbols`), and of large ones a few bits more. Symbols are written by an entropy coder
(:mod:`gcond.condensed.coded_symbols`) that spends few bits on what is likely. What is likely is learned from what was
written before, so nothing about it is in the file: words that were frequent in the rows above, and most of all in the
last few, are expected again. All of that is integer arithmetic, the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcond.condensed.coded_symbols import TOTAL, Reader, Writer
from gcond.errors import GcondError

Whole = NDArray[np.int64]

PLAIN = 8
"""Magnitudes below it are symbols of their own; above, each half of an octave is one."""
MOST = 2**20
"""Magnitudes are below it."""
BLOCK = 512
"""Places between two looks at what is likely, or more, so that there are at most 1,024 looks."""

# Thresholds between contexts, of a magnitude's mean in 64ths: over all rows above, and over the last ones.
_EVER = np.array([1, 2, 4, 7, 11, 17, 26, 39, 58, 87, 130, 200])
_LATELY = np.array([1, 8, 20, 40, 70, 120, 210])


def pack_levels(levels: Whole) -> dict[str, NDArray[np.uint8]]:
    """Whole numbers [n, d], of magnitudes below :data:`MOST`, as bytes: ``codes``, and ``rest`` of large ones."""
    signed = bool((levels < 0).any())
    symbols, extra, widths = _symbols(levels.reshape(-1), signed=signed)
    count = _count(int(np.abs(levels).max()), signed=signed)
    model, writer = _Likely(len(levels), levels.shape[1], count), Writer(levels.size)
    for start, stop in model.blocks():
        context = model.contexts(start, stop)
        writer.add(model.bounds(), context, symbols[start:stop])
        model.learn(start, stop, context, symbols[start:stop], levels.reshape(-1)[start:stop])
    return {"codes": writer.bytes(), "rest": _pack_bits(extra, widths)}


def unpack_levels(
    codes: NDArray[np.uint8], rest: NDArray[np.uint8], rows: int, columns: int, *, largest: int, signed: bool
) -> Whole:
    """The reverse of :func:`pack_levels`; bytes that cannot be of such a matrix are refused.

    ``largest`` is the largest magnitude, and ``signed`` whether any number is negative.
    """
    reader = Reader(codes, rows * columns)
    model = _Likely(rows, columns, _count(largest, signed=signed))
    levels = np.zeros(rows * columns, np.int64)
    bits, used = np.unpackbits(rest), 0
    for start, stop in model.blocks():
        context = model.contexts(start, stop)
        symbols = reader.take(model.bounds(), context)
        lowest, widths = _lowest(symbols, signed=signed)
        needed = int(widths.sum())
        if used + needed > len(bits):
            raise GcondError("x.rest is shorter than its entries: the file is damaged")
        extra = _unpack_bits(bits[used : used + needed], widths)
        used += needed
        negative = (symbols & 1 == 1) if signed else np.zeros(len(symbols), bool)
        levels[start:stop] = np.where(negative, -1, 1) * (lowest + extra)
        model.learn(start, stop, context, symbols, levels[start:stop])
    reader.end()
    return levels.reshape(rows, columns)


class _Likely:
    """How likely each symbol is at a place, by the mean magnitudes of its column in the rows above."""

    def __init__(self, rows: int, columns: int, count: int) -> None:
        self._places, self._columns = rows * columns, columns
        self._ever = np.zeros(columns, np.int64)
        self._lately = np.zeros(columns, np.int64)
        self._sign = np.zeros(columns, np.int64)
        self._above = np.zeros(columns, np.int64)
        contexts = 3 * (len(_EVER) + 1) * (len(_LATELY) + 1)
        self._counts = np.zeros((contexts, count), np.int64)
        self._overall = np.maximum(1, 32 >> np.minimum(np.arange(count), 5))

    def blocks(self) -> list[tuple[int, int]]:
        """From and to which place each block goes."""
        size = max(BLOCK, -(-self._places // 1024))
        return [(start, min(start + size, self._places)) for start in range(0, self._places, size)]

    def contexts(self, start: int, stop: int) -> Whole:
        """The context of each place of a block."""
        ever = np.searchsorted(_EVER, 64 * self._ever // np.maximum(1, self._above), "right")
        lately = np.searchsorted(_LATELY, self._lately // 4, "right")
        sign = np.where(self._sign < 0, 1, 0) + np.where(self._above == 0, 2, 0)
        context = (np.minimum(sign, 2) * (len(_EVER) + 1) + ever) * (len(_LATELY) + 1) + lately
        found: Whole = context[np.arange(start, stop) % self._columns]
        return found

    def bounds(self) -> Whole:
        """Of each context, the shares of :data:`TOTAL` below each symbol: [contexts, symbols + 1]."""
        prior = 128 * self._overall // self._overall.sum()
        weight = 64 * self._counts + prior
        count = weight.shape[1]
        shares = 1 + weight * (TOTAL - count) // np.maximum(1, weight.sum(1, keepdims=True))
        shares[:, 0] += TOTAL - shares.sum(1)
        return np.concatenate([np.zeros((len(shares), 1), np.int64), shares.cumsum(1)], 1)

    def learn(self, start: int, stop: int, context: Whole, symbols: Whole, levels: Whole) -> None:
        """Take note of a block's symbols and levels."""
        np.add.at(self._counts, (context, symbols), 1)
        self._overall += np.bincount(symbols, minlength=len(self._overall))
        while start < stop:
            column = start % self._columns
            length = min(stop - start, self._columns - column)
            seen, levels = levels[:length], levels[length:]
            there = slice(column, column + length)
            size = np.minimum(np.abs(seen), PLAIN)
            self._ever[there] += size
            self._lately[there] = self._lately[there] * 3 // 4 + 64 * size
            self._sign[there] += np.sign(seen)
            self._above[there] += 1
            start += length


def _symbols(levels: Whole, *, signed: bool) -> tuple[Whole, Whole, Whole]:
    """The symbol of each level, what is left of its magnitude, and in how many bits that is written."""
    size = np.abs(levels)
    octave = np.zeros_like(size)
    for bit in range(3, MOST.bit_length()):
        octave += size >= 1 << bit
    octave += 2  # of magnitudes from PLAIN on, the place of the highest bit
    width = np.where(size < PLAIN, 0, octave - 1)
    symbol = np.where(size < PLAIN, size, PLAIN + 2 * (octave - 3) + (size >> np.maximum(octave - 1, 0) & 1))
    extra = size & (1 << width) - 1
    if signed:
        symbol = 2 * symbol - (levels < 0)
    return symbol, np.where(size < PLAIN, 0, extra), width


def _lowest(symbols: Whole, *, signed: bool) -> tuple[Whole, Whole]:
    """The least magnitude that each symbol stands for, and the bits that are left of it."""
    plain = (symbols + 1) // 2 if signed else symbols
    octave = 3 + (plain - PLAIN) // 2
    width = np.where(plain < PLAIN, 0, octave - 1)
    lowest = np.where(plain < PLAIN, plain, 2 + (plain - PLAIN) % 2 << width)
    return lowest, width


def _count(largest: int, *, signed: bool) -> int:
    """The number of symbols that there are for magnitudes up to ``largest``."""
    return int(_symbols(np.array([largest]), signed=signed)[0][0]) + 1


def _pack_bits(numbers: Whole, widths: Whole) -> NDArray[np.uint8]:
    """The lowest bits of each number, as many as its width, one after the other from the highest."""
    which = np.repeat(np.arange(len(numbers)), widths)
    return np.packbits((numbers[which] >> _places_of_bits(widths) & 1).astype(np.uint8))


def _unpack_bits(bits: NDArray[np.uint8], widths: Whole) -> Whole:
    which = np.repeat(np.arange(len(widths)), widths)
    numbers = np.zeros(len(widths), np.int64)
    np.add.at(numbers, which, bits.astype(np.int64) << _places_of_bits(widths))
    return numbers


def _places_of_bits(widths: Whole) -> Whole:
    """The power of two that each of the bits stands for."""
    ends = np.repeat(widths.cumsum(), widths)
    found: Whole = ends - 1 - np.arange(int(widths.sum()))
    return found

"""Symbols in about as many bits as they are unlikely: asymmetric numeral systems (Duda 2013), many at a time.

A state, a whole number from 2¹⁶ to below 2³², takes up one symbol after the other. With a symbol whose share of
:data:`TOTAL` is f it grows by TOTAL / f, and before it would be too large its lowest 16 bits go out as a word. What was
written last is read first, so symbols are written from the last one to the first. One state takes one symbol at a time;
here a row of them does, so that each step is a few operations on arrays. How many there are follows from the number of
symbols.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcond.errors import GcondError

SHIFT = 14
TOTAL = 1 << SHIFT
"""Shares of symbols are whole parts of this."""

_LEAST = 1 << 16
_STEPS = 13
"""Symbols that each state takes are at most about 2 to this."""

Whole = NDArray[np.int64]


def _states(symbols: int) -> int:
    return max(1, symbols >> _STEPS)


class Writer:
    """Takes blocks of symbols from the first to the last, and writes them at the end."""

    def __init__(self, symbols: int) -> None:
        self._states = _states(symbols)
        self._blocks: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []

    def add(self, bounds: Whole, context: Whole, symbols: Whole) -> None:
        """A block of ``symbols``, each in its ``context``, a row of ``bounds``: the shares below each symbol."""
        low = bounds[context, symbols]
        self._blocks.append((low.astype(np.int32), (bounds[context, symbols + 1] - low).astype(np.int32)))

    def bytes(self) -> NDArray[np.uint8]:
        """All blocks: the states, and then the words."""
        states = np.full(self._states, _LEAST, np.int64)
        words: list[Whole] = []
        for lows, shares in reversed(self._blocks):
            for start in reversed(range(0, len(lows), self._states)):
                low, share = lows[start : start + self._states], shares[start : start + self._states].astype(np.int64)
                now = states[: len(low)]
                full = now >= share << 32 - SHIFT
                words.append(now[full] & 0xFFFF)
                now = np.where(full, now >> 16, now)
                times, left = np.divmod(now, share)
                states[: len(low)] = (times << SHIFT) + left + low
        stream = np.concatenate(words[::-1]).astype("<u2") if words else np.zeros(0, "<u2")
        return np.frombuffer(states.astype("<u4").tobytes() + stream.tobytes(), np.uint8)


class Reader:
    """Gives the blocks back in the same order."""

    def __init__(self, codes: NDArray[np.uint8], symbols: int) -> None:
        count = _states(symbols)
        if len(codes) < 4 * count or len(codes) % 2:
            raise GcondError(f"x.codes is {len(codes)} bytes, which is too few or odd: the file is damaged")
        self._states = np.frombuffer(codes[: 4 * count].tobytes(), "<u4").astype(np.int64)
        self._words = np.frombuffer(codes[4 * count :].tobytes(), "<u2").astype(np.int64)
        self._used = 0

    def take(self, bounds: Whole, context: Whole) -> Whole:
        """The next symbols, one for each ``context``, a row of ``bounds``."""
        found = np.empty(len(context), np.int64)
        count = len(self._states)
        for start in range(0, len(context), count):
            here = context[start : start + count]
            now = self._states[: len(here)]
            slot = now & TOTAL - 1
            symbol = (bounds[here, 1:] <= slot[:, None]).sum(1)
            low = bounds[here, symbol]
            now = (bounds[here, symbol + 1] - low) * (now >> SHIFT) + slot - low
            short = np.flatnonzero(now < _LEAST)
            if self._used + len(short) > len(self._words):
                raise GcondError("x.codes ends before its entries do: the file is damaged")
            now[short] = now[short] << 16 | self._words[self._used : self._used + len(short)]
            self._used += len(short)
            self._states[: len(here)] = now
            found[start : start + count] = symbol
        return found

    def end(self) -> None:
        """Refuse bytes that go on after the last block, or that no writer has begun."""
        if self._used != len(self._words) or (self._states != _LEAST).any():
            raise GcondError("x.codes does not end with its entries: the file is damaged")

"""Compaction: how few entries and how few bits the features of a condensed graph are held in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcond.condensed.coded_levels import MOST
from gcond.errors import GcondError

Bits = Literal[4, 8, 16, 32]

MOST_PLACES = 2**28
"""Features in all, zeros included, that may be compacted: a file that claims more is damaged, and a few bytes of it
would take memory out of all proportion."""

SMALLEST_STEP, LARGEST_STEP = 2.0**-100, 2.0**100
"""Between these, float32 multiples of a step are what they should be."""

ROUNDED_UP = 0.4
"""The part of a step from which on a number goes to the next one: less often than to the nearest, since most numbers
are small and zeros take the fewest bits."""

BYTE_LABELS = 64
"""Up to so many classes, soft labels are counted in 255ths; with more of them a share would be too few of these."""


@dataclass(frozen=True)
class Compaction:
    """The form in which a condensed graph is held in its file.

    4 and 8 bits are levels between 0 and the largest entry of a row, closer together near 0 (squares), because a row
    has few large entries and many small ones; 16 are half floats in units of that largest entry, so that features of
    any scale survive; 32 are left as they are. Below 32, soft labels and weights of edges are rounded as well.

    With a step entries are whole multiples of it instead, and of each as many bits as it needs by how likely it is:
    for the same loss about half of the bytes.
    """

    entries: int | None = None
    """Entries that each row keeps, its largest by magnitude; ``None`` keeps all."""
    bits: Bits = 8
    """Bits of an entry."""
    step: float | None = None
    """What entries are multiples of; it takes the place of :attr:`bits`, which are then 8."""

    def __post_init__(self) -> None:
        whole = isinstance(self.entries, int) and not isinstance(self.entries, bool)
        if self.entries is not None and not (whole and self.entries >= 1):
            raise GcondError(f"entries={self.entries!r} is no number of entries per row: give 1 or more")
        if isinstance(self.bits, bool) or self.bits not in get_args(Bits):
            raise GcondError(f"bits={self.bits!r} cannot be: give {', '.join(map(str, get_args(Bits)))}")
        if self.step is not None:
            if not (isinstance(self.step, float) and SMALLEST_STEP <= self.step <= LARGEST_STEP):
                raise GcondError(f"step={self.step!r} cannot be: give {SMALLEST_STEP:.0e} to {LARGEST_STEP:.0e}")
            if self.bits != 8:
                raise GcondError("a step takes the place of bits: give one of them")

    def __str__(self) -> str:
        kept = f"{'all' if self.entries is None else f'{self.entries:,}'} entries a row"
        return f"{kept}, {self.bits} bits each" if self.step is None else f"{kept}, in steps of {self.step:.3g}"

    def levels(self, signed: bool) -> int:
        """Levels above 0, of 4 and 8 bits."""
        return 2 ** (self.bits - signed) - 1


class Levels(NamedTuple):
    """The entries of rows in units of each row's own scale."""

    scale: NDArray[np.float32]
    """[n]: the largest magnitude of each row."""
    codes: NDArray[np.int16 | np.float16]
    """[n, d], 0 where there is nothing: levels of 4 or 8 bits, or half floats."""


def cut(x: Tensor, entries: int | None) -> Tensor:
    """``x`` [n, d] with all but the ``entries`` largest magnitudes of each row set to zero.

    What is left keeps its values: rows that were scaled up to their old sum trained worse. It is differentiable, the
    gradient of what is cut being zero.
    """
    if entries is None or entries >= x.shape[1]:
        return x
    kept = x.detach().abs().topk(entries, dim=1, sorted=False).indices
    return torch.where(torch.zeros_like(x, dtype=torch.bool).scatter_(1, kept, True), x, 0.0)


def compacted(x: Tensor, compaction: Compaction) -> Tensor:
    """``x`` float32 [n, d] cut and rounded: just what the file gives back, so that doing it again changes nothing.

    A sign takes a bit of every entry. Where features would lose less by the loss of all negative ones, and none of
    these is the largest of its row, they go.
    """
    shorter = cut(x, compaction.entries) + 0.0  # there is no negative zero in the file
    if compaction.step is not None:
        return from_steps(to_steps(shorter, compaction.step), compaction.step)
    if compaction.bits == 32:
        return shorter
    rounded = from_levels(to_levels(shorter, compaction), compaction, signed=is_signed(shorter))
    if not is_signed(shorter):
        return rounded
    positive = compacted(x.clamp(min=0), compaction)
    unsigned = not is_signed(rounded)  # none of its negative numbers is left, so it needs no sign
    small = bool((x.amax(1) >= -x.amin(1)).all())
    return positive if unsigned or (small and _distance(positive, x) <= _distance(rounded, x)) else rounded


def _distance(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other).square().sum())


def is_signed(x: Tensor) -> bool:
    """Whether levels must tell positive from negative."""
    return bool((x < 0).any())


def to_levels(x: Tensor, compaction: Compaction) -> Levels:
    """The nearest levels of ``x``, for fewer than 32 bits."""
    scale = x.abs().amax(1).numpy()
    unit = x.double().numpy() / np.where(scale == 0, 1, scale).astype(np.float64)[:, None]
    if compaction.bits == 16:
        return Levels(scale, unit.astype(np.float16))
    steps = compaction.levels(is_signed(x))
    return Levels(scale, (np.sign(unit) * np.rint(np.sqrt(np.abs(unit)) * steps)).astype(np.int16))


def from_levels(found: Levels, compaction: Compaction, *, signed: bool) -> Tensor:
    """The reverse of :func:`to_levels`."""
    unit = found.codes.astype(np.float64)
    if compaction.bits < 16:
        unit = np.sign(unit) * (unit / compaction.levels(signed)) ** 2
    return torch.from_numpy((found.scale.astype(np.float64)[:, None] * unit).astype(np.float32) + np.float32(0))


def to_steps(x: Tensor, step: float) -> NDArray[np.int64]:
    """``x`` in whole multiples of ``step``."""
    times = np.floor(np.abs(x.double().numpy()) / step + ROUNDED_UP)
    if times.max(initial=0) >= MOST:
        largest = float(x.abs().max())
        raise GcondError(
            f"a step of {step:g} is too small for entries up to {largest:g}: up to {MOST:,} steps can be held"
        )
    found: NDArray[np.int64] = np.sign(x.numpy()).astype(np.int64) * times.astype(np.int64)
    return found


def from_steps(steps: NDArray[np.int64], step: float) -> Tensor:
    """The reverse of :func:`to_steps`."""
    return torch.from_numpy((steps * step).astype(np.float32) + np.float32(0))


def relative_step(x: Tensor, share: float) -> float:
    """The step that is ``share`` of the root mean square of ``x``; ``share`` itself where all of ``x`` is zero."""
    return share * (math.sqrt(float(x.double().square().mean())) or 1.0)  # zeros are multiples of any step


def label_parts(classes: int) -> int:
    """The number of equal parts that a soft label is divided into."""
    return 2**8 - 1 if classes <= BYTE_LABELS else 2**16 - 1


def rounded_labels(y: Tensor) -> Tensor:
    """Soft labels [n, C] in whole parts (:func:`label_parts`) that add up to 1, by the largest remainder."""
    parts = label_parts(y.shape[1])
    exact = y.double() / y.double().sum(1, keepdim=True) * parts
    whole = exact.floor()  # a whole number that came out a little below itself has the largest remainder of all
    spare = (parts - whole.sum(1, keepdim=True)).round()
    rank = (whole - exact).argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    return ((whole + (rank < spare)) / parts).float()


def rounded_weights(weight: Tensor) -> Tensor:
    """Weights of edges [E] as half floats in units of the largest."""
    return compacted(weight[None], Compaction(bits=16))[0] if len(weight) else weight

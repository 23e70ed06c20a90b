"""Labels in a table of nodes: words or whole numbers of any kind, and the class id of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcond.data.table_file import Table
from gcond.errors import GcondError

if TYPE_CHECKING:
    import pyarrow


def class_ranks(words: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """The class id of each distinct label, the names where they are not simply 0 to C - 1, and what to note."""
    numbers = _as_integers(words)
    if numbers is None:
        names = tuple(sorted(words))
        return {word: rank for rank, word in enumerate(names)}, names, ()
    distinct = sorted(set(numbers))
    place = {number: rank for rank, number in enumerate(distinct)}
    ranks = {word: place[number] for word, number in zip(words, numbers, strict=True)}
    if distinct == list(range(len(distinct))):
        return ranks, (), ()
    note = f"the {len(distinct)} labels were numbered 0 to {len(distinct) - 1} in order"
    if -1 in distinct:  # elsewhere it often means unlabelled
        note += ", and -1 is one of them: leave a label empty where there is none"
    return ranks, tuple(map(str, distinct)), (note,)


def whole_numbers(nodes: Table, column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Booleans, and numbers that a missing value turned into floats, as integers; NaN is unlabelled."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        return column.cast(pa.int64())
    column = pc.if_else(pc.is_nan(column), None, column.cast(pa.float64()))
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise GcondError(f"the column 'label' of '{nodes.file}' has labels that are not whole numbers") from None


def _as_integers(words: Sequence[str]) -> list[int] | None:
    """``1``, ``+1`` and ``1.0`` (what a missing value turns whole numbers into) as integers, if all are such."""
    numbers = []
    for word in words:
        whole, _, fraction = word.partition(".")
        digits = whole[1:] if whole.startswith(("-", "+")) else whole
        if not digits.isascii() or not digits.isdigit() or fraction.strip("0") or len(digits) > 18:
            return None
        numbers.append(int(whole))
    return numbers

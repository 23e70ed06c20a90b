"""Names that others gave, as they may be shown: data sets, classes and methods are called whatever people like."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from gcond.condensed import CondensedGraph
from gcond.runtime.plain_text import printable

T = TypeVar("T")


def clean(text: str) -> str:
    """``text`` with control characters spelled as everywhere (:func:`printable`), so that no two names look alike.

    Line breaks, and what else cannot be seen, become a space.
    """
    return "".join(letter if letter.isprintable() else " " for letter in printable(text))


def cleaned(value: T) -> T:
    """``value`` with every text in it cleaned, at any depth of collections and dataclasses; tensors stay."""
    found: Any = value
    if isinstance(value, str):
        found = clean(value)
    elif isinstance(value, list | tuple):
        found = type(value)(cleaned(part) for part in value)
    elif isinstance(value, dict):
        found = {cleaned(key): cleaned(part) for key, part in value.items()}
    elif isinstance(value, CondensedGraph):
        found = dataclasses.replace(value, provenance=cleaned(value.provenance))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        texts = {field.name: cleaned(getattr(value, field.name)) for field in dataclasses.fields(value)}
        found = dataclasses.replace(value, **texts)
    return found


def class_labels(names: Sequence[str], count: int) -> list[str]:
    """A name for each of ``count`` classes: ``class 3`` where ``names`` are of other classes or say nothing."""
    known = names if len(names) == count else [""] * count
    return [clean(name).strip() or f"class {label}" for label, name in enumerate(known)]


def with_class_names(small: CondensedGraph, names: Sequence[str]) -> CondensedGraph:
    """``small`` with ``names`` for its classes, if they are as many and it does not know them itself."""
    made = small.provenance
    if made is None or made.class_names or len(names) != made.num_classes:
        return small
    return dataclasses.replace(small, provenance=dataclasses.replace(made, class_names=tuple(names)))

"""Words of the command line that hold several things: lists with commas, and ``key=value``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gcond.errors import GcondError


def parse_list(text: str, option: str, what: str, choices: Iterable[str] = ()) -> list[str]:
    """``a,b`` from ``option`` as a list, each part once; refused where it names no ``what``."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        known = ", ".join(choices)
        raise GcondError(f"{option} names no {what}: {f'choose among {known}' if known else 'give some with commas'}")
    return parts


def parse_assignments(pairs: Iterable[str]) -> dict[str, str]:
    """``["key=value", …]``, from ``--set`` and the like; of a key that is given twice the last counts."""
    return dict(_divided(pairs, "--set takes key=value"))


def parse_grid(pairs: Iterable[str]) -> dict[str, list[str]] | None:
    """``["hidden=16,32", …]``, from ``--grid``; ``None`` where there is none. A setting may be named twice."""
    form = "--grid takes setting=value,value"
    grid: dict[str, list[str]] = {}
    for key, values in _divided(pairs, form):
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not listed:
            raise GcondError(f"{form}, and '{key}={values}' is not of that form")
        grid.setdefault(key, []).extend(listed)
    return grid or None


def _divided(pairs: Iterable[str], form: str) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise GcondError(f"{form}, and '{pair}' is not of that form")
        yield key, value

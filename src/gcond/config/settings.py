"""Values from outside, made into settings: the frozen dataclasses of methods, models and training."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from gcond.config.registry import suggest
from gcond.errors import GcondError

T = TypeVar("T")


def build(cls: type[T], values: Mapping[str, Any], what: str) -> T:
    """Check ``values`` against the fields of the dataclass ``cls`` and build it.

    Text is accepted wherever it spells the field's type, so the command line, TOML and Python share
    one path. ``what`` names the thing in messages, for example ``method 'herding'``.
    """
    from pydantic import TypeAdapter, ValidationError  # takes a while, and much is refused without it

    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            known = f"its settings are {', '.join(fields)}" if fields else "it has no settings"
            raise GcondError(f"{what} has no setting '{key}'{suggest(key, fields)}: {known}")
    try:
        settings = TypeAdapter(cls).validate_python({key: _listed(fields[key], value) for key, value in values.items()})
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # said by the dataclass itself, of several fields or of one that it names
            raise GcondError(f"{what}: {first['msg'].removeprefix('Value error, ')}") from None
        where = first["loc"][0]
        # A field of more than one type has a reason for each.
        reasons = dict.fromkeys(each["msg"] for each in error.errors() if each["loc"][:1] == (where,))
        reason = ", or ".join(text[:1].lower() + text[1:] for text in reasons)
        raise GcondError(f"{what}: setting {where}={first['input']!r} is not usable: {reason}") from None
    for key, value in as_dict(settings).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise GcondError(f"{what}: setting {key}={value} is not usable: it must be a finite number")
    return settings


def spelled(name: str, settings: Any) -> str:
    """``name``, and in brackets those of its ``settings`` that are not the usual ones."""
    usual = as_dict(type(settings)())
    changes = ", ".join(f"{key}={value}" for key, value in as_dict(settings).items() if value != usual[key])
    return f"{name} ({changes})" if changes else name


def whole_number(value: Any, what: str, least: int | None = None) -> int:
    """``value`` as an int, refused unless it is one (of at least ``least``)."""
    try:
        number = operator.index(value) if not isinstance(value, bool) else None
    except TypeError:
        number = None
    if number is None:
        raise GcondError(f"{what}={value!r} is not a whole number")
    if least is not None and number < least:
        raise GcondError(f"{what}={number} is too small: use {least} or more")
    return number


LATER: Mapping[str, Any] = MappingProxyType({"later": True})
"""Metadata of a field that came later: where it is the default, nothing is another than it was without it."""


def identity(settings: object) -> dict[str, Any]:
    """:func:`as_dict` for fingerprints: without :data:`LATER` fields at their default, so earlier work is found."""
    fields = {field.name: field for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    return {
        key: value
        for key, value in as_dict(settings).items()
        if not fields[key].metadata.get("later") or value != fields[key].default
    }


def as_dict(settings: object) -> dict[str, Any]:
    """The settings as plain data, for provenance and JSON."""
    values = dataclasses.asdict(settings)  # type: ignore[call-overload]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _listed(field: dataclasses.Field[Any], value: Any) -> Any:
    """A field of several values may be given as text with commas, as the command line does: ``10,5``."""
    several = str(field.type).startswith("tuple")
    return value.split(",") if several and isinstance(value, str) else value

"""Settings as people read them: the name, type, default and attribute docstring of every field of a settings dataclass.

The dataclass is the one place of truth: ``gcond methods NAME``, ``gcond models NAME`` and the settings reference of the
documentation are made from here.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}


@dataclasses.dataclass(frozen=True)
class SettingText:
    """One setting as people read it."""

    name: str
    type: str
    """The values that may be given: ``whole number``, ``number or auto``, or the choices, ``sgc, gcn or mlp``."""
    default: Any
    """``None`` where there is none, or where it is none."""
    text: str
    """Its meaning and where its default comes from: the docstring under the field, on one line."""


@cache
def explain(cls: type) -> tuple[SettingText, ...]:
    """Every field of the dataclass ``cls`` in order; inherited ones too, unless ``cls`` says it in its own words."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts |= _field_docstrings(base)
    types_of = get_type_hints(cls)
    return tuple(
        SettingText(field.name, _spell(types_of[field.name]), _default(field), texts.get(field.name, ""))
        for field in dataclasses.fields(cls)
    )


def _field_docstrings(cls: type) -> dict[str, str]:
    """The text right below each annotated name in the body of ``cls``; nothing where its source is not at hand."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):  # built in, or typed at a prompt
        return {}
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = " ".join(text.split())
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _spell(kind: Any) -> str:
    """``Literal["a", "b"]`` as ``a or b``; ``int | None`` as ``whole number``, since none is what is not given."""
    *most, last = _choices(kind)
    return f"{', '.join(most)} or {last}" if most else last


def _choices(kind: Any) -> list[str]:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return [str(choice) for choice in inside]
    if origin in (Union, types.UnionType):
        return [choice for part in inside if part is not type(None) for choice in _choices(part)]
    if origin is tuple:
        return [f"{_spell(inside[0])}s with commas between"]
    return [_KINDS.get(kind, getattr(kind, "__name__", str(kind)))]

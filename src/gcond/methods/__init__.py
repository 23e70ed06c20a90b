"""Ways to a condensed graph, one a file; adding a file registers it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gcond.config import registry
from gcond.errors import GcondError
from gcond.methods.method import Method


def available() -> dict[str, type[Method]]:
    """Every method by name."""
    return registry.discover(sys.modules[__name__], Method)  # type: ignore[type-abstract]


def find(name: str) -> type[Method]:
    """The method called ``name``; a miss names the choices."""
    return registry.resolve("method", name, available())


def resolve(methods: str | Method | Sequence[str | Method]) -> list[Method]:
    """The methods that ``methods`` names: one, several, ``"all"``, or methods as they are."""
    methods = [methods] if isinstance(methods, str | Method) else methods
    if "all" in methods:
        methods = sorted(available())
    if not methods:
        raise GcondError(f"no method is named: choose among {', '.join(sorted(available()))}, or all")
    return [method if isinstance(method, Method) else find(method)() for method in methods]

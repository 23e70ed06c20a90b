"""Things found by name: adding a file to a package registers every final subclass that it defines."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

from gcond.errors import GcondError

T = TypeVar("T")


@cache
def discover(package: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """Map the ``name`` of every concrete ``base`` defined in a module of ``package`` to its class."""
    found: dict[str, type[T]] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for _, member in inspect.getmembers(module, inspect.isclass):
            defined_here = member.__module__ == module.__name__
            if defined_here and issubclass(member, base) and not inspect.isabstract(member):
                if (name := member.name) in found:  # type: ignore[attr-defined]
                    raise TypeError(f"{member.__qualname__} and {found[name].__qualname__} are both called '{name}'")
                found[name] = member
    return found


def resolve(kind: str, name: str, choices: Mapping[str, T]) -> T:
    """Look ``name`` up among ``choices``; a miss names the nearest choice and all of them."""
    if isinstance(name, str) and name in choices:
        return choices[name]
    raise GcondError(f"unknown {kind} '{name}'{suggest(name, choices)}: choose one of {', '.join(sorted(choices))}")


def chosen(kind: str, asked: str | T | Iterable[str | T], base: type[Any], choices: Mapping[str, type[T]]) -> list[T]:
    """Those that are asked for: ``"all"``, a name, a ``base`` (one's own, too), or several of these.

    By name they have their default settings. A miss names the choices.
    """
    found: list[T] = []
    for each in asked if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]:
        if isinstance(each, base):
            found.append(each)
        elif isinstance(each, type):
            raise GcondError(f"{each.__name__} is a class of {kind}s: give one of them, {each.__name__}()")
        else:
            found += [cls() for cls in (choices.values() if each == "all" else [resolve(kind, str(each), choices)])]
    if not found:
        raise GcondError(f"{kind}s=[] names no {kind}: choose among {', '.join(choices)}, or all")
    return found


def suggest(name: str, choices: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` when something close to ``name`` exists, else nothing."""
    known = list(choices)
    same_letters = [choice for choice in known if sorted(choice) == sorted(str(name))]  # gnc is gcn, and not sgc
    close = same_letters or get_close_matches(str(name), known, n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""

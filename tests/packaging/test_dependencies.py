"""Every import of the package is declared, and every declared dependency is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gcond"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Extras of people who use gcond; the others are of people who work on it.
RUNTIME_EXTRAS = ("pyg", "report", "ray", "tensorboard", "pack", "tune")
IMPORTED_BY_OTHERS = {"tensorboard": "torch.utils.tensorboard imports it"}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names_of(requirements: list[str]) -> set[str]:
    """Distributions that ``requirements`` name, without versions and extras."""
    return {normalised(re.split(r"[\s\[<>=!~;]", one)[0]) for one in requirements} - {"gcond"}


CORE = names_of(PROJECT["dependencies"])
EXTRAS = set().union(*(names_of(PROJECT["optional-dependencies"][extra]) for extra in RUNTIME_EXTRAS))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every top-level name that ``path`` imports, and whether it does so when it is itself imported."""
    tree = ast.parse(path.read_text(), str(path))
    later = {id(node) for outer in ast.walk(tree) if _is_put_off(outer) for node in ast.walk(outer)}
    for node in ast.walk(tree):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found = [node.module]
        yield from ((name.split(".")[0], id(node) not in later) for name in found)


def _is_put_off(node: ast.AST) -> bool:
    checking = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return checking or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def outside() -> dict[str, set[tuple[str, bool]]]:
    """Distributions that the package imports from: which files do, and whether at once."""
    owners = packages_distributions()
    found: dict[str, set[tuple[str, bool]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name, at_once in imports(path):
            if name == "gcond" or name in sys.stdlib_module_names:
                continue
            for owner in owners.get(name, [name]):
                found.setdefault(normalised(owner), set()).add((str(path.relative_to(SOURCE)), at_once))
    return found


def test_every_import_is_declared() -> None:
    undeclared = {name: sorted(where) for name, where in outside().items() if name not in CORE | EXTRAS}
    assert not undeclared, "declare these in pyproject.toml"


def test_every_dependency_is_imported() -> None:
    unused = (CORE | EXTRAS) - set(outside()) - set(IMPORTED_BY_OTHERS)
    assert not unused, "these are declared in pyproject.toml and imported nowhere"


def test_extras_are_imported_on_use() -> None:
    """Without an extra everything else must work, so its packages are imported inside functions."""
    # A module for PyG users, imported by nothing else here, and one that Ray's engine imports once it has Ray.
    allowed = {"transforms.py", "runtime/engines/ray_parcel.py"}
    at_once = {
        (name, path)
        for name, where in outside().items()
        if name in EXTRAS - CORE
        for path, now in where
        if now and path not in allowed and not path.startswith("reports/figures/")
    }
    assert not at_once


@pytest.mark.parametrize("extra", ["docs", "dev"])
def test_tools_are_pinned(extra: str) -> None:
    """The set-up commands install through constraints.txt, so that everyone has the same tools."""
    pinned = names_of(re.findall(r"^\w.*==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert names_of(PROJECT["optional-dependencies"][extra]) <= pinned


def test_what_the_package_needs_is_pinned() -> None:
    pinned = names_of(re.findall(r"^\w.*==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert pinned >= CORE | EXTRAS

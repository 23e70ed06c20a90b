"""Recipes, public as ``gcond.recipes``: settings as TOML files, one table per method; the paper's come with gcond."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from gcond import methods
from gcond.config import settings
from gcond.config.registry import suggest
from gcond.errors import GcondError

_ABOUT = ("dataset", "budgets", "gat_threshold")


@dataclass(frozen=True)
class RecipeFile:
    """A recipe, checked against the methods that there are."""

    name: str
    """As it was asked for: a name or a path."""
    dataset: str = ""
    """The data set that it is for; empty if it does not say."""
    budgets: tuple[Annotated[int, Field(gt=0, strict=True)], ...] = ()
    """The paper's numbers of nodes for that data set."""
    gat_threshold: Annotated[float, Field(ge=0, lt=1, strict=True)] | None = None
    """GAT has no use for weights: it trains on the edges of A' above this; None on all of them."""
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The settings of each method that has a table."""

    def settings(self, method: str) -> dict[str, Any]:
        """The settings for ``method``, which must have a table."""
        if method in self.methods:
            return dict(self.methods[method])
        having = ", ".join(f"[{name}]" for name in self.methods) or "none"
        raise GcondError(f"recipe '{self.name}' has no table for method '{method}': its tables are {having}")


def available() -> dict[str, Path]:
    """The recipes that come with gcond, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "recipes").glob("*.toml"))}


def load(recipe: str | Path) -> RecipeFile:
    """Read the recipe of that name (``"cora"``), or the TOML file at that path, and check all of it.

    At the top it may have ``dataset``, ``budgets`` and ``gat_threshold``; the rest are tables named after methods,
    whose keys are the method's settings. Anything else is refused.
    """
    shipped = available()
    if not isinstance(recipe, str | Path):
        raise GcondError(f"recipe={recipe!r} is no recipe of methods: give a TOML file, or one of {', '.join(shipped)}")
    path = shipped.get(recipe, Path(recipe)) if isinstance(recipe, str) else recipe
    values = _read(path, str(recipe), list(shipped))
    what = f"recipe '{recipe}'"
    about = {key: values.pop(key) for key in _ABOUT if key in values}
    known = methods.available()
    for name, table in values.items():
        if name not in known:
            raise GcondError(
                f"{what} has '{name}'{suggest(name, known)}, which is no method: "
                f"its tables must be among {', '.join(sorted(known))}"
            )
        if not isinstance(table, dict):
            raise GcondError(f"{what}: '{name}' must be a table of settings, [{name}]")
        settings.build(known[name], table, f"{what}, table [{name}]")
    return settings.build(RecipeFile, about | {"name": str(recipe), "methods": values}, what)


def _read(path: Path, asked: str, names: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GcondError(
            f"there is no recipe '{asked}'{suggest(asked, names)}: give a TOML file, or one of {', '.join(names)}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GcondError(f"recipe '{asked}' is not TOML: {error}") from None
    except OSError as error:
        raise GcondError(f"recipe '{asked}' cannot be read: {error.strerror}") from None

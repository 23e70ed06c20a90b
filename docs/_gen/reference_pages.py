"""The pages of the reference that are made from the registries: settings, methods and models."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gcond.config.setting_texts import explain

KINDS = {"learned": "Learned", "selected": "Selected", "merged": "Merged"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs: adds the pages, which are no files in the repository."""
    for name, made in (("settings", settings_page), ("methods", methods_page), ("models", models_page)):
        files.append(File.generated(config, f"reference/{name}.md", content=made()))
    return files


def methods_page() -> str:
    from gcond import methods

    about = (
        "A method is a frozen dataclass of its settings, which are explained on the page [Settings](settings.md). "
        "`gcond.condense` takes the name of one, or one with its settings."
    )
    return classes_page("gcond.methods", about, methods.Method, methods.available())


def models_page() -> str:
    from gcond import models

    about = (
        "A model is a frozen dataclass of its architecture, which is explained on the page [Settings](settings.md). "
        "`gcond.evaluate` takes the name of one, or one with its settings."
    )
    return classes_page("gcond.models", about, models.Model, models.available())


def classes_page(module: str, about: str, base: type, found: dict[str, type]) -> str:
    """The base with all that it has to offer, and under it every class that is registered."""
    parts = [f"# {module}", about, f"::: {module}.available", f"::: {module}.find", f"::: {path_of(base)}"]
    parts += [f"::: {path_of(cls)}\n    options:\n      members: false" for cls in found.values()]
    return "\n\n".join(parts) + "\n"


def path_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def settings_page() -> str:
    from gcond import methods, models
    from gcond.training.recipe import Recipe

    parts = [
        "# Settings",
        "This page is made from the code: `gcond methods NAME` and `gcond models NAME` print the same. A setting has "
        "one name everywhere: `--set epochs=100` on the command line, `epochs = 100` in a recipe file, "
        "`gcond.condense(graph, epochs=100)` or `GCond(epochs=100)` in Python.",
        "## Methods",
    ]
    listed = sorted(methods.available().values(), key=lambda cls: (list(KINDS).index(cls.kind), cls.name))
    for cls in listed:
        about = f"{KINDS[cls.kind]}: {cls.summary}. *{cls.citation}*"
        parts += [f"### {cls.name}", about, table(cls)]
    parts.append("## Models")
    for name, cls in models.available().items():
        own = ", ".join(f"`{key}={value}`" for key, value in cls.recipe.items())
        trained = f" Trained with {own} unless told otherwise." if own else ""
        parts += [f"### {name}", f"*{cls.citation}*{trained}", table(cls)]
    parts += [
        "## Training recipe",
        "How a test model is trained, recorded with every score: `gcond evaluate --set epochs=200`, "
        "`gcond compare --train epochs=200`, `gcond.evaluate(…, epochs=200)`.",
        table(Recipe),
    ]
    return "\n\n".join(parts) + "\n"


def table(cls: type) -> str:
    rows = [(f"`{one.name}`", one.type, f"`{shown(one.default)}`", one.text) for one in explain(cls)]
    if not rows:
        return "It has no settings."
    return "\n".join(line(cells) for cells in [("setting", "value", "default", "meaning"), ("---",) * 4, *rows])


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(as_cell(cell) for cell in cells)} |"


def as_cell(text: str) -> str:
    """One line in which nothing ends the cell, and in which roles of docstrings are plain names."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.split()))
    return text.replace("|", "\\|")


def shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)

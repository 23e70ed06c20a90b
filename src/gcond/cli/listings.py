"""``gcond methods``, ``gcond models`` and ``gcond datasets``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcond.cli.common_options import DEFAULTS, Common


def methods(*, common: Common = DEFAULTS) -> None:
    """List the ways to a condensed graph, with their settings."""
    voice = common.start()
    from gcond.methods import available
    from gcond.reports.tables import Table, assignments

    found: list[dict[str, Any]] = [
        {"name": name, "kind": cls.kind, "summary": cls.summary, "citation": cls.citation, "settings": _defaults(cls)}
        for name, cls in sorted(available().items())
    ]
    ways = Table(
        ("method", "kind", "what it does"), tuple((m["name"], m["kind"], m["summary"]) for m in found), words=range(3)
    )
    given = tuple((who, assignments(values)) for who, values in _together(found))
    voice.result({"methods": found}, ways.rich(), Table(("method", "settings"), given, words=range(2)).rich())


def models(*, common: Common = DEFAULTS) -> None:
    """List the models that can be trained, with their settings and their papers."""
    voice = common.start()
    from gcond.models import available
    from gcond.reports.tables import Table, assignments

    found: list[dict[str, Any]] = [
        {"name": name, "citation": cls.citation, "settings": _defaults(cls), "recipe": dict(cls.recipe)}
        for name, cls in sorted(available().items())
    ]
    rows = tuple((m["name"], assignments(m["settings"]), m["citation"]) for m in found)
    voice.result({"models": found}, Table(("model", "settings", "paper"), rows, words=range(3)).rich())


def datasets(*, common: Common = DEFAULTS) -> None:
    """List the data sets that can be named as SOURCE, and where each of them is."""
    voice = common.start()
    from gcond.data import catalogue
    from gcond.reports.tables import Table

    found = catalogue(common.data)
    figures = ("nodes", "edges", "features", "classes", "train", "val", "test")
    rows = tuple((d["name"], *(f"{d[key]:,}" for key in figures)) for d in found)
    # Plain lines under the table: paths and addresses are long, and stay whole for copying.
    name_width, setting_width = (max(len(d[key]) for d in found) for key in ("name", "setting"))
    places = [f" {d['name']:{name_width}}  {d['setting']:{setting_width}}  {d['where']}" for d in found]
    voice.result({"datasets": found}, Table(("data set", *figures), rows, tight=True).rich(), "\n".join(places))


def _together(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Whose settings they are, and the settings: what all of one kind have in common once, then what is their own.

    Methods without settings are left out.
    """
    having = [method for method in found if method["settings"]]
    for kind in dict.fromkeys(method["kind"] for method in having):
        group = [method for method in having if method["kind"] == kind]
        first, *others = (method["settings"] for method in group)
        common = {key: value for key, value in first.items() if all(key in o and o[key] == value for o in others)}
        if common:
            yield ", ".join(method["name"] for method in group), common
        for method in group:
            own = {key: value for key, value in method["settings"].items() if key not in common}
            if own:
                yield method["name"], own


def _defaults(cls: type) -> dict[str, Any]:
    """Each setting with its default; ``None`` where one must be given."""
    return {
        field.name: None if field.default is dataclasses.MISSING else field.default for field in dataclasses.fields(cls)
    }

"""``gcond methods``, ``gcond models`` and ``gcond datasets``."""

from __future__ import annotations

import dataclasses
from typing import Any

from gcond.cli.common import DEFAULTS, Common


def methods(*, common: Common = DEFAULTS) -> None:
    """List the ways to a condensed graph, with their settings."""
    voice = common.start()
    from gcond.methods import available
    from gcond.reports.tables import Table, assignments

    found: list[dict[str, Any]] = [
        {"name": name, "kind": cls.kind, "summary": cls.summary, "citation": cls.citation, "settings": _defaults(cls)}
        for name, cls in sorted(available().items())
    ]
    rows = tuple((m["name"], m["kind"], m["summary"], assignments(m["settings"])) for m in found)
    voice.result({"methods": found}, Table(("method", "kind", "what it does", "settings"), rows, words=range(4)).rich())


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


def _defaults(cls: type) -> dict[str, Any]:
    """Each setting with its default; ``None`` where one must be given."""
    return {
        field.name: None if field.default is dataclasses.MISSING else field.default for field in dataclasses.fields(cls)
    }

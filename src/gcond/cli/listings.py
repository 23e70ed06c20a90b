"""``gcond methods``, ``gcond models`` and ``gcond datasets``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.methods import Method
    from gcond.models import Model


def methods(
    name: Annotated[str | None, Parameter(help="A method, to see every setting of it explained.")] = None,
    /,
    *,
    common: Common = DEFAULTS,
) -> None:
    """List the ways to a condensed graph, or explain one of them and its settings.

    For example: gcond methods gcond
    """
    voice = common.start()
    from gcond.methods import available, find
    from gcond.reports.tables import Table, assignments

    if name is not None:
        _explain(find(name), voice, kind=find(name).kind)
        return
    found: list[dict[str, Any]] = [
        {"name": name, "kind": cls.kind, "summary": cls.summary, "citation": cls.citation, "settings": _defaults(cls)}
        for name, cls in sorted(available().items())
    ]
    ways = Table(
        ("method", "kind", "what it does"), tuple((m["name"], m["kind"], m["summary"]) for m in found), words=range(3)
    )
    given = tuple((who, assignments(values)) for who, values in _together(found))
    settings = Table(("method", "settings"), given, words=range(2))
    voice.result({"methods": found}, ways.rich(), settings.rich(), "What a method's settings mean: gcond methods NAME")


def models(
    name: Annotated[str | None, Parameter(help="A model, to see every setting of it explained.")] = None,
    /,
    *,
    common: Common = DEFAULTS,
) -> None:
    """List the models that can be trained, with their papers, or explain one of them and its settings.

    For example: gcond models gcn
    """
    voice = common.start()
    from gcond.models import available, find
    from gcond.reports.tables import Table, assignments

    if name is not None:
        _explain(find(name), voice, recipe=dict(find(name).recipe))
        return
    found: list[dict[str, Any]] = [
        {"name": name, "citation": cls.citation, "settings": _defaults(cls), "recipe": dict(cls.recipe)}
        for name, cls in sorted(available().items())
    ]
    rows = tuple((m["name"], assignments(m["settings"]), m["citation"]) for m in found)
    table = Table(("model", "settings", "paper"), rows, words=range(3))
    voice.result({"models": found}, table.rich(), "What a model's settings mean: gcond models NAME")


def datasets(*, common: Common = DEFAULTS) -> None:
    """List the data sets that can be named as SOURCE, and where each of them is."""
    voice = common.start()
    from gcond.data import catalogue
    from gcond.reports.tables import Table

    found = catalogue(common.data)
    figures = ("nodes", "edges", "features", "classes", "train", "val", "test")
    rows = tuple((d["name"], *(_short(d[key]) for key in figures)) for d in found)
    # Plain lines under the table: paths and addresses are long, and stay whole for copying.
    name_width, setting_width = (max(len(d[key]) for d in found) for key in ("name", "setting"))
    places = [f" {d['name']:{name_width}}  {d['setting']:{setting_width}}  {d['where']}" for d in found]
    voice.result({"datasets": found}, Table(("data set", *figures), rows, tight=True).rich(), "\n".join(places))


def _short(number: int) -> str:
    """A number as it is below a million, else in millions (M): a table of them fits a narrow window."""
    return f"{number:,}" if number < 10**6 else f"{number / 10**6:,.1f}M"


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


def _explain(cls: type[Method] | type[Model], voice: Voice, **about: Any) -> None:
    """Show one method or model: what it does, its paper, and every setting with its default and its meaning."""
    from gcond.config.setting_texts import explain
    from gcond.reports.tables import Table, assignments, facts

    settings = explain(cls)
    does = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())
    said = {key: assignments(value) if isinstance(value, dict) else value for key, value in about.items()}
    rows = tuple((one.name, _typed(one.default), one.type, one.text.replace("``", "")) for one in settings)
    table = Table(("setting", "default", "takes", "what it is, and where its default comes from"), rows, words=range(4))
    voice.result(
        {
            "name": cls.name,
            **about,
            "text": does,
            "citation": cls.citation,
            "settings": [dataclasses.asdict(one) for one in settings],
        },
        facts({"name": cls.name, **said, "what it does": does.replace("``", ""), "paper": cls.citation}).rich(),
        table.rich() if rows else "It has no settings.",
    )


def _typed(default: Any) -> str:
    """A default as a person would type it."""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if default is None or isinstance(default, bool) else str(default)


def _defaults(cls: type) -> dict[str, Any]:
    """Each setting with its default; ``None`` where one must be given."""
    from gcond.config.setting_texts import explain

    return {one.name: one.default for one in explain(cls)}

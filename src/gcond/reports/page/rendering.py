"""The page itself: parts are filled in by Jinja2 with every text escaped, style and script are written into it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gcond import __version__
from gcond.errors import GcondError
from gcond.reports.audit_table import audit_lines, audit_tables
from gcond.reports.display_names import clean
from gcond.reports.page import page_tables, sentences
from gcond.reports.page.embedded_figures import pictures_of
from gcond.reports.page.interactive_view import view_data
from gcond.reports.page.page_run import PageRun
from gcond.reports.search_table import winners_table
from gcond.reports.tuning_table import finalists_table, tuning_facts

if TYPE_CHECKING:
    from jinja2 import Environment

    from gcond.graph import SourceGraph


def render_page(runs: Sequence[PageRun], *, title: str = "", source: SourceGraph | None = None) -> str:
    """One HTML document on ``runs`` that needs no network and no other file; the same runs give the same text.

    ``source`` adds what the files do not hold: class names, and the source's own nodes in the figures of the runs
    that were made from it.
    """
    if not runs:
        raise GcondError("a page needs at least one run or condensed file")
    environment = _environment()
    style, script = _asset("page.css"), _asset("page.js")
    sections = [_section(index, run, source) for index, run in enumerate(runs)]
    policy = (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("page.html.j2").render(
        title=clean(title) or sentences.page_title(runs),
        sections=sections,
        policy=policy,
        style=_trusted(style),
        script=_trusted(script),
        version=__version__,
    )


def _section(index: int, run: PageRun, source: SourceGraph | None) -> dict[str, Any]:
    """Everything that the templates show of one run."""
    own = source if source is not None and run.source.sha256 in ("", source.sha256) else None
    names = (own.class_names if own is not None else ()) or run.class_names
    pictures, notes = pictures_of(run, own)
    graphs = sorted(run.graphs, key=lambda each: each is not run.first_graph)  # the headline's is the one that opens
    search, tuning = run.search, run.tuning
    return {
        "anchor": f"run-{index + 1}",
        "name": run.source.name or run.name,
        "run": run,
        "headline": sentences.headline(run),
        "comparisons": page_tables.model_tables(run),
        "classes": page_tables.class_tables(run),
        "pictures": pictures,
        "notes": [*run.notes, *notes],
        "drawings": [{"label": each.label, **view_data(each.graph, names)} for each in graphs],
        "facts": page_tables.source_facts(run.source),
        "graphs": page_tables.graph_rows(run),
        "settings": page_tables.method_settings(run),
        "search": sentences.search_sentence(search) if search else "",
        "winners": winners_table(search) if search and search.architectures else None,
        "tuning": sentences.tuning_sentence(tuning) if tuning else "",
        "finalists": finalists_table(tuning) if tuning and tuning.finalists else None,
        "tuning_facts": tuning_facts(tuning) if tuning else {},
        "audit": _audited(run),
    }


def _audited(run: PageRun) -> dict[str, Any] | None:
    """The audit of a run, where there is one: a sentence, tables, and what is to be known beside them."""
    found = run.audit
    if found is None:
        return None
    return {
        "sentence": sentences.audit_sentence(found),
        "tables": audit_tables(found),
        "lines": audit_lines(found),
    }


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise GcondError("the page needs Jinja2: pip install 'gcond[report]'") from None
    environment = Environment(
        loader=PackageLoader("gcond.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["name"] = lambda part: isinstance(part, sentences.Name)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _asset(name: str) -> str:
    return files("gcond.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _trusted(text: str) -> Any:
    """Our own style and script: the only text that is not escaped."""
    from markupsafe import Markup

    return Markup(text)


def _sha256(text: str) -> str:
    """As a content security policy wants it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

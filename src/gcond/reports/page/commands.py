"""The commands that make a condensed file again, from what the file remembers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcond.artefact import Provenance


def commands_of(provenance: Provenance, file: str) -> list[str]:
    """``gcond condense …`` and, where scores are recorded, ``gcond evaluate …``, quoted for a shell."""
    source = provenance.source.get("name", "SOURCE")
    words = ["gcond", "condense", source, "--nodes", str(provenance.budget.get("nodes", "N"))]
    words += ["--method", provenance.method, "--seed", str(provenance.seed), "--setting", provenance.setting]
    words += ["--directed"] if provenance.directed else []
    unusual = _unusual(provenance)
    words += ["--set", *(f"{key}={_value(value)}" for key, value in unusual.items())] if unusual else []
    made = [shlex.join([*words, "-o", Path(file).name])]
    if provenance.grown_from:
        made = []  # growing starts from another file, whose name is not recorded
    if provenance.scores:
        models = ",".join(dict.fromkeys(score["model"] for score in provenance.scores))
        runs = max(len(score["runs"]) for score in provenance.scores)
        evaluation = ["gcond", "evaluate", Path(file).name, "--on", source, "--models", models, "--runs", str(runs)]
        made.append(shlex.join(evaluation))
    return made


def _unusual(provenance: Provenance) -> dict[str, Any]:
    """The settings in which this graph is not its method's usual one; all of them for a method not known here."""
    from gcond import methods, settings

    cls = methods.available().get(provenance.method)
    usual = settings.as_dict(cls()) if cls is not None else {}
    return {
        key: value
        for key, value in provenance.settings.items()
        if value is not None and (key not in usual or usual[key] != value)  # None is a default and cannot be typed
    }


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)

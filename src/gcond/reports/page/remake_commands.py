"""The commands that make a condensed file again, from what the file remembers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.reports.score_changes import changed

if TYPE_CHECKING:
    from gcond.condensed import Provenance


def commands_of(provenance: Provenance, file: str) -> list[str]:
    """``gcond condense …`` and, where scores are recorded, ``gcond evaluate …``, quoted for a shell."""
    source = provenance.source.get("name", "SOURCE")
    words = ["gcond", "condense", source, "--nodes", str(provenance.budget.get("nodes", "N"))]
    words += ["--method", provenance.method, "--seed", str(provenance.seed), "--setting", provenance.setting]
    words += ["--directed"] if provenance.directed else []
    assigned = _assigned(_unusual(provenance))
    words += ["--set", *assigned] if assigned else []
    made = [shlex.join([*words, "-o", Path(file).name])]
    if provenance.grown_from or provenance.updates:
        made = []  # growing and updating start from another file, whose name is not recorded
    return made + _evaluations(provenance, Path(file).name, source)


def _evaluations(provenance: Provenance, file: str, source: str) -> list[str]:
    """One command for the models that were trained as often, from the same seed and with the same settings."""
    groups: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for score in provenance.scores:
        key = (len(score.runs), score.seed, _assigned(changed(score)))
        groups.setdefault(key, []).append(score.model)
    made = []
    for (runs, seed, assigned), models in groups.items():
        words = ["gcond", "evaluate", file, "--on", source, "--models", ",".join(models), "--runs", str(runs)]
        words += ["--seed", str(seed)] if seed else []
        words += ["--set", *assigned] if assigned else []
        made.append(shlex.join(words))
    return made


def _unusual(provenance: Provenance) -> dict[str, Any]:
    """The settings in which this graph is not its method's usual one; all of them for a method not known here."""
    from gcond import methods
    from gcond.config import settings

    cls = methods.available().get(provenance.method)
    usual = settings.as_dict(cls()) if cls is not None else {}
    return {key: value for key, value in provenance.settings.items() if key not in usual or usual[key] != value}


def _assigned(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """As the command line takes them; None is a default, and cannot be typed."""
    return tuple(f"{key}={_value(value)}" for key, value in settings.items() if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)

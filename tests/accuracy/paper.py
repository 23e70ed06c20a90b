"""The figures that the paper prints, to stand beside ours (``paper.json`` holds all of its tables)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

# The paper's tables spell methods without hyphens.
_SPELLING = {"k-center": "kcenter", "gcond-x": "gcond_x", "dc-graph": "dc_graph"}


class Figure(NamedTuple):
    """A printed accuracy in %."""

    mean: float
    std: float | None


def whole_graph(dataset: str, model: str) -> Figure | None:
    """Accuracy of ``model`` on the original graph, or None where the paper does not print it."""
    printed = tables()["original"] | {"pubmed": {"gcn": tables()["pubmed"]["whole_gcn"]}}
    value = printed.get(dataset, {}).get(model)
    return None if value is None else Figure(value, None)


def main_table(dataset: str, position: int, method: str) -> Figure | None:
    """Accuracy of a GCN trained on what ``method`` made at the ``position``-th budget of ``dataset``."""
    rows = tables()["main"].get(dataset, {}).get("rows", [])
    cell = rows[position].get(_SPELLING.get(method, method)) if position < len(rows) else None
    return Figure(cell["mean"], cell["std"]) if cell else None


def learned(dataset: str, position: int, method: str) -> Figure | None:
    """The same for a learned method; PubMed has a table of its own."""
    if dataset == "pubmed":
        cell = tables()["pubmed"].get(_SPELLING.get(method, method))
        return Figure(*cell["gcn"]) if cell else None
    return main_table(dataset, position, method)


def versatility(dataset: str, backbone: str, model: str) -> Figure | None:
    """Accuracy of ``model`` on what ``backbone`` condensed."""
    cell = tables()["versatility"].get(dataset, {}).get("cells", {}).get(backbone, {}).get(model)
    return Figure(cell["mean"], cell["std"]) if cell else None


def ablation(dataset: str, variant: str) -> Figure | None:
    """The paper's two ablations: how A' is parametrised, and who learns when."""
    table, key = {
        "alternating, Φ": ("optimization", "alternate"),
        "joint, Φ": ("optimization", "joint"),
        "alternating, free A'": ("parametrization", "free"),
    }[variant]
    cell = tables()[table].get(dataset, {}).get(key)
    return Figure(*cell) if cell else None


@cache
def tables() -> dict[str, Any]:
    """Every table of the paper as it is printed."""
    return json.loads(Path(__file__).with_name("paper.json").read_text())

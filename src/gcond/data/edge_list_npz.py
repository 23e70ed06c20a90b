"""Graphs in an ``.npz`` with the names that PyG users give their arrays.

``edge_index`` [2, E]; ``y`` [N] class ids; ``x`` [N, d], without which the graph gets structural features; and, if
there are any, ``edge_weight`` [E] and the split: ``train_mask``, ``val_mask`` and ``test_mask`` (boolean masks or ids).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from gcond.data.load_request import Request
from gcond.data.npz_archive import Archive, own_split
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph import validation as checks

KNOWN = ("x", "y", "edge_index", "edge_weight")


def assemble(archive: Archive, request: Request) -> SourceGraph:
    """The graph of the arrays; sizes and shapes that the file claims are looked at before anything is read."""
    bare = "y" not in archive and not request.labelled
    wanted = ["edge_index", *([] if bare else ["y"]), *(key for key in ("x", "edge_weight") if key in archive)]
    _check_shapes(archive.shapes(wanted))
    found = archive.read(wanted, whole=["edge_index"])
    x = found.get("x")
    if bare and x is None:
        raise GcondError(f"'{archive.name}' has neither x nor y, which say how many nodes there are: give one of them")
    y = torch.full((len(x),), -1) if bare and x is not None else checks.class_ids(found["y"])
    edge_index = found["edge_index"]
    split = own_split(archive) or request.drawn_split(y)
    others = [key for key in archive.names if key not in KNOWN and not key.startswith(("train", "val", "test"))]
    ignored = (f"not used of the file: {', '.join(others[:5])}{', …' if len(others) > 5 else ''}",) if others else ()
    weight = found.get("edge_weight")
    return request.build(
        split, x=x.float() if x is not None else None, edge_index=edge_index, edge_weight=weight, y=y, notes=ignored
    )


def _check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays that contradict each other by their headers: unpacking them could take a gigabyte."""
    x, y, edge_index, weight = (shapes.get(key) for key in KNOWN)
    if x is not None:
        checks.check_feature_shape(x)
        if y is not None and (len(y) == 1 or y[1:] == (1,)):  # of any other shape it is refused when it is read
            checks.check_label_count(y[0], x[0])
    if edge_index is not None:
        checks.check_edge_shape(edge_index)
        if weight is not None:
            checks.check_weight_count(math.prod(weight), edge_index[1])

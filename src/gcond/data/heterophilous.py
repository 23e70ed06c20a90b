"""Tolokers and files like it: ``node_features``, ``node_labels``, ``edges`` and several splits in one ``.npz``.

Platonov et al., A Critical Look at the Evaluation of GNNs under Heterophily, ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcond.data.load_request import Request
from gcond.data.npz_archive import Archive
from gcond.data.splits import Split
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.source_graph import PARTS


def load(files: Mapping[str, bytes], request: Request) -> SourceGraph:
    """A named set, with its features untouched by default."""
    ((name, content),) = files.items()
    return assemble(Archive(content, name), request, usual="none")


def assemble(archive: Archive, request: Request, usual: FeatureChoice = "auto") -> SourceGraph:
    """The graph; of the S published splits (``train_masks`` bool [S, N], …) the one numbered ``seed`` mod S."""
    kept = [f"{part}_masks" for part in PARTS]
    x, y, edges, *masks = archive.read(["node_features", "node_labels", "edges", *kept], whole=["edges"]).values()
    if edges.dim() != 2 or edges.shape[1] != 2:
        raise GcondError(f"{archive.label('edges')} has shape {list(edges.shape)}: it must be [edges, 2]")
    if len({mask.shape for mask in masks}) != 1 or masks[0].dim() != 2 or len(masks[0]) == 0:
        raise GcondError(f"the masks in '{archive.name}' must all be [splits, nodes], and one split at least")
    number = request.seed % len(masks[0])
    note = f"the split is number {number} of the {len(masks[0])} published ones (seed {request.seed})"
    train, val, test = (mask[number] for mask in masks)
    return request.build(Split(train, val, test, note), usual=usual, x=x.float(), edge_index=edges.T, y=y)

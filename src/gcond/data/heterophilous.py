"""Tolokers and files like it: ``node_features``, ``node_labels``, ``edges`` and several splits in one ``.npz``.

Platonov et al., A Critical Look at the Evaluation of GNNs under Heterophily, ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcond.data.arrays import tensor, whole_numbers
from gcond.data.npz_archive import Archive
from gcond.data.request import Request
from gcond.data.splits import Split
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.source_graph import PARTS


def load(files: Mapping[str, bytes], request: Request) -> SourceGraph:
    """A named set, with its features untouched."""
    ((name, content),) = files.items()
    return assemble(Archive(content, name), request)


def assemble(archive: Archive, request: Request) -> SourceGraph:
    """The graph; of the S published splits (``train_masks`` bool [S, N], …) the one numbered ``seed`` mod S."""
    arrays = archive.read(["node_features", "node_labels", "edges", *(f"{part}_masks" for part in PARTS)])
    edges = whole_numbers(arrays["edges"], archive.label("edges"))
    if edges.dim() != 2 or edges.shape[1] != 2:
        raise GcondError(f"{archive.label('edges')} has shape {list(edges.shape)}: it must be [edges, 2]")
    masks = {part: tensor(arrays[f"{part}_masks"], archive.label(f"{part}_masks")) for part in PARTS}
    shapes = {tuple(mask.shape) for mask in masks.values()}
    if len(shapes) != 1 or masks["train"].dim() != 2 or len(masks["train"]) == 0:
        raise GcondError(f"the masks in '{archive.name}' must all be [splits, nodes], and one split at least")
    number = request.seed % len(masks["train"])
    note = f"the split is number {number} of the {len(masks['train'])} published ones (seed {request.seed})"
    return SourceGraph.build(
        x=tensor(arrays["node_features"], archive.label("node_features")).float(),
        edge_index=edges.T,
        y=tensor(arrays["node_labels"], archive.label("node_labels")),
        **Split(masks["train"][number], masks["val"][number], masks["test"][number], note).options(),
        **request.options(),
    )

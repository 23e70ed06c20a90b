"""A workspace with tiny graphs, for the tests of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from gcond.graph.source_graph import SourceGraph
from gcond.runtime.tensor_file import read_tensors, write_tensors

NODES, FEATURES, CLASSES = 60, 8, 3


def build_tiny(*, name="tiny", features=FEATURES, classes=CLASSES, extra_edges=(), **options) -> SourceGraph:
    """Sixty nodes in three easy classes: ten labelled, five to validate and five to test in each."""
    stream = torch.Generator().manual_seed(0)
    y = torch.arange(NODES) % classes
    x = torch.rand(NODES, features, generator=stream) + torch.nn.functional.one_hot(y, features)
    mates = torch.randint(0, NODES // classes, (4 * NODES,), generator=stream) * classes
    source = torch.arange(4 * NODES) % NODES
    edges = torch.stack([source, mates + y[source]])
    edges = torch.cat([edges, edges.flip(0)], 1).unique(dim=1)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, torch.tensor(extra_edges, dtype=torch.long).reshape(-1, 2).T], 1)
    place = torch.arange(NODES)
    parts = {"train": place < 30, "val": (place >= 30) & (place < 45), "test": place >= 45}
    return SourceGraph.build(name=name, x=x, edge_index=edges, y=y, **(parts | options))


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Workspace:
    """A folder with ``tiny.safetensors``, ``small.safetensors`` made from it, and an empty ``out/``."""

    folder: Path

    @property
    def source(self) -> Path:
        return self.folder / "tiny.safetensors"

    @property
    def small(self) -> Path:
        return self.folder / "small.safetensors"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def file(self, name: str, content: bytes | str) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def tampered(self, original: Path, change) -> Path:
        """A copy of a good file after ``change(tensors, metadata)``, written without any check."""
        tensors, metadata = read_tensors(original)
        change(tensors, metadata)
        path = self.folder / f"tampered-{original.name}"
        write_tensors(path, tensors, metadata)
        return path

    def contents(self) -> dict[str, bytes | None]:
        """Every file and folder with its bytes."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.folder.rglob("*"))
        }

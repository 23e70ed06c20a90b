"""The source graph: validated once on entry, then only looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph import validation as checks
from gcond.graph.doubts import doubts
from gcond.graph.feature_names import check_feature_names
from gcond.graph.features import FeatureTransform, compact
from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.graph.learning_setting import SETTINGS, Setting
from gcond.graph.node_ids import NodeIds
from gcond.graph.statistics import Statistics, density, edge_homophily
from gcond.graph.structural_features import structural_features
from gcond.linalg.sparse import Matrix, SparseMatrix, dense, take_rows
from gcond.runtime import notebook
from gcond.runtime.plain_text import counted
from gcond.runtime.tensor_file import FORMAT_VERSION, fingerprint, read_tensors, write_tensors
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

Part = Literal["train", "val", "test"]
PARTS: tuple[Part, ...] = ("train", "val", "test")
MASKS = tuple(f"{part}_mask" for part in PARTS)
_WRITTEN = ("name", "num_classes", "setting", "directed", "class_names", "notes", "listed_edges")
"""The fields that the metadata of a file have under their own names."""


@dataclass(frozen=True, eq=False)
class SourceGraph:
    """A real graph: features X, adjacency A, labels Y, masks, and the setting it is used in.

    Build one with :meth:`build`, :meth:`from_pyg` or :func:`gcond.load`; all of them validate.
    """

    name: str
    x: Matrix
    """float32 [N, d], dense or sparse."""
    adjacency: SparseMatrix
    """float32 [N, N]: row = target, column = source; no self-loops, no duplicates, positive weights."""
    y: Tensor
    """int64 [N]; -1 is unlabelled."""
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    num_classes: int
    setting: Setting = "transductive"
    directed: bool = False
    class_names: tuple[str, ...] = ()
    transform: FeatureTransform = field(default_factory=FeatureTransform)
    notes: tuple[str, ...] = ()
    """Things that were cleaned up or decided on entry, one sentence for each."""
    listed_edges: int | None = None
    """Edges as the raw file lists them, an undirected pair once; tables in papers count these."""
    ids: NodeIds | None = None
    """The names that the nodes have in the person's own table, if any: no part of the fingerprint."""
    feature_names: tuple[str, ...] = ()
    """The columns of the table that the features are, in order, where each is a column of its own; as ``ids``."""

    @classmethod
    @with_usual_torch
    def build(
        cls,
        *,
        name: str,
        x: Matrix | None,
        edge_index: Tensor,
        y: Tensor,
        train: Tensor,
        val: Tensor,
        test: Tensor,
        edge_weight: Tensor | None = None,
        setting: Setting = "transductive",
        directed: bool = False,
        num_classes: int | None = None,
        class_names: tuple[str, ...] = (),
        transform: FeatureTransform | None = None,
        notes: tuple[str, ...] = (),
        listed_edges: int | None = None,
        ids: NodeIds | Sequence[str] | Sequence[int] | None = None,
        feature_names: Sequence[str] = (),
        labelled: bool = True,
        copy: bool = True,
    ) -> SourceGraph:
        """Validate raw tensors and build the graph.

        ``edge_index`` is int [2, E], sources above targets as in PyG; ``train``, ``val`` and ``test``
        are boolean masks [N] or node ids. Self-loops and duplicates are dropped, and a one-way edge gets its reverse
        unless ``directed``; each such repair is said in ``notes``. Without features (``x`` is None) the graph gets
        structural ones. ``ids`` are the nodes' own names, ``feature_names`` those of the features. Without ``labelled``
        no label and no training node is needed, enough to predict for, and for nothing else. The graph is a copy that
        later changes to the tensors do not reach; without ``copy`` ``x`` is handed over, maybe most of the memory.
        """
        if setting not in SETTINGS:
            raise GcondError(f"unknown setting '{setting}': choose transductive or inductive")
        x = checks.features(x, copy=copy) if x is not None else None
        n = x.shape[0] if x is not None else len(checks.class_ids(y))
        labels, classes = checks.labels(y, n, num_classes, class_names, needed=labelled)
        given = {"train": train, "val": val, "test": test}
        parts = checks.masks(given, labels, classes, class_names, needed=labelled)
        masks: dict[str, Any] = {f"{part}_mask": mask for part, mask in parts.items()}
        adjacency, repairs = checks.adjacency(edge_index, edge_weight, n, directed=directed)
        if x is None:
            x, transform = structural_features(adjacency, tuple(parts.values()), setting)
            repairs += (f"there are no features, so {x.shape[1]} structural ones are made from the edges",)
        return cls(
            name=name,
            x=compact(x),
            adjacency=adjacency,
            y=labels,
            num_classes=classes,
            setting=setting,
            directed=directed,
            class_names=tuple(class_names),
            transform=transform or FeatureTransform(),
            notes=tuple(dict.fromkeys((*notes, *repairs, *doubts(x, classes if labelled else 0)))),
            listed_edges=listed_edges,
            ids=NodeIds.of(ids, n) if ids is not None else None,
            feature_names=check_feature_names(feature_names, x.shape[1]),
            **masks,
        )

    @classmethod
    def from_pyg(cls, data: Data, *, name: str = "data", **options: Any) -> SourceGraph:
        """Read a PyG ``Data`` with ``edge_index``, ``y``, the three masks and, as a rule, ``x``; it is left untouched.

        ``options`` are those of :meth:`build`, such as ``setting`` and ``directed``.
        """
        for keys, right in (
            (("edge_index", "y"), "it needs edge_index and y, a class id for every node, and can do without all else"),
            (MASKS, "give all three masks, or none to gcond.load"),
        ):
            if missing := [key for key in keys if data.get(key) is None]:
                raise GcondError(f"the PyG Data has no {', '.join(missing)}: {right}")
        parts = {part: data[f"{part}_mask"] for part in PARTS}
        weight = data.get("edge_weight")
        if names := data.get("class_names"):
            options.setdefault("class_names", tuple(map(str, names)))
        return cls.build(
            name=name, x=data.get("x"), edge_index=data.edge_index, edge_weight=weight, y=data.y, **parts, **options
        )

    def to_pyg(self) -> Data:
        """A PyG ``Data`` with dense features, both directions of every edge, the masks and the names of the classes."""
        from torch_geometric.data import Data

        named: dict[str, Any] = {"class_names": list(self.class_names)} if self.class_names else {}
        return Data(
            x=dense(self.x).clone(),
            edge_index=self.adjacency.edge_index,
            edge_weight=self.adjacency.values.clone(),
            y=self.y.clone(),
            **{f"{part}_mask": self.mask(part).clone() for part in PARTS},
            **named,
        )

    def __repr__(self) -> str:
        parts = "/".join(str(int(self.mask(part).sum())) for part in PARTS)
        return (
            f"SourceGraph('{self.name}', {self.num_nodes} nodes, {self.num_edges} edges, {self.num_features} features, "
            f"{counted(self.num_classes, 'class')}, train/val/test {parts}, {self.setting})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.facts(
            f"Source graph {self.name}",
            {
                "nodes": f"{self.num_nodes:,}",
                "edges": f"{self.num_edges:,}, {'directed' if self.directed else 'undirected'}",
                "features": f"{self.num_features:,}"
                + (f", {self.transform.kind}" if self.transform.kind != "none" else ""),
                "classes": f"{self.num_classes:,}" + (f": {_few(self.class_names)}" if self.class_names else ""),
                "split": ", ".join(f"{int(self.mask(part).sum()):,} {part}" for part in PARTS),
                "unlabelled": f"{unlabelled:,}" if (unlabelled := int((self.y < 0).sum())) else "",
                "setting": self.setting,
                "notes": "\n".join(self.notes),
            },
        )

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def num_edges(self) -> int:
        """Edges after cleaning, an undirected pair once."""
        return self.adjacency.nnz if self.directed else self.adjacency.nnz // 2

    @property
    def budget_population(self) -> int:
        """The number of nodes that a ratio is a share of: all nodes, or in the inductive setting the training nodes."""
        return self.num_nodes if self.setting == "transductive" else int(self.train_mask.sum())

    def training_graph(self) -> SourceGraph:
        """The part that training and condensing see: all of it, or in the inductive setting only the training nodes."""
        if self.setting == "transductive":
            return self
        index = self.train_mask.nonzero().squeeze(1)
        everyone = torch.ones(len(index), dtype=torch.bool)
        return dataclasses.replace(
            self,
            x=compact(take_rows(self.x, index)),
            adjacency=self.adjacency.submatrix(index),
            y=self.y[index],
            train_mask=everyone,
            val_mask=~everyone,
            test_mask=~everyone,
            listed_edges=None,
            ids=self.ids.take(index) if self.ids is not None else None,
        )

    def mask(self, part: Part) -> Tensor:
        return {"train": self.train_mask, "val": self.val_mask, "test": self.test_mask}[part]

    def class_counts(self) -> Tensor:
        """Training nodes per class: int64 [C]."""
        return torch.bincount(self.y[self.train_mask], minlength=self.num_classes)

    def view(self, part: Part) -> LabelledView:
        """The graph that ``part`` is computed on, with that part's labels.

        Transductive: the whole graph. Inductive: the graph induced by the nodes of that part alone.
        """
        return self._views[part]

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: without the views, which are made again in no time and are larger than the graph."""
        return {key: value for key, value in self.__dict__.items() if key != "_views"}

    @cached_property
    def _views(self) -> dict[Part, LabelledView]:
        if self.setting == "inductive":
            return {part: self.induced_view(self.mask(part)) for part in PARTS}
        inputs = Inputs(self.x, self.adjacency)
        everyone = torch.arange(self.num_nodes)
        index = {part: self.mask(part).nonzero().squeeze(1) for part in PARTS}
        return {part: LabelledView(inputs, index[part], self.y[index[part]], everyone) for part in PARTS}

    def induced_view(self, mask: Tensor) -> LabelledView:
        """The graph induced by the nodes of a boolean ``mask`` [N] alone, with their labels."""
        index = mask.nonzero().squeeze(1)
        # The form of the features follows from these nodes alone, as everything else here does.
        inputs = Inputs(compact(take_rows(self.x, index)), self.adjacency.submatrix(index))
        return LabelledView(inputs, torch.arange(len(index)), self.y[index], index)

    @cached_property
    def statistics(self) -> Statistics:
        """The graph in numbers."""
        listed = self.num_edges if self.listed_edges is None else self.listed_edges
        return Statistics(
            nodes=self.num_nodes,
            edges=self.num_edges,
            listed_edges=listed,
            features=self.num_features,
            classes=self.num_classes,
            density=density(self.num_nodes, listed, directed=self.directed),
            homophily=edge_homophily(self.adjacency.edge_index, self.y),
            class_nodes=tuple(self.class_counts().tolist()),
            bytes=self.nbytes,
        )

    def with_setting(self, setting: Setting) -> SourceGraph:
        """The same graph used transductively or inductively; structural features are made anew."""
        if setting == "inductive" and self.transform.kind in ("tf-idf", "unit-columns") and setting != self.setting:
            raise GcondError(
                f"the {self.transform.kind} features of '{self.name}' have statistics of all nodes, and in the "
                "inductive setting only training nodes may count: load its raw data with setting='inductive'"
            )
        if self.transform.kind != "structural" or setting == self.setting:
            return dataclasses.replace(self, setting=setting)
        x, transform = structural_features(self.adjacency, tuple(map(self.mask, PARTS)), setting)
        return dataclasses.replace(self, setting=setting, x=compact(x), transform=transform)

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of every tensor and of the setting."""
        return fingerprint(self._tensors(), self.setting)

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"{part}_mask": self.mask(part) for part in PARTS} | {"y": self.y}
        tensors |= _pack("adjacency", self.adjacency)
        return tensors | (_pack("x", self.x) if isinstance(self.x, SparseMatrix) else {"x": self.x})

    @property
    def nbytes(self) -> int:
        """Bytes of everything the graph holds."""
        return sum(tensor.nbytes for tensor in self._tensors().values())

    def save(self, path: str | Path) -> None:
        """Write the graph to one safetensors file that :func:`gcond.load` reads back."""
        metadata = {
            "format": FORMAT_VERSION,
            "kind": "source",
            "shape": [self.num_nodes, self.num_features],
            "transform": self.transform.to_json(),
            "feature_names": self.feature_names,
            **{key: getattr(self, key) for key in _WRITTEN},
        }
        write_tensors(path, self._tensors() | (self.ids.tensors() if self.ids is not None else {}), metadata)

    @classmethod
    @with_usual_torch
    def load(cls, path: str | Path, *, labelled: bool = True) -> SourceGraph:
        """Read what :meth:`save` wrote, validating it as any other input; ``labelled`` as for :meth:`build`."""
        tensors, metadata = read_tensors(path)
        if metadata.get("kind") != "source":
            raise GcondError(f"'{path}' holds a {metadata.get('kind')} graph, and a source graph is needed here")
        try:
            shape = (int(metadata["shape"][0]), int(metadata["shape"][1]))
            adjacency = _unpack("adjacency", tensors, (shape[0], shape[0]))
            parts: dict[str, Any] = {part: tensors[f"{part}_mask"] for part in PARTS}
            return cls.build(
                x=tensors["x"] if "x" in tensors else _unpack("x", tensors, shape),
                edge_index=adjacency.edge_index,
                edge_weight=adjacency.values,
                y=tensors["y"],
                transform=FeatureTransform.from_json(metadata["transform"]),
                ids=NodeIds.from_tensors(tensors, shape[0]),
                feature_names=metadata.get("feature_names", ()),  # which older files lack
                labelled=labelled,
                copy=False,
                **parts,
                **{key: metadata[key] for key in _WRITTEN},
            )
        except KeyError as error:
            raise GcondError(f"'{path}' lacks {error}: it was not written whole by gcond") from None
        except GcondError as error:
            raise GcondError(f"'{path}' is not a usable source graph: {error}") from None
        except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RuntimeError):
            raise GcondError(f"'{path}' has damaged metadata: write it again with gcond") from None


def _few(names: Sequence[str], most: int = 6) -> str:
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])


def _pack(name: str, matrix: SparseMatrix) -> dict[str, Tensor]:
    return {f"{name}.indptr": matrix.indptr, f"{name}.indices": matrix.indices, f"{name}.values": matrix.values}


def _unpack(name: str, tensors: Mapping[str, Tensor], shape: tuple[int, int]) -> SparseMatrix:
    indptr, indices, values = (tensors[f"{name}.{part}"] for part in ("indptr", "indices", "values"))
    return checks.csr(f"the arrays of '{name}'", indptr, indices, values, shape)

"""A trained model: weights with all that is needed to use them, in one safetensors file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gcond import models
from gcond.condensed.origin import load_origin
from gcond.config import settings
from gcond.errors import GcondError
from gcond.graph import Setting, SourceGraph
from gcond.graph.feature_names import check_same_features, in_order
from gcond.graph.feature_treatment import treated
from gcond.graph.features import FeatureTransform
from gcond.graph.node_choice import NodePart, choose_nodes
from gcond.graph.node_ids import NodeIds
from gcond.graph.stored_graph import StoredGraph
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.runtime import notebook
from gcond.runtime.plain_text import counted
from gcond.runtime.tensor_file import FORMAT_VERSION, fingerprint, plain_names, read_tensors, write_tensors
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training.model_record import ModelRecord
from gcond.training.node_scores import computed_on, node_scores
from gcond.training.predictions import Predictions
from gcond.training.recipe import Recipe

if TYPE_CHECKING:
    from torch_geometric.data import Data

KIND = "model"


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A node classifier that was trained; :func:`gcond.train` makes one, and :func:`gcond.load_model` reads one.

    >>> model = gcond.train(small, on=graph)
    >>> model.predict(graph, nodes="unlabelled").save("predictions.csv")
    """

    model: Model
    """The architecture."""
    parameters: Parameters
    """Its weights by name, float32 on the CPU."""
    record: ModelRecord
    """How it came to be."""

    def __post_init__(self) -> None:
        expected = self.model.shapes(self.record.num_features, self.record.num_classes)
        for name, shape in expected.items():
            found = self.parameters.get(name)
            if found is None or found.shape != shape or found.dtype != torch.float32:
                has = "missing" if found is None else f"{found.dtype} {list(found.shape)}"
                raise GcondError(f"the weight '{name}' is {has}, and must be float32 {list(shape)}")
            if not bool(found.isfinite().all()):
                raise GcondError(f"the weight '{name}' has numbers that are not finite")
        if unknown := sorted(set(self.parameters) - set(expected)):
            raise GcondError(f"there is a weight '{unknown[0]}' that {self.model.name} does not have")
        names, classes = self.record.class_names, self.record.num_classes
        if names and len(names) != classes:
            raise GcondError(f"there are {len(names)} class names for {classes} classes")

    def __repr__(self) -> str:
        shown = settings.spelled(self.model.name, self.model)
        return f"TrainedModel({shown}, {counted(self.record.num_classes, 'class')}, trained on {self.trained_on})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        record = self.record
        return notebook.facts(
            f"Trained model {settings.spelled(self.model.name, self.model)}",
            {
                "trained on": self.trained_on,
                "takes": f"{record.num_features:,} features, {record.transform.get('kind')}, {record.setting}",
                "gives": ", ".join([*self.class_names[:6], *(["…"] if len(self.class_names) > 6 else [])]),
                "validation accuracy": notebook.percent(record.val_accuracy),
                "test accuracy": notebook.percent(record.test_accuracy),
                "seed": record.seed,
                "notes": "\n".join(record.notes),
            },
        )

    @property
    def trained_on(self) -> str:
        """The graph that it was trained on, in words."""
        on, source = self.record.trained_on, self.record.source.get("name", "")
        if on.get("method") == WHOLE:
            return f"the whole graph {source}"
        made = f"{on.get('method') or 'another tool'}"
        return f"{on.get('nodes', 0):,} nodes by {made} of {source}"

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, or their numbers as text where they have none."""
        return _names(self.record.class_names, self.record.num_classes)

    @property
    def sha256(self) -> str:
        """A fingerprint of the weights."""
        return fingerprint(self.parameters)

    @with_usual_torch
    def read(
        self,
        graph: SourceGraph | Data | str | Path,
        *,
        setting: Setting | None = None,
        data_dir: str | Path | None = None,
    ) -> SourceGraph:
        """``graph`` as the model takes it: in its setting, with its directions and with its feature transform.

        The transform is applied with the statistics that it had in training. Labels need not be there. Where features
        are columns of a table, they are found by their names, in whatever order. Features that were transformed
        otherwise, others, and other numbers of them are refused.
        """
        made = self.record
        read = partial(load_origin, made, graph, setting=setting, data_dir=data_dir, labelled=False)
        loaded = self._in_order(read(), read)
        transform = FeatureTransform.from_json(made.transform)
        if loaded.transform != transform:
            if loaded.transform.kind != "none":
                same = loaded.transform.kind == transform.kind
                raise GcondError(
                    f"the features of '{loaded.name}' were made {loaded.transform.kind}, and the model takes "
                    f"{transform.kind}{' with other statistics' if same else ''}: "
                    "give it raw data, to which the model applies its own transform"
                )
            loaded = treated(loaded, transform)
        if loaded.num_features != made.num_features:
            raise GcondError(
                f"'{loaded.name}' has {loaded.num_features} features, and the model takes {made.num_features}: "
                "give a graph with the features that it was trained on"
            )
        if made.structure and structure_of(loaded) != made.structure:
            raise GcondError(
                f"the model was trained on features made from the edges of '{made.source.get('name')}', which say "
                f"where in that graph a node is and nothing about '{loaded.name}': train on features of the nodes' own"
            )
        return loaded

    def _in_order(self, graph: SourceGraph, read: Callable[..., SourceGraph]) -> SourceGraph:
        """``graph`` with its columns where the model expects them; ``read`` gives it with its features as they are."""
        expected, own = self.record.feature_names, graph.feature_names
        if not expected or not own or own == expected:
            return graph
        check_same_features(graph, expected)
        if isinstance(graph, StoredGraph):
            raise GcondError(
                f"the features of '{graph.name}' are in another order than the model's, and they are streamed from "
                "its store: pack a table with its columns in the model's order"
            )
        # Statistics are those of columns, so they are put in order before anything is made of them.
        raw = graph if graph.transform.kind == "none" else read(features="none")
        return treated(in_order(raw, expected), FeatureTransform.from_json(self.record.transform))

    @with_usual_torch
    def predict(
        self,
        graph: SourceGraph | Data | str | Path,
        nodes: NodePart | Tensor | Sequence[int] | Sequence[str] | None = None,
        *,
        device: str = "auto",
        threads: int | None = None,
    ) -> Predictions:
        """The probability of each class for all nodes of ``graph``, or for some: the softmax of the model's scores,
        made as sure as validation nodes allow (:attr:`ModelRecord.sharpness`).

        ``graph`` is the source, or another graph with the same features, read by :meth:`read`. ``nodes`` are row
        numbers, a boolean mask, ids as its table has them (text), or a part: ``"train"``, ``"val"``, ``"test"`` or
        ``"unlabelled"``. In the inductive setting each part is computed on the graph induced by its own nodes.
        """
        source = self.read(graph)
        chosen = choose_nodes(source, nodes)
        classes = self.record.num_classes
        scores = node_scores(
            self.model, self.parameters, source, chosen, classes=classes, device=device, threads=threads
        )
        ids = source.ids if source.ids is not None else NodeIds.row_numbers(source.num_nodes)
        return Predictions(
            nodes=chosen,
            probabilities=(self.record.sharpness * scores).softmax(1),
            ids=ids.take(chosen),
            class_names=self.class_names,
            labels=source.y[chosen],
            label_names=_names(source.class_names, source.num_classes),
            computed_on=computed_on(source),
        )

    @with_usual_torch
    def to_pyg(self) -> torch.nn.Module:
        """A module of stock ``torch_geometric.nn`` layers with these weights and the same scores (extra ``pyg``).

        It takes ``x``, ``edge_index`` and ``edge_weight`` as ``SourceGraph.to_pyg()`` has them, and its dropout is that
        of the recipe once it is told to ``train()``. Scores times ``record.sharpness`` are those that the softmax of
        :meth:`predict` is of.
        """
        dropout = float(self.record.recipe.get("dropout", 0.0))
        made = self.record
        return self.model.to_pyg(self.parameters, dropout=dropout, weighted=made.weighted, directed=made.directed)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, atomically."""
        metadata: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "kind": KIND,
            "model": {"name": self.model.name, "settings": asdict(self.model)},
            "training": self.record.to_json(),
            "sha256": self.sha256,
        }
        write_tensors(path, self.parameters, metadata)

    @classmethod
    @with_usual_torch
    def load(cls, path: str | Path, model: type[Model] | None = None) -> TrainedModel:
        """Read what :meth:`save` wrote; anything else is refused with its reason.

        ``model`` is the class of a model of one's own, which gcond does not know by name.
        """
        if plain_names(path) is not None:
            raise GcondError(
                f"'{path}' is a safetensors file, but no model of gcond's: give one that gcond train wrote"
            )
        parameters, metadata = read_tensors(path)
        if (kind := metadata.get("kind")) != KIND:
            raise GcondError(
                f"'{path}' holds a {kind} graph, and a trained model is needed here: gcond train makes one"
            )
        try:
            said, record = metadata["model"], ModelRecord.from_json(metadata["training"])
            name = str(said["name"])
            architecture = settings.build(model or models.find(name), said["settings"], f"the model '{name}'")
            settings.build(Recipe, record.recipe, "its recipe")
            FeatureTransform.from_json(record.transform)
            if metadata["sha256"] != fingerprint(parameters):
                raise GcondError("its weights are not those that were written")
            return cls(architecture, parameters, record)
        except GcondError as error:
            raise GcondError(f"'{path}' is not a usable model: {error}") from None
        except (KeyError, TypeError, AttributeError):
            raise GcondError(f"'{path}' has damaged metadata: write it again with gcond") from None


WHOLE = "whole"
"""The method of a model that was trained on the source itself."""


@with_usual_torch
def load_model(path: str | Path, model: type[Model] | None = None) -> TrainedModel:
    """The model that :meth:`TrainedModel.save` or ``gcond train`` wrote; ``model`` is the class of one's own."""
    return TrainedModel.load(path, model)


def structure_of(graph: SourceGraph) -> str:
    """A fingerprint of the graph's edges."""
    edges = graph.adjacency
    return fingerprint({"indptr": edges.indptr, "indices": edges.indices, "values": edges.values})


def _names(names: Sequence[str], classes: int) -> tuple[str, ...]:
    return tuple(names) or tuple(map(str, range(classes)))

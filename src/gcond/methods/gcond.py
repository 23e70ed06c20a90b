"""GCond, and the algorithm that the other gradient-matching methods share with it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcond import models
from gcond.callbacks.callback import Callback
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.task import Task
from gcond.config import settings
from gcond.errors import DivergedError
from gcond.graph.labelled_view import LabelledView
from gcond.graph.sampling import Fanout
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import Adjacency, SparseMatrix
from gcond.matching.cost_estimate import step_work
from gcond.matching.distance import Distance, distance
from gcond.matching.gradients import by_columns, class_gradients
from gcond.matching.inner_loop import train_backbone
from gcond.matching.loop import Run
from gcond.matching.memory_estimate import check_memory
from gcond.matching.probe import Probe, probe_interval
from gcond.matching.schedule import Order, Schedule
from gcond.matching.source_side import Batches, Sampling, real_side
from gcond.matching.start import HOPS, Init, initial_features, root_mean_square
from gcond.matching.structure import FreeStructure, PairwiseMLP, Structure, sparsify
from gcond.matching.synthetic import Rates, Synthetic
from gcond.methods.method import Method
from gcond.models.model import Model
from gcond.runtime.memory import parse_bytes
from gcond.runtime.seeds import generator

# What `init="auto"` tries, and for how long. The last is taken where there are no probes.
STARTS: tuple[Init, ...] = ("sample", "propagated-means")
TRIAL_EPOCHS = 5
# What a node's edges weigh together at the start, beside its self-loop of 1.
AUTO_EDGES = 1.0


@dataclass(frozen=True)
class GradientMatching(Method):
    """Algorithm 1 of the paper, whatever A' is.

    A graph is good if a model that learns on it is pushed the same way as on the source. So for many fresh
    models, and at many points of their training on the condensed graph, the gradient of each class there is
    compared with the source's, and the condensed graph moves to bring them together.
    """

    kind: ClassVar[Literal["learned"]] = "learned"
    auto_rate: ClassVar[float] = 0.03
    """What a step may change X' by, as a share of the root mean square that it starts with (released: 0.01 to 0.1)."""

    epochs: int = 60
    """At most so many fresh backbones, K in Algorithm 1 (released: 600; ours stops by the probe).
    0 gives the start itself, to compare with."""
    outer: int = 20
    """Matching steps for each of them, T (released: 20 for the citation graphs)."""
    inner: int = 15
    """Steps that the backbone trains after each matching step, τ_θ (released: 15 for Cora and CiteSeer)."""
    lr_features: float | Literal["auto"] = "auto"
    """Adam's rate for X'; ``auto`` is a share of the scale that X' starts with, so that any unit of measure will do."""
    lr_model: float = 0.01
    """Adam's rate for the backbone (released)."""
    backbone: Literal["sgc", "gcn", "sage", "appnp", "cheby"] = "sgc"
    """The model whose gradients are matched; SGC in most of the paper."""
    layers: int | None = None
    """Layers with weights; by default 1 for SGC and 2 for the others."""
    hidden: int = 256
    """Width of the backbone's hidden layers (paper)."""
    hops: int | None = None
    """Propagations of SGC (2 by default) or APPNP (10)."""
    distance: Distance = "column-cosine"
    """Between two gradients; the paper's is ``column-cosine``."""
    class_weights: bool = True
    """Weigh class c by its share of nodes, n_c / max n (released)."""
    init: Init | Literal["auto"] = "auto"
    """Where X' starts; ``sample`` is the paper's, labelled nodes of the class. ``auto`` tries that and
    ``propagated-means`` for a few epochs each and goes on with the one that the probe likes better."""
    sampling: Sampling = "auto"
    """``never``: exact gradients of all labelled nodes. ``always``: batches with sampled neighbours, as released.
    ``auto``: batches only where exact gradients take more than ``memory``."""
    batch: int = 256
    """Labelled nodes of a class in a batch (released)."""
    fanout: tuple[int, ...] = (10, 5)
    """Neighbours drawn a node, hop by hop (released, for two layers)."""
    fanout_scaled: bool = True
    """Weigh sampled neighbours so that sums are right on average; ``False`` is what the released code does."""
    memory: str = "2GB"
    """What the largest intermediate results may take; more work is done in blocks or batches beyond it."""
    probe_every: int = 5
    """Epochs between two validation probes; 0 turns them and early stopping off, and the last state is kept."""
    probe_share: float = 0.3
    """Probes are rarer where they would be more than this share of the estimated work (``matching/cost_estimate.py``).
    By the clock it may be more, 40 to 50 % on Cora: steps as small as a probe's cost more than their arithmetic. The
    probes of the start, of the last epoch and of ``init=auto`` come on top."""
    patience: int = 4
    """Stop after so many probes without a better one; 0 never stops early."""

    def __post_init__(self) -> None:
        positive = {"outer": self.outer, "batch": self.batch, "lr_model": self.lr_model}
        if self.lr_features != "auto":
            positive["lr_features"] = self.lr_features
        for name, value in positive.items():
            if value <= 0:
                raise ValueError(f"{name} must be positive")
        for name, value in {
            "epochs": self.epochs,
            "inner": self.inner,
            "probe_every": self.probe_every,
            "patience": self.patience,
        }.items():
            if value < 0:
                raise ValueError(f"{name} must not be negative")
        if not 0 < self.probe_share < 1:
            raise ValueError("probe_share must be above 0 and below 1")
        # These refuse what cannot be built, and should do so before the work starts.
        self.model()
        Fanout(self.fanout, self.fanout_scaled)
        parse_bytes(self.memory)

    def model(self) -> Model:
        """The backbone."""
        chosen: dict[str, Any] = {"hidden": self.hidden}
        chosen |= {key: value for key, value in {"layers": self.layers, "hops": self.hops}.items() if value is not None}
        return settings.build(models.find(self.backbone), chosen, f"backbone '{self.backbone}'")

    @abstractmethod
    def structure_for(self, task: Task) -> Structure:
        """How A' comes about."""

    def source_view(self, task: Task) -> LabelledView:
        """What of the source is matched."""
        return task.train

    def source_hops(self) -> int:
        """How far the features of the whole source are propagated before they are matched."""
        return 0 if self.sampling == "always" else self.model().precomputed

    def turns(self) -> Schedule:
        """Which of X' and Φ learns when."""
        return Schedule("joint")

    def rates(self, x: Tensor) -> Rates:
        """Learning rates of X', which starts as ``x``, and of Φ."""
        own = self.lr_features
        return Rates(self.auto_rate * (root_mean_square(x) or 1.0) if own == "auto" else own)

    def ship(self, adjacency: Adjacency) -> Adjacency:
        """A' as it is saved and trained on."""
        return adjacency

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        init = self.init if self.init != "auto" else self.best_start(task, callbacks)
        synthetic = self.start(task, init)
        run = self.learn(task, synthetic, callbacks, start=init, tried=self.tries_starts())
        task.notes.start, task.notes.history = init, run.history
        return synthetic.finish(self.ship)

    def start(self, task: Task, init: Init) -> Synthetic:
        """X' and Φ before anything is learned."""
        structure = self.structure_for(task)
        self.check_memory(task, structure, int(task.quota.sum()), init)
        x = initial_features(task, init)
        phi = structure.init(len(x), x.shape[1], generator(task.seed, "structure"))
        return Synthetic(x, task.labels, structure, phi, self.rates(x)).to(task.train.y.device)

    def check_memory(self, task: Task, structure: Structure, nodes: int, init: Init) -> None:
        """Refuse a condensation to ``nodes`` nodes from the start ``init`` that does not fit into memory."""
        hops = {self.source_hops(), HOPS if init == "propagated-means" else 0}
        probe_hops = Probe.model.precomputed if self.probe_every else 0
        check_memory(task, structure, nodes, self.model(), hops=hops, probe_hops=probe_hops)

    def tries_starts(self) -> bool:
        """Whether there are several starts, a way to tell which is better, and time to."""
        return self.init == "auto" and self.probe_every > 0 and self.epochs > TRIAL_EPOCHS

    def best_start(self, task: Task, callbacks: Sequence[Callback] = ()) -> Init:
        """The start from which a few epochs lead furthest, by the validation probe; without probes, the safer one."""
        if not self.tries_starts():
            return STARTS[-1]
        chosen = {callback.recall_start(task.identity) for callback in callbacks}
        if known := [init for init in STARTS if init in chosen]:
            return known[0]
        followers = [callback for callback in callbacks if callback.follows_trials]
        trial = replace(self, epochs=TRIAL_EPOCHS, probe_every=TRIAL_EPOCHS, patience=0)
        reached = []
        for init in STARTS:
            try:
                tried = trial.learn(task, trial.start(task, init), followers, start=init, trial=True)
                reached.append(tried.best_accuracy)
            except DivergedError:
                reached.append(0.0)
        return STARTS[reached.index(max(reached))]

    def learn(
        self,
        task: Task,
        synthetic: Synthetic,
        callbacks: Sequence[Callback] = (),
        *,
        start: str = "",
        trial: bool = False,
        tried: bool = False,
        ship: Callable[[Adjacency], Adjacency] | None = None,
    ) -> Run:
        """Algorithm 1: bring the class gradients on ``synthetic`` to those on the source.

        Probes look at A' as ``ship`` leaves it, :meth:`ship` by default; the other names are those of
        :class:`~gcond.matching.loop.Run`.
        """
        model, classes, y = self.model(), task.num_classes, synthetic.y
        sizes = torch.bincount(y, minlength=classes)
        weight = sizes / sizes.max() if self.class_weights else torch.ones(classes, device=y.device)
        source = real_side(model, self.source_view(task), classes, task.seed, self.batches())
        schedule = self.turns()
        features = task.train.inputs.num_features

        def match(k: int) -> Iterator[float]:
            theta = model.init(features, classes, generator(task.seed, f"backbone {k}"))  # θ₀ ~ P
            theta = by_columns({key: tensor.to(y.device) for key, tensor in theta.items()})
            optimiser = Adam(theta, self.lr_model * synthetic.rate)
            synthetic.learn(*schedule.learns(k))
            small = synthetic.labelled()  # X', and A' = g_Φ(X')
            for t in range(self.outer):
                real = source.gradients(theta, f"{k}/{t}")
                ours = class_gradients(model, theta, small, classes)
                loss = weight @ distance(self.distance, real, ours)
                synthetic.update(loss)  # X' or Φ, whose turn it is
                yield loss.item()
                if t + 1 < self.outer:  # after the last step nobody would look at θ any more
                    small = synthetic.labelled()
                    train_backbone(model, theta, optimiser, small.detached(), classes=classes, steps=self.inner)

        def probe() -> float:
            return quick.accuracy(synthetic.view(ship or self.ship))

        quick = Probe(task.val, classes, task.seed)
        work = self.outer * (
            source.work() + synthetic.work() + self.inner * step_work(model, synthetic.view(), classes)
        )
        run = Run(
            synthetic,
            match,
            epochs=self.epochs,
            steps=self.outer,
            identity=task.identity,
            start=start,
            trial=trial,
            tried=tried,
            stopwatch=task.notes.stopwatch,
            probe=probe if self.probe_every else None,
            probe_every=probe_interval(self.probe_every, self.probe_share, work, quick.work(synthetic.view())),
            patience=self.patience,
            callbacks=callbacks,
        )
        run.go()
        return run

    def batches(self) -> Batches:
        """How the source is looked at."""
        return Batches(self.sampling, self.batch, Fanout(self.fanout, self.fanout_scaled), parse_bytes(self.memory))


@dataclass(frozen=True)
class GCond(GradientMatching):
    r"""Features and structure, learned so that a GNN's gradients on them match those on the source graph.

    .. math:: \min_{X', Φ} E_{θ_0 \sim P} \sum_{t<T} \sum_c
              D\big(∇_θ L(\mathrm{GNN}_{θ_t}(g_Φ(X'), X'), Y'_c),\; ∇_θ L(\mathrm{GNN}_{θ_t}(A, X), Y_c)\big)

    with ``A' = g_Φ(X')`` by an MLP on every pair of nodes, ``X'`` and ``Φ`` taking turns, and ``θ`` trained on the
    condensed graph between two steps. At the end, weights of A' up to ``delta`` are dropped.
    """

    name: ClassVar[str] = "gcond"
    summary: ClassVar[str] = "features and structure learned by matching gradients"
    citation: ClassVar[str] = "Jin et al., Graph Condensation for Graph Neural Networks, ICLR 2022"

    structure: Literal["mlp", "free"] = "mlp"
    """A' as a function of X' by a pairwise MLP, or as free numbers, the paper's ablation."""
    structure_hidden: int = 128
    """Width of the pairwise MLP (released: 128, and 256 for the three large graphs)."""
    edge_bias: float | Literal["auto"] = "auto"
    """Its last bias at the start. At 0, as released, A' starts as a full graph of weights about 0.5, in which all
    nodes look alike after two propagations; with ``auto`` a node's edges weigh 1 in all, as much as its self-loop."""
    lr_structure: float = 1e-4
    """Adam's rate for Φ (released, for the citation graphs)."""
    schedule: Order = "structure-first"
    """Who has the first turn, or ``joint`` for both at every step."""
    features_epochs: int = 8
    """Epochs of one turn of X', τ₁ (released: 40)."""
    structure_epochs: int = 2
    """Epochs of one turn of Φ, τ₂ (released: 10, so the same share)."""
    delta: float = 0.05
    """Weights of A' up to this are dropped at the end (paper: 0.05 for small graphs and 0.01 for large
    ones, and up to 0.8 in its sweep)."""
    sparsify: Literal["threshold", "shrink"] = "threshold"
    """``threshold`` keeps the others as they are; ``shrink`` is the paper's ReLU(A' - δ)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.structure_hidden < 1 or self.lr_structure <= 0:
            raise ValueError("structure_hidden must be at least 1, and lr_structure positive")
        if not 0 <= self.delta < 1:
            raise ValueError("delta must be at least 0 and below 1")
        self.turns()

    def structure_for(self, task: Task) -> Structure:
        adjacency = task.train.inputs.adjacency
        symmetric = not isinstance(adjacency, SparseMatrix) or adjacency.symmetric
        bias = math.log(AUTO_EDGES / int(task.quota.sum())) if self.edge_bias == "auto" else self.edge_bias
        if self.structure == "free":
            return FreeStructure(symmetric, bias)
        return PairwiseMLP(self.structure_hidden, symmetric, bias, parse_bytes(self.memory))

    def turns(self) -> Schedule:
        return Schedule(self.schedule, self.features_epochs, self.structure_epochs)

    def rates(self, x: Tensor) -> Rates:
        return replace(super().rates(x), structure=self.lr_structure)

    def ship(self, adjacency: Adjacency) -> Adjacency:
        assert isinstance(adjacency, Tensor)
        return sparsify(adjacency, self.delta, shrink=self.sparsify == "shrink")

"""Gradient matching: Algorithm 1 of the paper, which gcond, gcond-x and dc-graph share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gcond import models
from gcond.condensed import CondensedGraph, Task
from gcond.condensed.provenance import KEPT_EPOCH
from gcond.config import settings
from gcond.config.metric import Metric
from gcond.config.settings import LATER
from gcond.errors import DivergedError
from gcond.graph import LabelledView
from gcond.graph.sampling import Fanout
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import Adjacency
from gcond.matching.callback import Callback
from gcond.matching.cost_estimate import step_work
from gcond.matching.distance import DISTANCES, Distance
from gcond.matching.gradients import by_columns, class_gradients
from gcond.matching.inner_loop import train_backbone
from gcond.matching.memory_estimate import check_memory
from gcond.matching.probe import Probe, probe_interval
from gcond.matching.run import Run, TakenBackError
from gcond.matching.schedule import Schedule
from gcond.matching.source_side import Batches, FullBatch, SampledBatches, Sampling, real_side
from gcond.matching.start import HOPS, Init, initial_features, root_mean_square
from gcond.matching.structure import Structure
from gcond.matching.synthetic import NotFiniteError, Rates, Synthetic
from gcond.methods.clusters import Clustered, Clusters
from gcond.methods.method import Method
from gcond.models import Model
from gcond.runtime.memory import parse_bytes
from gcond.runtime.seeds import generator
from gcond.teaching import TeacherName
from gcond.training.largest_product import largest_product

# What `init="auto"` tries, and for how long. The last is taken where there are no probes.
STARTS: tuple[Init, ...] = ("sample", "propagated-means")
TRIAL_EPOCHS = 5


@dataclass(frozen=True)
class GradientMatching(Method):
    """Algorithm 1 of the paper, whatever A' is.

    A graph is good if a model that learns on it is pushed the same way as on the source. So for many fresh
    models, and at many points of their training on the condensed graph, the gradient of each class there is
    compared with the source's, and the condensed graph moves to bring them together.
    """

    kind: ClassVar[Literal["learned"]] = "learned"
    auto_rate: ClassVar[float] = 0.03
    """Change of X' in one step, as a share of the root mean square that it starts with (released: 0.01 to 0.1)."""

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
    teacher: TeacherName | Literal["none"] = "ridge"
    """Who labels the source's unlabelled nodes (:mod:`gcond.teaching`), so that all nodes are matched; ``none`` matches
    the labelled ones alone, as the paper does."""
    init: Init | Literal["auto"] = "clusters"
    """Where X' starts; ``clusters`` is what the method of that name makes, soft labels included. ``sample`` is the
    paper's, labelled nodes of the class. ``auto`` tries that and ``propagated-means`` for a few epochs each and goes
    on with the one that the probe likes better."""
    entries: int = 0
    """Entries of each row of X' that are kept while it learns, its largest; the others are zero. 0 keeps all
    (``--compact`` chooses by validation)."""
    sampling: Sampling = "auto"
    """``never``: exact gradients of all labelled nodes. ``always``: batches with sampled neighbours, as released.
    ``auto``: batches only where exact gradients take more than ``memory``."""
    batch: int = 256
    """Labelled nodes per class in a batch (released)."""
    fanout: tuple[int, ...] = (10, 5)
    """Neighbours drawn per node, hop by hop (released, for two layers)."""
    fanout_scaled: bool = True
    """Weigh sampled neighbours so that sums are right on average; ``False`` is what the released code does."""
    memory: str = "2GB"
    """Memory for the largest intermediate results; more work is done in blocks or batches beyond it."""
    probe_every: int = 5
    """Epochs between two validation probes; 0 turns them and early stopping off, and the last state is kept."""
    probe_share: float = 0.3
    """Probes are rarer where they would be more than this share of the estimated work (``matching/cost_estimate.py``).
    By the clock it may be more, 40 to 50 % on Cora: steps as small as a probe's cost more than their arithmetic. The
    probes of the start, of the last epoch and of ``init=auto`` come on top."""
    patience: int = 4
    """Stop after so many probes without a better one; 0 never stops early."""
    metric: Metric = field(default="accuracy", metadata=LATER)
    """What is best on the validation nodes, wherever they choose: ``accuracy``, or ``macro-f1`` or
    ``balanced-accuracy``, for which rare classes count as much as frequent ones."""

    def __post_init__(self) -> None:
        for name in ("outer", "batch", "lr_model", "lr_features"):
            if (value := getattr(self, name)) != "auto" and value <= 0:
                raise ValueError(f"{name} must be positive")
        for name in ("epochs", "inner", "entries", "probe_every", "patience"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if not 0 < self.probe_share < 1:
            raise ValueError("probe_share must be above 0 and below 1")
        if self.init == "clusters" and self.teacher == "none":
            raise ValueError("init=clusters needs a teacher: give one, or another init")
        # These refuse what cannot be built, and should do so before the work starts.
        self.model()
        Fanout(self.fanout, self.fanout_scaled)
        parse_bytes(self.memory)

    def model(self) -> Model:
        """The backbone."""
        shape = {"hidden": self.hidden, "layers": self.layers, "hops": self.hops}
        given = {key: value for key, value in shape.items() if value is not None}
        return settings.build(models.find(self.backbone), given, f"backbone '{self.backbone}'")

    @abstractmethod
    def structure_for(self, task: Task) -> Structure:
        """The way in which A' comes about."""

    def source_view(self, task: Task) -> LabelledView:
        """The part of the source that is matched: all nodes by the teacher's labels, or the labelled ones."""
        return task.train if task.taught is None else task.taught

    def source_hops(self) -> int:
        """Propagations of the features of the whole source before they are matched."""
        return 0 if self.sampling == "always" else self.model().precomputed

    def turns(self) -> Schedule:
        """The turns of X' and Φ."""
        return Schedule("joint")

    def rates(self, x: Tensor) -> Rates:
        """Learning rates of X', which starts as ``x``, and of Φ."""
        own = self.lr_features
        return Rates(self.auto_rate * (root_mean_square(x) or 1.0) if own == "auto" else own)

    def ship(self, adjacency: Adjacency) -> Adjacency:
        """A' as it is saved and trained on."""
        return adjacency

    def largest_product(self, task: Task) -> float:
        # Of a step of the loop alone: a probe, and propagating the source, are rare beside it.
        nodes, features = int(task.quota.sum()), task.train.inputs.num_features
        structure = self.structure_for(task).largest_product(nodes, features)
        if self.sampling == "always":
            return structure
        view = self.source_view(task)
        if self.teacher != "none":  # all nodes will be matched, whatever their labels
            everyone = torch.arange(view.inputs.num_nodes, device=view.y.device)
            view = replace(view, nodes=everyone, y=torch.zeros_like(everyone))
        return max(structure, largest_product(self.model(), view, task.num_classes))

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        clustered = self.clustered(task)
        task = self.labelled(task) if clustered is None else clustered.task
        before = task.interrupted
        init = self.choose_start(task, callbacks) if before is None else before.state["start"]
        synthetic = self.start(task, init, clustered)
        run = self.learn(task, synthetic, callbacks, start=init)
        task.notes.start, task.notes.history, task.notes.ended = init, run.history, run.reason
        if run.kept is not None:
            task.notes.choices[KEPT_EPOCH] = run.kept
        small = self.finished(task, synthetic)
        return small if clustered is None else replace(small, cluster=clustered.graph.cluster)

    def probes_after(self) -> int:
        """Probes that :meth:`finished` takes, for which a deadline leaves time."""
        return 0

    def finished(self, task: Task, synthetic: Synthetic) -> CondensedGraph:
        """The condensed graph, of what the run has kept."""
        return synthetic.finish(self.ship)

    def clustered(self, task: Task) -> Clustered | None:
        """The clusters that X' starts from, and the task as their teacher labels it; ``None`` for any other start.

        Their nodes per class go with their soft labels. Other starts have hard ones, and the quota of the task.
        """
        if self.init != "clusters":
            return None
        assert self.teacher != "none", "refused when the settings were made"
        return Clusters(teacher=self.teacher, metric=self.metric).prepared(task)

    def labelled(self, task: Task) -> Task:
        """The task with all nodes labelled by the teacher; as it is without one."""
        return task if self.teacher == "none" else Clusters(teacher=self.teacher, metric=self.metric).labelled(task)

    def start(self, task: Task, init: Init, clustered: Clustered | None = None) -> Synthetic:
        """X' and Φ before anything is learned."""
        structure = self.structure_for(task)
        self.check_memory(task, structure, int(task.quota.sum()), init)
        shown = None
        if init == "clusters":
            assert clustered is not None, "a run from clusters has made them before"
            x = clustered.graph.x
            shown = clustered.graph.y if clustered.graph.y.dim() == 2 else None
        else:
            x = initial_features(task, init)
        phi = structure.init(len(x), x.shape[1], generator(task.seed, "structure"))
        synthetic = Synthetic(x, task.labels, structure, phi, self.rates(x), shown=shown, entries=self.entries or None)
        return synthetic.to(task.train.y.device)

    def check_memory(self, task: Task, structure: Structure, nodes: int, init: Init) -> None:
        """Refuse a condensation to ``nodes`` nodes from the start ``init`` that does not fit into memory."""
        hops = {self.source_hops(), HOPS if init == "propagated-means" else 0}
        probe_hops = Probe(task.val, task.num_classes, task.seed).precomputed if self.probe_every else 0
        check_memory(task, structure, nodes, self.model(), hops=hops, probe_hops=probe_hops)

    def choose_start(self, task: Task, callbacks: Sequence[Callback] = ()) -> Init:
        """The start from which a few epochs lead furthest, by the validation probe; without probes, the safer one."""
        if self.init != "auto":
            return self.init
        if not self.probe_every or self.epochs <= TRIAL_EPOCHS:
            return STARTS[-1]
        short = replace(self, epochs=TRIAL_EPOCHS, probe_every=TRIAL_EPOCHS, patience=0)

        def reached(init: Init) -> float:
            listeners = [each for callback in callbacks if (each := callback.for_trial(init)) is not None]
            try:
                run = short.learn(task, short.start(task, init), listeners, start=init, probe_start=False)
            except DivergedError:
                return 0.0
            return max(0.0, run.best_accuracy)  # 0 where a callback ended it before there was one

        found = {init: reached(init) for init in STARTS}
        return max(STARTS, key=found.__getitem__) if any(found.values()) else STARTS[-1]

    def learn(
        self,
        task: Task,
        synthetic: Synthetic,
        callbacks: Sequence[Callback] = (),
        *,
        start: str = "",
        ship: Callable[[Adjacency], Adjacency] | None = None,
        probe_start: bool = True,
    ) -> Run:
        """Algorithm 1: bring the class gradients on ``synthetic`` to those on the source.

        Probes look at A' as ``ship`` leaves it, :meth:`ship` by default; ``start`` and ``probe_start`` are those of
        :class:`~gcond.matching.run.Run`.
        """
        model, classes, device = self.model(), task.num_classes, synthetic.y.device
        sizes = torch.bincount(synthetic.y, minlength=classes)
        weight = sizes / sizes.max() if self.class_weights else torch.ones(classes, device=device)
        source = real_side(model, self.source_view(task), classes, task.seed, self.batches())
        probe = Probe(task.val, classes, task.seed, self.metric, importance=task.importance)
        run = Run(
            synthetic,
            epochs=self.epochs,
            steps=self.outer,
            identity=task.identity,
            start=start,
            stopwatch=task.notes.stopwatch,
            interrupted=task.interrupted,
            probe=(lambda: probe.accuracy(synthetic.view(ship or self.ship))) if self.probe_every else None,
            probe_start=probe_start,
            clearly=probe.clearly_more if start == "clusters" else lambda reached: reached,
            metric=self.metric,
            probes_after=self.probes_after(),
            probe_every=self.probe_interval(source, synthetic, probe),
            patience=self.patience,
            callbacks=callbacks,
        )
        for k in run.epochs_left():  # probes the start before the first, and ends by patience, callbacks or the last
            theta = model.init(task.train.inputs.num_features, classes, generator(task.seed, f"backbone {k}"))  # θ₀ ~ P
            theta = by_columns({key: tensor.to(device) for key, tensor in theta.items()})
            optimiser = Adam(theta, self.lr_model * run.rate)
            synthetic.learn(*self.turns().learns(k))
            small = synthetic.labelled()  # X', and A' = g_Φ(X')
            try:
                for t in range(self.outer):
                    real = source.gradients(theta, f"{k}/{t}")
                    ours = class_gradients(model, theta, small, classes)
                    loss = weight @ DISTANCES[self.distance](real, ours)
                    synthetic.update(loss)  # X' or Φ, whose turn it is
                    run.stepped(loss.item())
                    if t + 1 < self.outer:  # after the last step nobody would look at θ any more
                        small = synthetic.labelled()
                        train_backbone(model, theta, optimiser, small.detached(), classes=classes, steps=self.inner)
            except TakenBackError:
                run.take_back()  # there is no time for the rest of epoch k
            except NotFiniteError:
                run.retry()  # epoch k again, from where it began, at half the rates
            else:
                run.finish_epoch()  # and probe X' and A', where that is due
        return run

    def probe_interval(self, source: FullBatch | SampledBatches, synthetic: Synthetic, probe: Probe) -> int:
        """Epochs between two probes, by the estimated work of an epoch and of a probe."""
        small, classes = synthetic.view(), probe.classes
        step = source.work() + synthetic.work() + self.inner * step_work(self.model(), small, classes)
        return probe_interval(self.probe_every, self.probe_share, self.outer * step, probe.work(small))

    def batches(self) -> Batches:
        """The way to look at the source."""
        return Batches(self.sampling, self.batch, Fanout(self.fanout, self.fanout_scaled), parse_bytes(self.memory))

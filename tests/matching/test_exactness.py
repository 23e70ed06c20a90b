"""The fast path against Algorithm 1 as the paper has it (tests/reference/algorithm1.py), in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import pytest
import scipy.sparse
import torch

from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import SparseMatrix, dense
from gcond.matching.callback import Callback
from gcond.matching.distance import DISTANCES
from gcond.matching.gradients import class_gradients
from gcond.matching.inner_loop import train_backbone
from gcond.matching.source_side import FullBatch
from gcond.matching.structure import FreeStructure, NoStructure, PairwiseMLP
from gcond.matching.synthetic import Rates, Synthetic
from gcond.methods.gcond import GCond
from gcond.methods.gcond_x import GCondX
from gcond.methods.method import Task
from gcond.models.appnp import APPNP
from gcond.models.cheby import Cheby
from gcond.models.gcn import GCN
from gcond.models.sage import SAGE
from gcond.models.sgc import SGC
from gcond.runtime.seeds import generator
from reference import algorithm1

CLASSES = 3
LABELS = torch.tensor([0, 2, 0, 1, 1, 0, 2])  # not in order of class, as after growing
BACKBONES = [
    SGC(),
    SGC(hops=3),
    SGC(layers=2, hidden=7),
    GCN(layers=1),
    GCN(hidden=7),
    GCN(layers=3, hidden=7),
    SAGE(layers=1),
    SAGE(hidden=7),
    APPNP(hidden=7),
    APPNP(layers=3, hidden=7, hops=3),
    Cheby(layers=1),
    Cheby(hidden=7, order=3),
]
# What makes A', the same in the reference, and whether the source is directed.
STRUCTURES = {
    "mlp": (PairwiseMLP(hidden=6), algorithm1.pairwise_mlp, False),
    "mlp in blocks": (PairwiseMLP(hidden=6, memory=2 * 5 * 7 * 6 * 8), algorithm1.pairwise_mlp, False),
    "mlp, directed": (
        PairwiseMLP(hidden=6, symmetric=False),
        partial(algorithm1.pairwise_mlp, symmetric=False),
        True,
    ),
    # A sparse A', whose candidate pairs are all pairs.
    "mlp of neighbours": (PairwiseMLP(hidden=6, neighbours=6), algorithm1.pairwise_mlp, False),
    "mlp of neighbours, directed": (
        PairwiseMLP(hidden=6, symmetric=False, neighbours=6),
        partial(algorithm1.pairwise_mlp, symmetric=False),
        True,
    ),
    "free": (FreeStructure(), algorithm1.free, False),
    "free, directed": (FreeStructure(symmetric=False), partial(algorithm1.free, symmetric=False), True),
    "none": (NoStructure(), algorithm1.identity, False),
}
near = partial(torch.testing.assert_close, rtol=1e-8, atol=1e-8)


@pytest.fixture
def double():
    """Whatever is made from nothing, weights above all, is float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@dataclass(frozen=True)
class Case:
    """One problem for both: the source as a view, and where X', Φ and θ start."""

    view: LabelledView
    structure: object
    literal: object
    x: torch.Tensor
    phi: dict[str, torch.Tensor]

    def synthetic(self, **rates: float) -> Synthetic:
        return Synthetic(self.x, LABELS, self.structure, self.phi, Rates(**({"features": 0.01} | rates)))

    def copies(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """X' and Φ for the reference."""
        phi = {key: tensor.detach().clone() for key, tensor in self.phi.items()}
        return self.x.detach().clone(), algorithm1.literal_phi(phi) if "gamma0" in phi else phi

    def real(self, model) -> algorithm1.Real:
        inputs = self.view.inputs
        operator = algorithm1.normalise(model, inputs.adjacency.to_dense())
        return algorithm1.Real(dense(inputs.x), operator, self.view.nodes, self.view.y)


@pytest.fixture
def make_case(make_graph, double):
    def make(structure: str = "mlp", features: str = "dense", seed: int = 0) -> Case:
        made, literal, directed = STRUCTURES[structure]
        density = 0.3 if features == "sparse" else 1.0
        graph = make_graph(sizes=(20, 12, 8), directed=directed, weighted=True, density=density, seed=seed)
        x = dense(graph.x).double()
        if features == "sparse":
            x = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy()))
        train = graph.view("train")
        inputs = Inputs(x, train.inputs.adjacency.to(dtype=torch.float64))
        stream = generator(seed, "case")
        phi = made.init(len(LABELS), 12, stream)
        # Off their special values: a γ that is not 1, a β that is not 0.
        phi = {key: tensor + 0.3 * torch.randn(tensor.shape, generator=stream) for key, tensor in phi.items()}
        own = torch.randn(len(LABELS), 12, generator=stream)
        return Case(replace(train, inputs=inputs), made, literal, own, phi)

    return make


def weights_of(model, seed: int = 0) -> dict[str, torch.Tensor]:
    """Fresh weights, with biases that are not zero."""
    stream = generator(seed, "weights")
    fresh = model.init(12, CLASSES, stream)
    return {
        key: tensor if tensor.dim() > 1 else torch.randn(tensor.shape, generator=stream)
        for key, tensor in fresh.items()
    }


def assert_same_match(case: Case, model, theta) -> None:
    """Class gradients of both sides and, for every distance, the loss and its gradient for X' and each part of Φ."""
    synthetic = case.synthetic()
    synthetic.learn(True, True)
    real = FullBatch(model, case.view, CLASSES).gradients(theta, "")
    ours = class_gradients(model, theta, synthetic.labelled(), CLASSES)

    x, phi = case.copies()
    for tensor in (x, *phi.values()):
        tensor.requires_grad_()
    literal = {key: tensor.clone().requires_grad_() for key, tensor in theta.items()}
    gradients = algorithm1.class_gradients(
        model, literal, case.real(model), x=x, y=LABELS, adjacency=case.literal(phi, x)
    )
    for place, key in enumerate(theta):
        near(real[key], torch.stack([theirs[place] for theirs, _ in gradients]))
        near(ours[key], torch.stack([own[place] for _, own in gradients]))

    sizes = torch.bincount(LABELS)
    for kind, literal_distance in algorithm1.DISTANCES.items():
        loss = (sizes / sizes.max()) @ DISTANCES[kind](real, ours)
        expected = algorithm1.total(literal_distance, gradients, LABELS)
        near(loss, expected, msg=lambda text, kind=kind: f"loss by {kind}: {text}")
        found = derivatives(loss, {"x": case.x} | case.phi)
        wanted = derivatives(expected, {"x": x} | phi)
        assert found["x"].abs().max() > 1e-4
        for key, tensor in wanted.items():
            # Batch normalisation takes these biases out again, which is why the fast path has none.
            own = found.get(key, torch.zeros_like(tensor)) if key in {"bias0", "bias1"} else found[key]
            near(own, tensor, msg=lambda text, kind=kind, key=key: f"{key} by {kind}: {text}")


def derivatives(loss, tensors):
    found = torch.autograd.grad(loss, list(tensors.values()), retain_graph=True)
    return dict(zip(tensors, found, strict=True))


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("model", BACKBONES, ids=repr)
def test_equals_algorithm_1(model, structure, make_case):
    assert_same_match(make_case(structure), model, weights_of(model))


@pytest.mark.parametrize("model", BACKBONES, ids=repr)
def test_equals_it_on_sparse_features(model, make_case):
    assert_same_match(make_case(features="sparse"), model, weights_of(model))


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("model", [SGC(), GCN(hidden=7), SAGE(hidden=7)], ids=repr)
def test_equals_it_where_few_nodes_are_labelled(model, features, make_case):
    """The fast path then looks at a part of the graph only."""
    case = make_case(features=features)
    chosen = torch.stack([(case.view.y == label).nonzero()[0, 0] for label in range(CLASSES)])
    view = replace(case.view, nodes=case.view.nodes[chosen], y=case.view.y[chosen])
    assert view.focus(1, 0).inputs.num_nodes < 0.9 * view.inputs.num_nodes
    assert_same_match(replace(case, view=view), model, weights_of(model))


DYING = [GCN(hidden=7), SGC(layers=2, hidden=7), APPNP(hidden=7)]


@pytest.mark.parametrize("model", DYING, ids=repr)
def test_equals_it_where_a_unit_is_never_active(model, make_case):
    """Its column of the gradient is exactly zero on both sides."""
    theta = weights_of(model)
    theta["bias0"][0] = -1e3
    assert_same_match(make_case(), model, theta)


@pytest.mark.parametrize("kind", algorithm1.DISTANCES)
@pytest.mark.parametrize("model", DYING, ids=repr)
def test_nothing_breaks_where_no_unit_is_active(model, kind, make_case):
    """Only the last bias still has a gradient. The cosine of nothing is 0, not 0 / 0, in float32 too."""
    case, theta = make_case(), weights_of(model)
    theta["bias0"][:] = -1e3
    x, phi = case.x.float(), {key: tensor.float() for key, tensor in case.phi.items()}
    view = replace(case.view, inputs=Inputs(case.view.inputs.x.float(), case.view.inputs.adjacency.to(dtype=x.dtype)))
    theta = {key: tensor.float() for key, tensor in theta.items()}
    synthetic = Synthetic(x, LABELS, case.structure, phi, Rates(0.01))
    synthetic.learn(True, True)
    real = FullBatch(model, view, CLASSES).gradients(theta, "")
    apart = DISTANCES[kind](real, class_gradients(model, theta, synthetic.labelled(), CLASSES))
    gradients = torch.autograd.grad(apart.sum(), [x, *phi.values()])
    assert all(tensor.isfinite().all() for tensor in (apart, *gradients))
    if kind == "column-cosine":
        assert apart.tolist() == [model.hidden + CLASSES] * CLASSES


@pytest.mark.parametrize("structure", ["mlp", "mlp of neighbours", "free", "none"])
@pytest.mark.parametrize("model", [SGC(), SGC(layers=2, hidden=7), GCN(hidden=7), APPNP(hidden=7)], ids=repr)
def test_the_inner_loop_is_plain_training(model, structure, make_case):
    case, theta = make_case(structure), weights_of(model)
    literal = {key: tensor.clone().requires_grad_() for key, tensor in theta.items()}
    train_backbone(model, theta, Adam(theta, 0.01), case.synthetic().labelled().detached(), classes=CLASSES, steps=15)
    x, phi = case.copies()
    operator = algorithm1.normalise(model, case.literal(phi, x), condensed=True)
    plain = torch.optim.Adam(literal.values(), 0.01)
    for _ in range(15):
        plain.zero_grad()
        torch.nn.functional.cross_entropy(algorithm1.scores(model, literal, x, operator), LABELS).backward()
        plain.step()
    for key, tensor in theta.items():
        near(tensor, literal[key].detach())


class Losses(Callback):
    """Every outer step's loss."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_step(self, run) -> None:
        self.seen.append(run.loss)


# For each schedule, whether X' learns and whether Φ does, epoch by epoch.
TURNS = {
    "features-first": [(True, False), (False, True)],
    "structure-first": [(False, True), (True, False)],
    "joint": [(True, True), (True, True)],
}
COURSES = [
    *((model, "mlp", schedule) for model in ("sgc", "gcn", "sage", "appnp", "cheby") for schedule in TURNS),
    *(("sgc", structure, "joint") for structure in STRUCTURES if structure != "mlp"),
    *(("gcn", structure, "structure-first") for structure in STRUCTURES if structure not in {"mlp", "none"}),
    ("gcn", "none", "joint"),
]


@pytest.mark.parametrize(("backbone", "structure", "schedule"), COURSES)
def test_stays_with_algorithm_1(backbone, structure, schedule, make_case):
    """Two epochs of five outer steps with three inner ones between, as the method itself runs them."""
    case = make_case(structure)
    options = {"epochs": 2, "outer": 5, "inner": 3, "lr_features": 0.01, "backbone": backbone, "hidden": 7}
    options["probe_every"] = 0
    turns = {"schedule": schedule, "features_epochs": 1, "structure_epochs": 1}
    method = GCondX(**options) if structure == "none" else GCond(**options, **turns)
    losses = Losses()
    task = Task(case.view, case.view, CLASSES, torch.bincount(LABELS), seed=5)
    x, phi = case.copies()
    start = x.clone()
    method.learn(task, case.synthetic(structure=0.003), [losses])

    model = method.model()
    expected = algorithm1.condense(
        model,
        case.real(model),
        x,
        LABELS,
        phi,
        structure=case.literal,
        distance=algorithm1.column_cosine,
        thetas=[model.init(12, CLASSES, generator(5, f"backbone {k}")) for k in range(2)],
        turns=TURNS[schedule],
        outer=5,
        inner=3,
        lr=(0.01, 0.003, 0.01),
    )
    torch.testing.assert_close(torch.tensor(losses.seen), torch.tensor(list(expected)), rtol=1e-5, atol=1e-5)
    assert len(losses.seen) == 10
    assert (case.x.detach() - start).abs().max() > 0.01
    for own, other in ((case.x, x), *((tensor, phi[key]) for key, tensor in case.phi.items())):
        torch.testing.assert_close(own.detach(), other.detach(), rtol=1e-5, atol=1e-5)

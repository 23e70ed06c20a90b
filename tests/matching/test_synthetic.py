"""The condensed graph while it is learned: what changes, what does not, and what can be taken up again."""

from __future__ import annotations

import pytest
import torch

from gcond.linalg.sparse import Identity
from gcond.matching.sparsification import sparsify
from gcond.matching.structure import FreeStructure, NoStructure, PairwiseMLP
from gcond.matching.synthetic import NotFiniteError, Rates, Synthetic
from gcond.runtime.seeds import generator

STRUCTURES = {
    "none": NoStructure(),
    "free": FreeStructure(),
    "free directed": FreeStructure(symmetric=False),
    "mlp": PairwiseMLP(6),
    "mlp directed": PairwiseMLP(6, symmetric=False),
}
LABELS = torch.tensor([1, 0, 2, 0, 1])  # not in order of class, as grown graphs have them


def make(kind="mlp", fixed=None):
    structure = STRUCTURES[kind]
    nodes = len(LABELS) - (0 if fixed is None else len(fixed))
    x = torch.randn(nodes, 4, generator=generator(0, "x"))
    phi = structure.init(len(LABELS), 4, generator(0, "phi"))
    return Synthetic(x, LABELS, structure, phi, Rates(0.1, 0.05), fixed=fixed)


def loss_of(synthetic):
    inputs = synthetic.inputs()
    loss = (inputs.x - 1).square().mean()
    return loss if isinstance(inputs.adjacency, Identity) else loss + (inputs.adjacency * inputs.x[:, 0]).sum()


def steps(synthetic, count, features=True, structure=True):
    synthetic.learn(features, structure)
    for _ in range(count):
        synthetic.update(loss_of(synthetic))


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for key, tensor in first.items():
        assert torch.equal(tensor, second[key]), key


@pytest.mark.parametrize("kind", ["free", "mlp", "mlp directed"])
@pytest.mark.parametrize("turn", [(True, False), (False, True), (True, True)])
def test_only_what_learns_changes(kind, turn):
    synthetic = make(kind)
    before = synthetic.snapshot()
    steps(synthetic, 2, *turn)
    after = synthetic.snapshot()
    for part, learns in zip(("x", "phi"), turn, strict=True):
        names = [key for key in synthetic.learned() if key.split(".")[0] == part]
        assert names
        assert any(not torch.equal(before[name], after[name]) for name in names) == learns
    for part, learns in zip(("features", "structure"), turn, strict=True):
        moments = [key for key in before if key.startswith(f"adam.{part}")]
        assert any(not torch.equal(before[name], after[name]) for name in moments) == learns


def test_only_what_learns_is_differentiated():
    synthetic = make("mlp")
    synthetic.learn(True, False)
    assert synthetic.x.requires_grad
    assert synthetic.inputs().adjacency.requires_grad  # through X'
    synthetic.learn(False, True)
    assert not synthetic.x.requires_grad
    assert synthetic.inputs().adjacency.requires_grad
    assert not synthetic.view().inputs.adjacency.requires_grad
    assert not synthetic.labelled().detached().inputs.adjacency.requires_grad


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
def test_snapshot_and_restore_are_exact(kind):
    synthetic = make(kind)
    steps(synthetic, 3)
    kept = synthetic.snapshot()
    copies = {key: tensor.clone() for key, tensor in kept.items()}
    steps(synthetic, 4)
    ahead = synthetic.snapshot()
    assert not torch.equal(ahead["x"], kept["x"])
    assert_equal(kept, copies)  # what was kept does not move along
    for other in (synthetic, make(kind)):
        other.restore(kept)
        assert_equal(other.snapshot(), kept)
        steps(other, 4)
        assert_equal(other.snapshot(), ahead)
        assert_equal(kept, copies)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_loss_that_is_not_finite_changes_nothing(value):
    synthetic = make()
    steps(synthetic, 2)
    before = synthetic.snapshot()
    with pytest.raises(NotFiniteError):
        synthetic.update(loss_of(synthetic) * value)
    assert_equal(synthetic.snapshot(), before)


@pytest.mark.parametrize("part", ["x", "phi"])
def test_one_gradient_that_is_not_finite_changes_nothing(part):
    synthetic = make("free")
    steps(synthetic, 2)
    before = synthetic.snapshot()
    number = synthetic.x[0, 0] if part == "x" else synthetic.inputs().adjacency[0, 1]
    loss = loss_of(synthetic) + (number - number).abs().sqrt()  # + 0, whose slope is 0 · ∞
    assert bool(loss.isfinite())
    with pytest.raises(NotFiniteError):
        synthetic.update(loss)
    assert_equal(synthetic.snapshot(), before)


def test_infinities_of_both_signs_do_not_cancel():
    synthetic = make("none")
    synthetic.learn(True, False)
    x = synthetic.x
    loss = loss_of(synthetic) + (x[0, 0] - x[0, 0].detach()).sqrt() - (x[0, 1] - x[0, 1].detach()).sqrt()
    assert bool(loss.isfinite())
    with pytest.raises(NotFiniteError):
        synthetic.update(loss)


def test_labelled_is_in_order_of_class_and_the_view_in_order_of_nodes():
    synthetic = make()
    labelled, view = synthetic.labelled(), synthetic.view()
    assert labelled.y.tolist() == [0, 0, 1, 1, 2]
    assert labelled.nodes.tolist() == [1, 3, 0, 4, 2]
    assert torch.equal(LABELS[labelled.nodes], labelled.y)
    assert view.nodes.tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(view.y, LABELS)
    assert torch.equal(labelled.inputs.adjacency, view.inputs.adjacency)


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
def test_what_is_finished_is_what_was_viewed(kind):
    synthetic = make(kind)
    steps(synthetic, 2)
    ship = (lambda a: a) if kind == "none" else (lambda a: sparsify(a, 0.5))
    view, result = synthetic.view(ship), synthetic.finish(ship)
    assert torch.equal(result.x, synthetic.x)
    assert torch.equal(result.y, LABELS)
    if kind == "none":
        assert result.num_edges == 0
    else:
        assert 0 < result.num_edges < 20
        assert torch.equal(result.adjacency(), view.inputs.adjacency)  # row = target, also where it is directed
        assert torch.equal(result.adjacency(), result.adjacency().T) != ("directed" in kind)
    assert result.x.data_ptr() != synthetic.x.data_ptr()
    assert set(result.structure) == (set(synthetic.structure.finish(synthetic._phi, synthetic.x)))


def test_fixed_rows_stand_first_and_never_change():
    fixed = torch.randn(2, 4, generator=generator(1, "fixed"))
    synthetic = make("mlp", fixed=fixed)
    before = synthetic.x.clone()
    steps(synthetic, 3)
    assert torch.equal(synthetic.x[:2], fixed)
    assert not torch.equal(synthetic.x[2:], before[2:])
    assert synthetic.x.shape == (5, 4)
    assert synthetic.learned()["x"].shape == (3, 4)
    assert synthetic.finish(lambda a: a).num_nodes == 5


def test_rates():
    """Adam's first step is as long as its rate, whatever the gradient."""
    for factor in (1.0, 0.25):
        synthetic = make("free")
        before = synthetic.learned()
        synthetic.slow_down(factor)
        assert synthetic.rate == factor
        steps(synthetic, 1)
        moved = {key: (tensor - before[key]).abs() for key, tensor in synthetic.learned().items()}
        torch.testing.assert_close(moved["x"], torch.full_like(moved["x"], 0.1 * factor), rtol=1e-2, atol=0)
        off = ~torch.eye(5, dtype=torch.bool)
        torch.testing.assert_close(moved["phi.score"][off], torch.full((20,), 0.05 * factor), rtol=1e-2, atol=0)
        assert not moved["phi.score"].diagonal().any()


def test_to_a_device_is_a_fresh_start_from_the_same_numbers():
    synthetic = make()
    moved = synthetic.to("cpu")
    assert_equal(moved.learned(), synthetic.learned())
    assert torch.equal(moved.y, LABELS)
    assert moved.rate == 1


def test_hidden_entries_come_forward_when_those_before_them_shrink():
    x = torch.tensor([[1.0, 0.98, 0.0]])
    synthetic = Synthetic(x, torch.tensor([0]), NoStructure(), {}, Rates(0.1), entries=1)
    assert synthetic.x.tolist() == [[1, 0, 0]]
    synthetic.learn(features=True, structure=False)
    synthetic.update(synthetic.labelled().inputs.x.sum())  # which wants everything that it sees smaller
    assert synthetic.x[0, 0] == 0
    assert synthetic.x[0, 1] == torch.tensor(0.98)
    before = synthetic.snapshot()
    synthetic.update(synthetic.labelled().inputs.x.sum())
    after = synthetic.x.clone()
    synthetic.restore(before)
    synthetic.update(synthetic.labelled().inputs.x.sum())
    assert torch.equal(synthetic.x, after)


def test_fixed_rows_are_never_cut():
    fixed = torch.ones(1, 3)
    y = torch.tensor([0, 0])
    synthetic = Synthetic(torch.ones(1, 3), y, NoStructure(), {}, Rates(0.1), fixed=fixed, entries=2).to("cpu")
    assert torch.count_nonzero(synthetic.x, dim=1).tolist() == [3, 2]

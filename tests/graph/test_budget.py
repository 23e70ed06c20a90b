from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.errors import GcondError
from gcond.graph.budget import Budget, nodes_per_class, parse_ratio, resolve_budget

CORA = {"population": 2708, "labelled": 140, "classes": 7}


@st.composite
def shares(draw):
    """Labelled nodes a class, from even to very skewed, and a number of nodes that can be met."""
    labelled = draw(st.lists(st.integers(1, 5000), min_size=1, max_size=50))
    return draw(st.integers(len(labelled), sum(labelled))), torch.tensor(labelled)


@given(shares())
def test_quota_adds_up_within_its_bounds(case):
    nodes, labelled = case
    quota = nodes_per_class(nodes, labelled)
    assert quota.dtype == torch.int64
    assert int(quota.sum()) == nodes
    assert bool((quota >= 1).all())
    assert bool((quota <= labelled).all())


@given(shares())
def test_quota_is_within_one_of_the_exact_share_unless_a_class_was_lifted(case):
    nodes, labelled = case
    total = int(labelled.sum())
    if any(size * nodes < total for size in labelled.tolist()):
        return
    for got, size in zip(nodes_per_class(nodes, labelled).tolist(), labelled.tolist(), strict=True):
        assert abs(got * total - size * nodes) < total


@given(shares())
def test_a_larger_class_never_gets_less(case):
    nodes, labelled = case
    quota = nodes_per_class(nodes, labelled)[labelled.argsort(stable=True)]
    sizes = labelled.sort().values
    assert bool((quota.diff()[sizes.diff() > 0] >= 0).all())
    assert bool((quota.diff()[sizes.diff() == 0].abs() <= 1).all())


@given(shares())
def test_lifted_classes_take_from_those_above_their_share(case):
    nodes, labelled = case
    total = int(labelled.sum())
    for got, size in zip(nodes_per_class(nodes, labelled).tolist(), labelled.tolist(), strict=True):
        # Nobody but a lifted class is a whole node above its share.
        assert got == 1 or got * total - size * nodes < total


@pytest.mark.parametrize(
    ("nodes", "labelled", "expected"),
    [
        (70, [20] * 7, [10] * 7),
        (10, [20] * 7, [2, 2, 2, 1, 1, 1, 1]),  # equal remainders: the first classes
        (3, [1, 1, 998], [1, 1, 1]),
        (10, [1, 1, 998], [1, 1, 8]),
        (7, [10, 20, 30], [1, 2, 4]),  # 1.17, 2.33, 3.5
        (60, [10, 20, 30], [10, 20, 30]),
    ],
)
def test_quota_by_hand(nodes, labelled, expected):
    assert nodes_per_class(nodes, torch.tensor(labelled)).tolist() == expected


def test_quota_leaves_the_counts_alone():
    labelled = torch.tensor([5, 9])
    nodes_per_class(7, labelled)
    assert labelled.tolist() == [5, 9]


def test_quota_of_too_few_nodes():
    with pytest.raises(GcondError, match=r"^6 nodes are too few for 7 classes: use 7 or more$"):
        nodes_per_class(6, torch.tensor([20] * 7))


@pytest.mark.parametrize("text", ["2.6%", "0.026", 0.026, " 2.6%", "2.6e-2"])
def test_ratio_spellings(text):
    assert parse_ratio(text) == pytest.approx(0.026, abs=1e-15)


@given(st.integers(1, 10**6))
def test_percent_and_share_agree(millionths):
    assert parse_ratio(f"{millionths / 10**4}%") == pytest.approx(parse_ratio(millionths / 10**6), rel=1e-12)


@pytest.mark.parametrize("text", ["", "%", "half", "2,6%", "1/2", "0.1%%"])
def test_ratio_that_is_no_number(text):
    with pytest.raises(GcondError, match=r"is not a number: write for example 2.6% or 0.026"):
        parse_ratio(text)


@pytest.mark.parametrize("text", ["0", "-1%", "1.01", "101%", "nan", "inf", 0, -0.5, 2, float("nan")])
def test_ratio_out_of_range(text):
    with pytest.raises(GcondError, match=r"is not between 0 and 1: write for example 2.6% or 0.026"):
        parse_ratio(text)


@pytest.mark.parametrize(("ratio", "nodes"), [("1.3%", 35), (0.026, 70), ("5.2%", 140), ("100%", 140), (1, 140)])
def test_ratio_is_rounded_and_never_more_than_the_labelled(ratio, nodes):
    assert resolve_budget(ratio=ratio, nodes=None, **CORA) == Budget(nodes, nodes / 2708)


@given(st.floats(1e-6, 1), st.floats(1e-6, 1))
def test_a_larger_ratio_never_gives_fewer_nodes(one, other):
    low, high = sorted([one, other])
    sizes = {"population": 5000, "labelled": 3000, "classes": 1}
    try:
        few = resolve_budget(ratio=low, nodes=None, **sizes).nodes
    except GcondError:
        few = 0
    try:
        many = resolve_budget(ratio=high, nodes=None, **sizes).nodes
    except GcondError:
        many = 0
    assert few <= many
    assert abs(many - min(high * 5000, 3000)) <= 0.5


def test_nodes_are_exact():
    assert resolve_budget(ratio=None, nodes=70, **CORA) == Budget(70, 70 / 2708)


def test_the_sentence_of_a_ratio_that_is_too_small():
    with pytest.raises(GcondError) as caught:
        resolve_budget(ratio="0.001", nodes=None, **CORA)
    expected = "ratio 0.001 of 2708 nodes is 3 nodes, but there are 7 classes: use nodes=7 or more"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("given_budget", "message"),
    [
        ({"ratio": None, "nodes": 6}, "6 nodes are too few for 7 classes: use nodes=7 or more"),
        ({"ratio": None, "nodes": 0}, "0 nodes are too few for 7 classes: use nodes=7 or more"),
        ({"ratio": None, "nodes": 141}, "141 nodes are more than the 140 labelled ones: use nodes=140 or fewer"),
        ({"ratio": None, "nodes": None}, "either ratio or nodes"),
        ({"ratio": 0.1, "nodes": 70}, "either ratio or nodes"),
    ],
)
def test_budgets_that_cannot_be_met(given_budget, message):
    with pytest.raises(GcondError, match=message):
        resolve_budget(**given_budget, **CORA)


@st.composite
def limited_shares(draw):
    """Shares that need not be whole, limits that some of them exceed, and a number of nodes that can be met."""
    most = draw(st.lists(st.integers(1, 60), min_size=1, max_size=12))
    wanted = draw(st.lists(st.floats(1e-6, 100), min_size=len(most), max_size=len(most)))
    return draw(st.integers(len(most), sum(most))), torch.tensor(wanted), torch.tensor(most)


@given(limited_shares())
def test_quota_with_limits_adds_up_within_them(case):
    nodes, wanted, most = case
    before = most.clone()
    quota = nodes_per_class(nodes, wanted, most=most)
    assert quota.dtype == torch.int64
    assert int(quota.sum()) == nodes
    assert bool((quota >= 1).all())
    assert bool((quota <= most).all())
    assert torch.equal(most, before)


@given(shares())
def test_limits_that_nobody_reaches_change_nothing(case):
    nodes, labelled = case
    assert torch.equal(nodes_per_class(nodes, labelled, most=labelled), nodes_per_class(nodes, labelled))


@pytest.mark.parametrize(
    ("nodes", "wanted", "most", "expected"),
    [
        (10, [8.0, 1.0, 1.0], [4, 9, 9], [4, 3, 3]),
        (10, [8.0, 1.0, 1.0], [4, 1, 9], [4, 1, 5]),
        (3, [1e-6, 5.0, 5.0], [9, 9, 9], [1, 1, 1]),
        (6, [1.0, 1.0, 1.0], [2, 2, 2], [2, 2, 2]),
    ],
)
def test_quota_with_limits_by_hand(nodes, wanted, most, expected):
    assert nodes_per_class(nodes, torch.tensor(wanted), most=torch.tensor(most)).tolist() == expected


@pytest.mark.parametrize("most", [[2, 2, 1], [0, 9, 9]])
def test_limits_that_cannot_be_met(most):
    with pytest.raises(
        GcondError, match=r"^6 nodes in 3 classes, at least one of each, are more than there is room for"
    ):
        nodes_per_class(6, torch.tensor([1.0, 1.0, 1.0]), most=torch.tensor(most))

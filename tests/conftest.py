"""What the tests share: small random graphs made from a seed, and one thread, since the tests run side by side."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import pytest
import torch

from gcond.graph.learning_setting import Setting
from gcond.graph.source_graph import SourceGraph

torch.set_num_threads(1)
hypothesis.settings.register_profile("gcond", deadline=None)  # a busy machine is not a bug
hypothesis.settings.load_profile("gcond")

MakeGraph = Callable[..., SourceGraph]


def random_graph(
    setting: Setting = "transductive",
    *,
    seed: int = 0,
    sizes: tuple[int, ...] = (40, 25, 15),
    features: int = 12,
    density: float = 1.0,
    weighted: bool = False,
    directed: bool = False,
) -> SourceGraph:
    """An attributed graph whose classes (of ``sizes``) prefer their own kind, in shuffled order.

    Half of each class trains, a quarter validates, a fifth tests, and the rest is unlabelled. Features
    are Gaussian around a centre a class; ``density`` is the share of them that is not zero.
    """
    stream = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    y = y[torch.randperm(len(y), generator=stream)]
    n = len(y)
    parts: dict[str, list[torch.Tensor]] = {"train": [], "val": [], "test": [], "bare": []}
    for label, size in enumerate(sizes):
        members = (y == label).nonzero().squeeze(1)
        cuts = [size // 2, size // 4, size // 5]
        for part, nodes in zip(parts, members.split([*cuts, size - sum(cuts)]), strict=True):
            parts[part].append(nodes)
    index = {part: torch.cat(nodes) for part, nodes in parts.items()}

    centres = torch.randn(len(sizes), features, generator=stream)
    x = centres[y] + torch.randn(n, features, generator=stream)
    x = x * (torch.rand(n, features, generator=stream) < density)
    likely = torch.where(y[:, None] == y[None, :], 0.15, 0.03)
    drawn = (torch.rand(n, n, generator=stream) < likely).triu(1)
    edge_index = drawn.nonzero().T
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    weight = None
    if weighted:
        pair = 1 + edge_index.min(0).values * n + edge_index.max(0).values
        weight = (pair * 0.618034) % 1 + 0.1  # the same both ways
    y[index["bare"]] = -1
    return SourceGraph.build(
        name=f"random-{seed}",
        x=x,
        edge_index=edge_index,
        edge_weight=weight,
        y=y,
        train=index["train"],
        val=index["val"],
        test=index["test"],
        setting=setting,
        directed=directed,
    )


@pytest.fixture(scope="session")
def make_graph() -> MakeGraph:
    """Build a :func:`random_graph`; every call makes a new one."""
    return random_graph


@pytest.fixture(params=["transductive", "inductive"])
def setting(request: pytest.FixtureRequest) -> Setting:
    return request.param


@pytest.fixture
def graph(setting: Setting) -> SourceGraph:
    """One random graph in each setting."""
    return random_graph(setting)

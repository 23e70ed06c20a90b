"""Search architectures on the condensed graph, and check that the whole graph would have ranked them alike.

    python examples/architecture_search.py

Every architecture is trained on both graphs and judged by validation accuracy; only the two winners are tested.
"""

from __future__ import annotations

import gcond


def main() -> None:
    graph = gcond.load("synthetic:small,nodes=900")
    small = gcond.condense(graph, nodes=30, epochs=3, init="propagated-means")

    # Without a grid it is the paper's space: 480 architectures, 200 epochs each on the whole graph.
    grid = {"hops": [2, 10], "hidden": [8, 32], "activation": ["relu", "tanh"]}
    found = gcond.search(small, on=graph, model="appnp", grid=grid, recipe={"epochs": 40}, runs=2)

    for one in sorted(found.architectures, key=lambda one: one.condensed, reverse=True):
        print(f"{one.settings}: {one.condensed:.1%} on the condensed graph, {one.whole:.1%} on the whole one")
    for side, winner in found.winners.items():
        print(f"best on the {side} graph: {winner.settings}, tested at {winner.mean:.1%}")


if __name__ == "__main__":
    main()

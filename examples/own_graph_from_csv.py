"""Condense a graph of your own that lies in two CSV files, and see what the small one is worth.

    python examples/own_graph_from_csv.py [FOLDER]

Without a folder a small club is made up: people with a few interests, each in a team, and who knows whom.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

import gcond

TEAMS = ("chess", "choir", "rowing")


def make_up_a_club(folder: Path) -> None:
    """``nodes.csv`` has an id, a label and one column per feature; ``edges.csv`` has source and target."""
    draw = random.Random(0)
    folder.mkdir(exist_ok=True)
    team = {f"person{i}": i % len(TEAMS) for i in range(360)}
    with (folder / "nodes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "label", *(f"interest{i}" for i in range(12))])
        for person, mine in team.items():
            # What a team likes shows in four of the twelve interests, and not very clearly.
            interests = [round(draw.gauss(0.5 if i % len(TEAMS) == mine else 0.0, 1), 3) for i in range(12)]
            table.writerow([person, TEAMS[mine], *interests])
    with (folder / "edges.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["source", "target"])
        for person, mine in team.items():
            for friend in draw.sample(sorted(team), 12):
                if team[friend] == mine or draw.random() < 0.15:  # most friends are of the same team
                    table.writerow([person, friend])


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("club")
    if len(sys.argv) == 1:
        make_up_a_club(folder)

    graph = gcond.load(folder)
    print(graph)
    for note in graph.notes:  # what had to be decided or repaired: a split that was drawn, edges that got their reverse
        print(f"  {note}")

    # A learned graph. The defaults try two starts and up to 60 epochs; these settings make the example short.
    small = gcond.condense(graph, nodes=12, method="gcond", epochs=5, init="propagated-means")
    small.save("club-12.safetensors")
    # The same number of real nodes, as a yardstick: what is not better than this is not worth learning.
    drawn = gcond.condense(graph, nodes=12, method="random")

    for name, candidate in {"12 learned nodes": small, "12 random nodes": drawn, "the whole graph": graph}.items():
        (score,) = gcond.evaluate(candidate, on=graph, models=["gcn"], runs=3, recipe={"epochs": 100})
        print(f"a GCN trained on {name}: {score.mean:.1%} of the test nodes")


if __name__ == "__main__":
    main()

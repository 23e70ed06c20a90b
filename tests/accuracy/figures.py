"""The README's picture, drawn from docs/results.json: accuracy against budget, with the whole graph above.

python tests/accuracy/figures.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
# Okabe and Ito's colours, which stay apart for colour-blind readers; markers tell the lines apart in grey.
STYLES = {
    "gcond": ("#D55E00", "o"),
    "gcond-x": ("#E69F00", "v"),
    "herding": ("#0072B2", "s"),
    "k-center": ("#009E73", "^"),
    "random": ("#56B4E9", "D"),
}
TITLES = {"cora": "Cora", "citeseer": "CiteSeer"}


def draw(ledger: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(1, len(TITLES), figsize=(9, 3.4), layout="constrained")
    for axis, (dataset, title) in zip(axes, TITLES.items(), strict=True):
        measured = [*ledger["learned"].values(), *ledger["selection"].values()]
        rows = [row for row in measured if row["dataset"] == dataset]
        budgets = sorted({row["nodes"] for row in rows})
        for shift, (method, (colour, marker)) in enumerate(STYLES.items(), -2):
            mine = sorted((row for row in rows if row["method"] == method), key=lambda row: row["nodes"])
            axis.errorbar(
                [budgets.index(row["nodes"]) + 0.06 * shift for row in mine],
                [100 * row["mean"] for row in mine],
                [100 * row["std"] for row in mine],
                color=colour,
                marker=marker,
                capsize=3,
                label=method,
            )
        whole = ledger["whole"][f"{dataset}/gcn"]
        axis.axhline(100 * whole["mean"], color="black", linestyle="--", label="whole graph")
        axis.set_xticks(range(len(budgets)), [f"{nodes} nodes" for nodes in budgets])
        axis.set_title(title)
        axis.grid(axis="y", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test accuracy of a GCN, %")
    axes[-1].legend(frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160, metadata={"Software": None})


if __name__ == "__main__":
    draw(json.loads((ROOT / "docs" / "results.json").read_text()), ROOT / "docs" / "images" / "accuracy.png")

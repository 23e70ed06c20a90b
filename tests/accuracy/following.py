"""Figures of updates beside those of condensing anew, as docs/results keeps and shows them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean, stdev
from typing import Any


@dataclass(frozen=True)
class Step:
    """One step of one revealed graph: accuracies are fractions, one for each training; costs are CPU seconds."""

    seed: int
    step: int
    source_nodes: int
    nodes: int
    updated: tuple[float, ...]
    anew: tuple[float, ...]
    update_cpu_seconds: float
    anew_cpu_seconds: float


@dataclass(frozen=True)
class Following:
    """A data set that was revealed in steps, by some seeds: the first is condensed, the others are updates."""

    dataset: str
    method: str
    command: str
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return {"kind": "update", **asdict(self)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Following:
        steps = (Step(**each | {key: tuple(each[key]) for key in ("updated", "anew")}) for each in found["steps"])
        return cls(found["dataset"], found["method"], found["command"], tuple(steps))

    def of_step(self, step: int) -> list[Step]:
        return [each for each in self.steps if each.step == step]

    def difference(self, step: int) -> float:
        """How much more accurate updates are than condensing anew, in points: the mean over seeds."""
        return 100 * mean(mean(each.updated) - mean(each.anew) for each in self.of_step(step))

    def cost(self, step: int) -> float:
        """CPU seconds of updates by those of condensing anew."""
        found = self.of_step(step)
        return sum(each.update_cpu_seconds for each in found) / sum(each.anew_cpu_seconds for each in found)

    def markdown(self) -> str:
        lines = [
            f"| {self.dataset}, {self.method} | nodes | updated, % | anew, % | difference | "
            "updated, CPU s | anew, CPU s | share |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for step in sorted({each.step for each in self.steps}):
            found = self.of_step(step)
            updated, anew = ([score for each in found for score in getattr(each, key)] for key in ("updated", "anew"))
            spent = [mean(getattr(each, f"{key}_cpu_seconds") for each in found) for key in ("update", "anew")]
            apart = [100 * (mean(each.updated) - mean(each.anew)) for each in found]
            deviation = f" ± {stdev(apart):.1f}" if len(apart) > 1 else ""
            lines.append(
                f"| step {step}, {mean(each.source_nodes for each in found):,.0f} source nodes | "
                f"{mean(each.nodes for each in found):.0f} | {_shown(updated)} | {_shown(anew)} | "
                f"{mean(apart):+.1f}{deviation} | {spent[0]:.2f} | {spent[1]:.2f} | {self.cost(step):.2f} |"
            )
        seeds, runs = len({each.seed for each in self.steps}), len(self.steps[0].updated)
        words = f"{seeds} orders of the nodes × {runs} trainings of a GCN; differences deviate from order to order."
        return "\n".join([*lines, "", words, "", f"`{self.command}`", ""])


def _shown(scores: list[float]) -> str:
    return f"{100 * mean(scores):.1f} ± {100 * stdev(scores):.1f} ({len(scores)})"

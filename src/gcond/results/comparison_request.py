"""What a comparison was asked for, in the words of the command, so that its folder knows before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gcond.config.metric import Metric
from gcond.errors import GcondError
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.learning_setting import Setting
from gcond.results.comparison import COMPARISON, WHOLE, Comparison
from gcond.results.json_file import marked, read_json, write_json

REQUEST = "asked.json"


@dataclass(frozen=True)
class ComparisonRequest:
    """The options of ``gcond compare`` that say what is compared; ``asked.json`` of a run folder."""

    ratio: str | None = None
    nodes: str | None = None
    methods: str = "all"
    models: str = "gcn"
    seeds: int = 5
    runs: int = 10
    metric: Metric | None = None
    recipe: str | None = None
    settings: tuple[str, ...] = ()
    training: tuple[str, ...] = ()
    setting: Setting | None = None
    directed: bool = False
    features: FeatureChoice | None = None
    source: str | None = None
    """The name or path of the graph, as it was given; earlier versions did not keep it."""

    def save(self, folder: Path) -> Path:
        return write_json(folder / REQUEST, marked("comparison request", self))

    @classmethod
    def kept_in(cls, folder: Path) -> ComparisonRequest:
        """The last one of ``folder``; where an earlier version made it, what its comparison tells."""
        if (folder / REQUEST).is_file():
            return read_json(folder / REQUEST, cls, "comparison request")
        if not (folder / COMPARISON).is_file():
            raise GcondError(
                f"'{folder}' does not know what to compare: give --ratio or --nodes as when it was started"
            )
        found = Comparison.load(folder)
        lines = [line for line in found.lines if line.method != WHOLE]
        return cls(
            nodes=",".join(str(nodes) for nodes in sorted({line.nodes for line in lines})),
            methods=",".join(dict.fromkeys(line.method for line in lines)),
            models=",".join(found.models),
            seeds=found.seeds,
            runs=found.runs,
            training=tuple(f"{key}={value}" for key, value in found.recipe.items()),
        )

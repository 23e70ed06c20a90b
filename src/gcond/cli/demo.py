"""``gcond demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, command_line
from gcond.cli.compare import shown, write_tables
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions

# The graph that comes with a package install, at the middle one of the paper's three budgets for it.
DATASET = "citeseer"
NODES = 60
# Enough to see the differences in about a minute; scores to quote take `gcond compare`. A third of the usual epochs: on
# this graph the rest change the mean by less than 0.1 points.
RUNS = 3
RECIPE = {"epochs": 200}
# A taste of the methods that learn: they go on improving after these, and `gcond condense` lets them.
LEARNED = {"epochs": 15}


def command(
    *,
    out: Annotated[Path, Parameter(alias="-o", help="The run folder.")] = Path("gcond-demo"),
    work: EngineOptions = THIS_MACHINE,
    common: Common = DEFAULTS,
) -> None:
    """Condense a citation graph with every method and compare them with the whole graph."""
    voice = common.start()
    from gcond import methods
    from gcond.config import settings
    from gcond.evaluation.compare import compare
    from gcond.runtime.files import make_folder

    kinds = ("selected", "merged", "learned")
    classes = sorted(methods.available().values(), key=lambda cls: (kinds.index(cls.kind), cls.name))
    chosen = [settings.build(cls, LEARNED if cls.kind == "learned" else {}, f"method '{cls.name}'") for cls in classes]
    with work.open(common.threads) as engine, voice.progress("comparing") as tick:
        if not work.so_far:
            make_folder(out)
        graph = common.load(DATASET, voice)
        found = compare(
            graph,
            methods=chosen,
            nodes=NODES,
            seeds=1,
            runs=RUNS,
            recipe=RECIPE,
            folder=out,
            engine=engine,
            device=common.device,
            command=command_line(),
            on_progress=tick,
        )
    if not work.so_far:
        write_tables(found, out)
    short = ", ".join(f"{key}={value}" for key, value in LEARNED.items())
    taste = (
        f"A taste: one graph per method, those that learn with {short}, {RUNS} trainings of {RECIPE['epochs']} epochs."
    )
    made = sorted((line for line in found.lines if not line.is_whole), key=lambda line: -line.mean)
    next_steps = [_what_next(out, out / made[0].graphs[0], common)] if made else []
    voice.result({"folder": str(out), **found.to_json()}, *shown(found), taste, "", *next_steps)


def _what_next(folder: Path, best: Path, common: Common) -> str:
    data = f" --data {common.data}" if common.data else ""
    return "\n".join(
        [
            "What to try next:",
            f"  gcond report {folder} --on {DATASET}{data}",
            f"  gcond evaluate {best} --on {DATASET} --models all{data}",
            f"  gcond condense {DATASET} --nodes {2 * NODES}{data}",
            "  gcond methods gcond",
        ]
    )

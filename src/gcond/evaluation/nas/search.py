"""Architecture search: how far a condensed graph ranks architectures as the whole graph does.

Every architecture is trained once on the condensed graph and once on the whole one, for fewer epochs on the condensed
one, where it converges faster, and judged by its validation accuracy; the winner of either side is then trained on
the whole graph several times and tested (Jin et al., ICLR 2022, appendix on architecture search). No test node is
looked at before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from gcond import __version__
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.evaluate import check_fit, recipe_identity, source_of
from gcond.evaluation.nas.search_space import Space, groups, space
from gcond.evaluation.nas.stack_jobs import Ground, Job, Measured, train
from gcond.graph.source_graph import SourceGraph
from gcond.models.model import Model
from gcond.results.failure import Failure
from gcond.results.quantities import Accuracy
from gcond.results.row_log import RowLog
from gcond.results.search import SIDES, Architecture, Search, Side, Winner
from gcond.results.source_summary import SourceSummary
from gcond.results.trial import trial_key
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine, open_engine
from gcond.training.recipe import Recipe

if TYPE_CHECKING:
    from torch_geometric.data import Data

Progress = Callable[[str, int, int], None]

RECIPE: Mapping[str, Any] = {"epochs": 200, "validate_every": 5}
"""Where the training of a search differs from that of an evaluation.

The paper does not say how long its search trains. 200 epochs are the usual number for graphs of its size. Looking at
the validation nodes every fifth epoch makes the condensed side, where that look is most of the work, several times
as fast.
"""
CONDENSED_SHARE = 0.5
"""Epochs on the condensed graph as a share of those on the whole one.

The paper trains for fewer there "as the model converges faster on the smaller graph", and does not say how many. Half
was chosen after looking at how validation accuracies of 48 architectures correlate on Cora, where as many epochs on
both sides agree less.
"""
# Runs of a winner that are one job: enough to be trained as a stack, few enough that workers share them.
_TESTED_TOGETHER = 5


@dataclass(frozen=True)
class Finding:
    """One architecture, trained once on one side from one seed."""

    key: str
    """Fingerprint of everything that determines it but the seed."""
    side: Side
    model: str
    settings: dict[str, Any]
    """The whole architecture."""
    seed: int
    val: Accuracy
    epoch: Annotated[int, Field(ge=1)]
    test: Accuracy | None
    """Only of winners."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Wall time of this training; those trained together share theirs equally."""


def search(
    small: CondensedGraph,
    *,
    on: SourceGraph | Data | str | Path,
    model: str = "appnp",
    grid: Mapping[str, Iterable[Any]] | None = None,
    recipe: Recipe | Mapping[str, Any] | None = None,
    condensed_epochs: int | None = None,
    seed: int = 0,
    runs: int = 20,
    engine: Engine | None = None,
    folder: str | Path | None = None,
    device: str = "auto",
    command: str = "",
    on_progress: Progress | None = None,
) -> Search:
    """Train every architecture of ``model`` over ``grid`` on ``small`` and on its source ``on``, and compare.

    ``grid`` maps settings of the model to the values to try; without one it is the paper's space. ``recipe`` is put
    on top of :data:`RECIPE` and the model's own; ``condensed_epochs`` are :data:`CONDENSED_SHARE` of its epochs if not
    given, and all else is the same on both sides. All architectures start from ``seed``; the winners are trained from
    ``runs`` seeds that count on from it. Of architectures with the same accuracy the first in the grid wins.
    Architectures whose weights have one shape are trained as a stack, and each gives the same numbers whichever are
    trained beside it. ``folder`` keeps ``nas.jsonl``, in which a search that was killed finds what it had;
    ``on_progress(what, done, total)`` counts trainings.
    """
    runs = settings.whole_number(runs, "runs", least=1)
    seed = settings.whole_number(seed, "seed")
    if not isinstance(small, CondensedGraph):
        raise GcondError(f"a {type(small).__name__} cannot be searched on: give a CondensedGraph")
    found = space(model, grid)
    source = source_of(small, on)
    check_fit(small, source)
    ground = Ground(small, source, recipes(found.models[0], recipe, condensed_epochs), device)
    choose_device(device)  # refused here and not once a job
    book = _Book(ground, Path(folder) / "nas.jsonl" if folder is not None else None, on_progress)
    with nullcontext(engine) if engine is not None else open_engine("local", workers=1) as worker:
        together = groups(found.models, source.num_features, source.num_classes)
        jobs = [Job(side, group, (seed,) * len(group)) for side in SIDES for group in together]
        book.fill(worker, "searching", jobs)
        compared = _compare(found, book, seed)
        architectures = tuple(compared.values())
        best = {side: _best(compared, side) for side in SIDES} if compared else {}
        seeds = range(seed, seed + runs)
        parts = [seeds[start : start + _TESTED_TOGETHER] for start in range(0, runs, _TESTED_TOGETHER)]
        finals = [
            Job("whole", (one,) * len(part), tuple(part), True)
            for one in dict.fromkeys(best.values())
            for part in parts
        ]
        book.fill(worker, "testing", finals)
    tested = {side: _winner(found, book, one, seeds) for side, one in best.items()}
    return Search(
        source=SourceSummary.of(source),
        condensed=condensed_facts(small),
        model=model,
        grid=found.grid,
        recipe=asdict(ground.recipes["whole"]),
        condensed_epochs=ground.recipes["condensed"].epochs,
        seed=seed,
        architectures=architectures,
        winners={side: winner for side, winner in tested.items() if winner is not None},
        failures=tuple(book.failures),
        command=command,
    )


class _Book:
    """What was found, in memory and in the log, and what failed."""

    def __init__(self, ground: Ground, path: Path | None, on_progress: Progress | None) -> None:
        self._ground = ground
        self._log = RowLog(path, Finding, "finding")
        self._on_progress = on_progress
        self._trained_on = {"condensed": ground.small.sha256, "whole": ground.source.sha256}
        self.failures: list[Failure] = []

    def find(self, side: Side, model: Model, seed: int, *, test: bool = False) -> Finding | None:
        return self._log.find(self._key(side, model, test), seed)

    def fill(self, engine: Engine, what: str, jobs: Sequence[Job]) -> None:
        """Train whatever of ``jobs`` is not known yet."""
        total = sum(len(job.models) for job in jobs)
        missing = [left for job in jobs if (left := self._missing(job)) is not None]
        done = total - sum(len(job.models) for job in missing)
        for outcome in engine.map(train, self._ground, missing):
            job = outcome.job
            measured = outcome.result or [Measured(error=outcome.error)] * len(job.models)
            for model, seed, one in zip(job.models, job.seeds, measured, strict=True):
                self._note(job, model, seed, one)
            done += len(job.models)
            if self._on_progress:
                self._on_progress(what, done, total)

    def _missing(self, job: Job) -> Job | None:
        pairs = zip(job.models, job.seeds, strict=True)
        left = [pair for pair in pairs if self.find(job.side, *pair, test=job.test) is None]
        if not left:
            return None
        models, seeds = zip(*left, strict=True)
        return Job(job.side, models, seeds, job.test)

    def _note(self, job: Job, model: Model, seed: int, one: Measured) -> None:
        values = asdict(model)
        if one.error is not None:
            on = "the whole graph" if job.side == "whole" else "the condensed graph"
            named = ", ".join(f"{key}={value}" for key, value in values.items())
            self.failures.append(Failure(f"{model.name} ({named}) on {on}, seed {seed}", one.error))
            return
        key = self._key(job.side, model, job.test)
        self._log.add(Finding(key, job.side, model.name, values, seed, one.val, one.epoch, one.test, one.seconds))

    def _key(self, side: Side, model: Model, test: bool) -> str:
        return trial_key(
            {
                "gcond": __version__,
                "train": self._trained_on[side],
                "source": self._trained_on["whole"],
                "model": model.name,
                "settings": asdict(model),
                "recipe": recipe_identity(self._ground.recipes[side]),
                "tested": test,
            }
        )


def _compare(found: Space, book: _Book, seed: int) -> dict[Model, Architecture]:
    """Every architecture that both sides have trained, in the order of the grid."""
    compared = {}
    for model in found.models:
        small, whole = (book.find(side, model, seed) for side in SIDES)
        if small is not None and whole is not None:
            compared[model] = Architecture(found.settings(model), small.val, whole.val, small.seconds, whole.seconds)
    return compared


def _best(compared: Mapping[Model, Architecture], side: Side) -> Model:
    return max(compared, key=lambda model: getattr(compared[model], side))


def _winner(found: Space, book: _Book, model: Model, seeds: Sequence[int]) -> Winner | None:
    rows = [book.find("whole", model, seed, test=True) for seed in seeds]
    runs = tuple(row.test for row in rows if row is not None and row.test is not None)
    return Winner(found.settings(model), runs) if runs else None


def recipes(
    model: Model, given: Recipe | Mapping[str, Any] | None = None, condensed_epochs: int | None = None
) -> dict[Side, Recipe]:
    """How each side trains: as given, or the search's own with the model's and what is given on top."""
    if isinstance(given, Recipe):
        whole = given
    else:
        whole = settings.build(Recipe, {**RECIPE, **model.recipe, **(given or {})}, "the training recipe")
    if condensed_epochs is None:
        condensed_epochs = max(1, round(CONDENSED_SHARE * whole.epochs))
    condensed_epochs = settings.whole_number(condensed_epochs, "condensed_epochs", least=1)
    return {"whole": whole, "condensed": replace(whole, epochs=condensed_epochs)}


def condensed_facts(small: CondensedGraph) -> dict[str, Any]:
    """What a result says of the condensed graph; method and seed are ``None`` where the file does not know them."""
    found, made = small.statistics, small.provenance
    return {
        "method": made.method if made is not None else None,
        "seed": made.seed if made is not None else None,
        "sha256": small.sha256,
        "nodes": found.nodes,
        "edges": found.edges,
        "bytes": found.bytes,
    }

"""Options of commands that learn: progress, checkpoints, logs, and how to go on after an interruption."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from gcond.cli.common_options import BEGAN, flag, spelled
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.callbacks import Callback
    from gcond.cli.output import Voice
    from gcond.condensed import CondensedGraph, Provenance

_GROUP = Group(
    "Options of methods that learn",
    help="Methods that select or merge nodes are done at once: they pass over these, and say where it took longer.",
    sort_key=8,
)


@Parameter(name="*")
@dataclass(frozen=True)
class Watching:
    """The options of commands that learn."""

    resume: Annotated[
        bool, flag("Go on from the checkpoint of an interrupted run; without one, start.", group=_GROUP)
    ] = False
    within: Annotated[
        str | None,
        Parameter(
            help="End learning in time and keep the best so far: 60s, 2min or 1h for all of it. Not with --recommend.",
            group=_GROUP,
        ),
    ] = None
    checkpoint_every: Annotated[
        float, Parameter(help="Seconds between two checkpoints, written to OUT.checkpoint.", group=_GROUP)
    ] = 30.0
    log: Annotated[
        Path | None, Parameter(help="Folder to log to for TensorBoard (extra `tensorboard`).", group=_GROUP)
    ] = None

    def check(self) -> None:
        """Refuse what no run could use."""
        from gcond.runtime.stopwatch import parse_seconds

        if self.within is not None:
            parse_seconds(self.within)
        if not 0 <= self.checkpoint_every < math.inf:
            raise GcondError(f"--checkpoint-every cannot be {self.checkpoint_every:g}: give seconds, 0 or more")

    def check_place(self, out: Path, force: bool) -> None:
        """Refuse to run over the checkpoint of a run that did not finish."""
        from gcond.callbacks.checkpoint import checkpoint_of

        place = checkpoint_of(out)
        if place.exists() and not self.resume and not force:
            raise GcondError(
                f"'{place}' is of a run that did not finish: add --resume to go on with it, or --force to start anew"
            )

    @contextmanager
    def session(
        self, out: Path, voice: Voice, name: str, *, learned: bool = True, compact: bool = False
    ) -> Iterator[list[Callback]]:
        """The callbacks to condense with, for as long as it takes until ``out`` is saved.

        The checkpoint goes once all of that is done, and stays if it is not. What does not learn has no callbacks but
        the deadline, which the choice of a cut asks. The time counts from the beginning of the command.
        """
        from gcond.callbacks import Deadline

        deadline = Deadline(self.within, began=BEGAN.get()) if self.within is not None else None
        with self._callbacks(out, voice, name, learned=learned) as callbacks:
            yield [*callbacks, deadline] if deadline is not None else callbacks
        if deadline is not None and (late := deadline.overrun(name, learned=learned, compact=compact)):
            voice.note(late)

    @contextmanager
    def _callbacks(self, out: Path, voice: Voice, name: str, *, learned: bool) -> Iterator[list[Callback]]:
        with voice.progress(name) as tick:
            if not learned:
                if self.log is not None:
                    voice.note(f"{name} has no steps to log, so '{self.log}' is left alone")
                yield []
                return
            from gcond.callbacks import Checkpoint, Progress, TensorBoard
            from gcond.callbacks.checkpoint import checkpoint_of

            checkpoint = Checkpoint(checkpoint_of(out), self.checkpoint_every, resume=self.resume)
            logs = [TensorBoard(self.log)] if self.log is not None else []
            try:
                yield [checkpoint, Progress(tick, voice.note, name), *logs]
            except KeyboardInterrupt:
                raise KeyboardInterrupt(_how_to_go_on(checkpoint.path)) from None
            checkpoint.remove()


NOT_WATCHING = Watching()


def tell_written(
    voice: Voice, out: Path, condensed: CondensedGraph, source: str, *, counts: Mapping[str, str], time: str
) -> None:
    """The condensed graph that was written to ``out``: its ``counts``, how learning went, and what to do next."""
    from gcond.callbacks.deadline import OUT_OF_TIME
    from gcond.reports.recipe_table import recommendation_sentence
    from gcond.reports.tables import facts

    provenance, found = condensed.provenance, condensed.statistics
    assert provenance is not None
    payload = {
        "out": str(out),
        "method": provenance.method,
        "nodes": found.nodes,
        "edges": found.edges,
        "seconds": provenance.cost["wall_seconds"],
        "cpu_seconds": provenance.cost["cpu_seconds"],
        "peak_rss_mb": provenance.cost["peak_rss_mb"],
        "settings": provenance.settings,
    }
    if provenance.ended == OUT_OF_TIME:
        payload["ended"] = provenance.ended
    if provenance.grown_from:
        payload["grown_from"] = provenance.grown_from
    if provenance.compaction:
        payload["compaction"] = provenance.compaction
    if provenance.recommendations:
        payload["recommendations"] = [asdict(each) for each in provenance.recommendations]
    about = {"wrote": str(out), "method": provenance.method, **counts}
    about |= structure_facts(condensed) | learned_facts(provenance)
    about["recommended"] = "\n".join(recommendation_sentence(each) for each in provenance.recommendations)
    recommended = ("--recipe", "recommended") if provenance.recommendations else ()
    following = spelled("evaluate", out, "--on", source, *recommended)
    voice.result(payload, facts(about | {"time": time, "next": following}).rich())


def learned_facts(provenance: Provenance) -> dict[str, str]:
    """Facts about a run that learned: epochs, the best probe, what went wrong on the way."""
    from gcond.callbacks.deadline import OUT_OF_TIME

    history = provenance.history
    late = provenance.ended == OUT_OF_TIME
    if not history.get("loss") and not late:
        return {}
    from gcond.reports.figures.learning_curves import kept_probe
    from gcond.reports.tables import percent

    ran, most = len(history["loss"]), provenance.settings["epochs"]
    short = provenance.ended if late else "stopped early"
    found = {"epochs": f"{ran:,}" if ran == most else f"{ran:,} of {most:,}, {short}"}
    kept = kept_probe(history, provenance.kept_epoch)
    if kept is not None:
        epoch, best = kept
        place = f"after epoch {epoch:.0f}" if epoch else "at the start"
        found["best probe"] = f"{percent(best)} % validation {provenance.metric} {place}"
        if ran and not epoch:
            start = f"init={provenance.start}" if provenance.start else "it"
            found["kept"] = f"the start itself: nothing that was learned from {start} probed clearly better"
    if late:
        epochs = ran if kept is None else int(kept[0])
        found["again"] = f"epochs={epochs} with init={provenance.start}: the seed alone does not know of the clock"
    retried = sorted({int(epoch) for epoch in history.get("retried_epoch", ())})
    if retried:
        count, where = len(history["retried_epoch"]), ", ".join(map(str, retried))
        found["retries"] = f"{count} at half the rates, after numbers that were not finite in epoch {where}"
    return found


def structure_facts(graph: CondensedGraph) -> dict[str, str]:
    """Facts about an A' that was learned and has nothing in it; none about any other."""
    made = graph.provenance
    delta = made.settings.get("delta") if made is not None else None
    if made is None or delta is None or graph.num_edges:
        return {}
    if delta == "auto":
        why = "validation chose no edges" if made.settings["probe_every"] else "no weight of A' is above twice the mean"
        return {"structure": f"{why}: models train on A' = I; a delta that is given keeps what is above it"}
    return {"structure": f"no weight of A' is above delta={delta}: models train on A' = I; a smaller delta keeps edges"}


def _how_to_go_on(checkpoint: Path) -> str:
    if checkpoint.exists():
        return f"interrupted: the same command with --resume goes on from '{checkpoint}'"
    return "interrupted before the first checkpoint: nothing was kept, so start the same command again"

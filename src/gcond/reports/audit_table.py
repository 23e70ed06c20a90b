"""An audit as tables: accuracy under noise and by class, distances from the source, and membership."""

from __future__ import annotations

from gcond.reports.class_table import class_table
from gcond.reports.display_names import class_labels
from gcond.reports.tables import MISSING, Table, accuracy, count, known, percent
from gcond.results import Audit, Closeness, Membership, Spread
from gcond.results.audit import Stage

STAGES: dict[Stage, str] = {
    "before": "changed before condensing and training, tested on the source as it is",
    "test": "changed at test, trained without",
}
SPACES = {"features": "features", "propagated": "after two hops"}
MEANING = (
    "Distances and this attack are what was measured: that they find little does not say that nothing can be found."
)


def audit_tables(found: Audit) -> list[Table]:
    """All tables, in the order in which they are to be read; those of which nothing was measured are left out."""
    tables = [noise_table(found, model, stage) for stage in STAGES for model in found.models]
    tables += [closeness_table(found), membership_table(found), worst_class_table(found), *class_tables(found)]
    return [table for table in tables if table.rows]


def noise_table(found: Audit, model: str, stage: Stage) -> Table:
    """A row for each thing trained on: without noise, with each kind, and the worst loss by it."""
    rows = []
    for subject in found.subjects:
        clean = found.accuracy(subject.name, model)
        if clean is None:
            continue
        row = {"trained on": subject.name, "no noise": accuracy(clean.mean, clean.spread)}
        losses, counts = [], [clean.n]
        for noise in found.noises(stage):
            one = found.accuracy(subject.name, model, stage, noise)
            row[_heading(found, noise)] = MISSING if one is None else accuracy(one.mean, one.spread)
            if one is not None:
                losses.append(clean.mean - one.mean)
                counts.append(one.n)
        rows.append({**row, "most lost": percent(max(losses)) if losses else MISSING, "n": str(min(counts))})
    if not found.noises(stage):
        rows = []
    return Table.of(rows, f"{model.upper()}, test accuracy %, {STAGES[stage]}")


def closeness_table(found: Audit) -> Table:
    """A row for each condensed graph and space."""
    rows = [_closeness_cells(one) for one in found.closeness]
    return Table.of(rows, "Distance to the nearest source node: median (5 % to 95 %)", words=(0, 1))


def membership_table(found: Audit) -> Table:
    """A row for each thing trained on: how well confidence tells training nodes from test nodes."""
    rows = [_membership_cells(one, len(found.models) > 1) for one in found.membership]
    return Table.of(rows, "Membership by confidence: AUC (95 % interval); 0.5 is guessing")


def class_tables(found: Audit) -> list[Table]:
    """For each model, its accuracy in every class without noise."""
    tables = []
    for model in found.models:
        clean = {one.name: found.accuracy(one.name, model) for one in found.subjects}
        columns = {name: one.metrics for name, one in clean.items() if one is not None}
        tables.append(class_table(columns, found.source.class_names, f"{model.upper()}, accuracy in each class, %"))
    return [table for table in tables if table is not None]


def worst_class_table(found: Audit) -> Table:
    """A row for each thing trained on and model: its worst class."""
    rows = []
    for one in found.accuracies:
        if one.stage != "clean" or one.metrics is None or one.metrics.worst_class is None:
            continue
        worst = one.metrics.worst_class
        rows.append(
            {
                "trained on": one.subject,
                "model": one.model,
                "accuracy %": accuracy(one.mean, one.spread),
                "balanced %": percent(one.metrics.balanced_accuracy),
                "worst class": class_labels(found.source.class_names, len(one.metrics.class_accuracy))[worst],
                "its accuracy %": known(one.metrics.worst_class_accuracy, percent),
                "n": str(one.n),
            }
        )
    return Table.of(rows, "The worst class, without noise", words=(0, 1, 4))


def audit_lines(found: Audit) -> list[str]:
    """What is to be said beside the tables."""
    draws = f"n trainings: {count(found.seeds, 'draw')} of every noise × {count(found.runs, 'run')}"
    copies = [
        f"{one.subject}: {one.copies:,} of its nodes equal a source node in every entry"
        for one in found.closeness
        if one.space == "features" and one.copies
    ]
    return [f"{draws}. {MEANING}", *(f"{said}." for said in (*copies, *found.notes))]


def _heading(found: Audit, noise: str) -> str:
    """``20 % labels``, or ``all of it`` where several are together."""
    kinds = noise.split("+")
    if len(kinds) > 1:
        return "both" if len(kinds) == 2 else "all three"
    share = 100 * getattr(found.noise, kinds[0])
    return f"{share:g} % {kinds[0]}"


def _closeness_cells(one: Closeness) -> dict[str, str]:
    return {
        "condensed graph": one.subject,
        "in": SPACES[one.space],
        "from condensed nodes": _spread(one.nearest),
        "between source nodes": _spread(one.between),
        "below that median %": percent(one.closer),
        "nearest / second nearest": f"{one.ratio.median:.2f}",
        "of source nodes": f"{one.between_ratio.median:.2f}",
        "copies": f"{one.copies:,}",
    }


def _membership_cells(one: Membership, several: bool) -> dict[str, str]:
    def interval(value: float | None, low: float | None, high: float | None, sign: str = "") -> str:
        if value is None or low is None or high is None:
            return MISSING
        return f"{value:{sign}.3f} ({low:{sign}.3f} to {high:{sign}.3f})"

    return {
        "trained on": one.subject,
        **({"model": one.model} if several else {}),
        "AUC": interval(one.auc, one.low, one.high),
        "less that of the whole graph": interval(one.above_whole, one.above_whole_low, one.above_whole_high, "+"),
        "within classes": interval(one.within, one.within_low, one.within_high),
        "members": f"{one.members:,}",
        "others": f"{one.others:,}",
        "n": str(one.n),
    }


def _spread(found: Spread) -> str:
    return f"{found.median:.3g} ({found.low:.3g} to {found.high:.3g})"

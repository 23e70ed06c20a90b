"""An architecture search as tables: what each side's winner reaches, and how far the sides agree."""

from __future__ import annotations

from gcond.reports.tables import MISSING, Table, accuracy, assignments, facts, known, percent, seconds
from gcond.results import SIDES, Search


def search_tables(search: Search, wrote: str = "", *, new: bool = True) -> tuple[Table, Table]:
    """The winners, then the correlations; ``wrote`` names where it was saved, by this command if it is ``new``."""
    title = f"{len(search.architectures):,} architectures of {search.model} on {search.source.name}"
    correlations = {"Pearson correlation": search.pearson, "Spearman correlation": search.spearman}
    said = {name: known(value, "{:.2f}".format) for name, value in correlations.items()}
    failures = str(len(search.failures)) if search.failures else ""
    return winners_table(search, title), facts({**said, "failures": failures, "wrote" if new else "kept in": wrote})


def winners_table(search: Search, title: str = "") -> Table:
    """A row for each side that was searched on."""
    rows = []
    for side in SIDES:
        winner, tried = search.winners.get(side), [getattr(one, side) for one in search.architectures]
        found = {"searched on": f"{side} graph", "CPU time": seconds(search.cpu_seconds[side])}
        found["best validation %"] = known(max(tried, default=None), percent)
        found["its test accuracy %"] = accuracy(winner.mean, winner.spread) if winner else MISSING
        found["architecture"] = assignments(winner.settings) if winner else MISSING
        rows.append(found)
    return Table.of(rows, title, words=(0, 4))

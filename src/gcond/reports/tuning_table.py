"""A search for hyper-parameters as tables: what its best reach on the whole graph, how far orders agree, the cost."""

from __future__ import annotations

from collections.abc import Sequence

from gcond.reports.tables import MISSING, Table, accuracy, assignments, count, facts, known, percent, seconds
from gcond.results import Finalist, Tuning

ESTIMATE = "an estimate: the search's epochs times what an epoch of the configurations above took there"


def tuning_tables(found: Tuning, wrote: str = "", following: str = "", *, new: bool = True) -> tuple[Table, Table]:
    """The finalists, then what is to be said of all; ``wrote`` names where it was saved, ``following`` what is next.

    What is not ``new`` was there before this command.
    """
    title = f"{', '.join(found.models)} on {found.source.name}, searched on {searched_on(found)}"
    where = {"wrote" if new else "kept in": wrote}
    return finalists_table(found, title), facts({**tuning_facts(found), **where, "next": following})


def searched_on(found: Tuning) -> str:
    if found.condensed is None:
        return "the whole graph"
    return f"{count(found.condensed.nodes, 'condensed node')}"


def sides_table(searches: Sequence[Tuning], title: str = "") -> Table:
    """A row for each of several searches: what it cost, and what came of it on the whole graph."""
    return Table.of([_side(found) for found in searches], title, words=(0,))


def finalists_table(found: Tuning, title: str = "") -> Table:
    """A row for each configuration that was trained on the whole graph."""
    rows = [_cells(found, one) for one in found.finalists]
    return Table.of(rows, title, words=(0, 1))


def tuning_facts(found: Tuning) -> dict[str, str]:
    """What was tried, how far the two sides agree, and what all of it cost, by name."""
    tried = f"{len(found.trials):,} of {found.wanted:,}" if len(found.trials) < found.wanted else f"{found.wanted:,}"
    states = f"{found.count('complete'):,} trained fully, {found.count('pruned'):,} given up on the way"
    failed = f", {found.count('failed'):,} failed" if found.count("failed") else ""
    n, compared = len(found.finalists), found.compared
    correlations = {"Spearman": found.spearman, "Kendall": found.kendall}
    agreement = ", ".join(f"{name} {known(value, '{:.2f}'.format)}" for name, value in correlations.items())
    again = "" if found.on_whole else f"{seconds(found.confirm_cpu_seconds)} anew on the condensed graph, "
    checked = found.on_whole or found.favourite is not None
    there = f"{seconds(found.finalists_cpu_seconds)} on the whole graph" if checked else "none on the whole graph"
    estimate = found.whole_estimate_cpu_seconds
    return {
        "configurations": f"{tried}: {states}{failed}",
        # Two are in order or not, which no correlation says better.
        "orders agree": f"{agreement}, condensed and whole, over the {compared} above" if compared > 2 else "",
        "CPU time to condense": known(found.condense_cpu_seconds, seconds) if not found.on_whole else "",
        "CPU time to search": seconds(found.search_cpu_seconds),
        "CPU time of those above": f"{again}{there}" if n else "",
        "the same search there": f"{seconds(estimate)} ({ESTIMATE})" if estimate is not None else "",
        "failures": str(len(found.failures)) if found.failures else "",
    }


def configuration(found: Tuning, one: Finalist) -> str:
    """The settings that were drawn; with its model where there are several."""
    trial = found.trials[one.trial]
    words = assignments(trial.settings)
    model = f"{one.model}: " if len(found.models) > 1 else ""
    return f"{model}{words}" if words else f"{model}as usual"


def _cells(found: Tuning, one: Finalist) -> dict[str, str]:
    validation = "validation" if found.metric == "accuracy" else f"validation {found.metric}"
    marks = {
        "winner": one is found.winner,
        "usual": found.trials[one.trial].usual,
        "best on whole": one is found.favourite and len(found.finalists) > 1,
    }
    checked, tested = bool(one.val), bool(one.confirmed_test)
    return {
        "configuration": configuration(found, one),
        "": ", ".join(mark for mark, holds in marks.items() if holds) or MISSING,
        f"{validation} %, in the search": percent(one.searched),
        **({} if found.on_whole else {"trained on condensed": percent(one.confirmed_mean)}),
        **({"trained on whole": known(one.val_mean, percent)} if checked else {}),
        **({"test %, condensed": _tested_on_small(one)} if tested and not found.on_whole else {}),
        **({"test %, whole": _tested_on_whole(one)} if checked and tested else {}),
        "n": str(len(one.confirmed)),
        **({"CPU a run, whole": seconds(one.cpu_seconds / len(one.val))} if checked else {}),
    }


def _tested_on_small(one: Finalist) -> str:
    return known(one.confirmed_test_mean, lambda mean: accuracy(mean, one.confirmed_test_spread))


def _tested_on_whole(one: Finalist | None) -> str:
    return known(one.mean, lambda mean: accuracy(mean, one.spread)) if one is not None else MISSING


def _side(found: Tuning) -> dict[str, str]:
    return {
        f"{found.source.name}, searched on": searched_on(found),
        "configurations": f"{len(found.trials):,}",
        "CPU to condense": known(found.condense_cpu_seconds, seconds) if not found.on_whole else MISSING,
        "to search": seconds(found.search_cpu_seconds),
        "to confirm": seconds(found.confirm_cpu_seconds) if not found.on_whole else MISSING,
        "of the finalists, whole graph": seconds(found.finalists_cpu_seconds),
        "winner, trained on these, test %": _tested_on_small(found.winner) if found.winner else MISSING,
        "trained on whole, test %": _tested_on_whole(found.winner),
        "best on whole, test %": _tested_on_whole(found.favourite),
        "usual, test %": _tested_on_whole(found.usual),
        "n": str(len(found.winner.confirmed)) if found.winner else MISSING,
    }

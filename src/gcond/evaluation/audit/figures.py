"""Observations put together: accuracies by noise, and membership by subject, over all draws and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from gcond.evaluation.audit.membership import Estimate, Placements, within_classes
from gcond.graph import SourceGraph
from gcond.jobs.observed_training import asked_nodes
from gcond.results import Membership, NoisyAccuracy, Observation
from gcond.results.audit import Stage
from gcond.training.metrics import deviation, over_runs, value


@dataclass(frozen=True)
class Seen:
    """The observations of one model on one subject in one draw: which noise was where, and on what it is tested."""

    subject: str
    model: str
    stage: Stage
    noise: str
    tested_on: str
    rows: tuple[Observation, ...]


def accuracies(seen: Sequence[Seen]) -> tuple[NoisyAccuracy, ...]:
    """One for each subject, model and noise."""
    groups: dict[tuple[str, ...], list[Seen]] = {}
    for one in seen:
        groups.setdefault((one.subject, one.model, one.stage, one.noise), []).append(one)
    found = []
    for group in groups.values():
        first = group[0]
        confusions = [row.confusions[first.tested_on] for one in group for row in one.rows]
        tests = [value(confusion, "accuracy") for confusion in confusions]
        found.append(
            NoisyAccuracy(
                subject=first.subject,
                model=first.model,
                stage=first.stage,
                noise=first.noise,
                mean=fmean(tests),
                std=deviation(tests),
                n=len(tests),
                metrics=over_runs(confusions),
            )
        )
    return tuple(found)


def memberships(seen: Sequence[Seen], source: SourceGraph, whole: str) -> tuple[Membership, ...]:
    """One for each subject and model that was asked, with its difference to the subject called ``whole``."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for one in seen:
        if one.stage == "clean":
            rows = groups.setdefault((one.subject, one.model), [])
            rows += [row for row in one.rows if row.members and row.others]
    members, others = (source.y[nodes].numpy() for nodes in asked_nodes(source))
    placed = {name: [Placements.of(row.members, row.others) for row in rows] for name, rows in groups.items() if rows}
    found = []
    for (subject, model), runs in placed.items():
        rows, mean = groups[subject, model], Placements.mean(runs)
        reference = placed.get((whole, model)) if subject != whole else None
        estimate = mean.estimate()
        within = within_classes([row.members for row in rows], [row.others for row in rows], members, others)
        above = mean.less(Placements.mean(reference)).estimate(-1.0) if reference else None
        found.append(
            Membership(
                subject=subject,
                model=model,
                auc=estimate.value,
                low=estimate.low,
                high=estimate.high,
                std=deviation([one.auc for one in runs]),
                n=len(runs),
                members=len(members),
                others=len(others),
                **_named("within", within),
                **_named("above_whole", above),
            )
        )
    return tuple(found)


def _named(name: str, found: Estimate | None) -> dict[str, float]:
    return {} if found is None else {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}

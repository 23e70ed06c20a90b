"""The subjects of an audit: what models are trained on, and how each is made from a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.evaluation.audit.repetition import repetition
from gcond.graph import SourceGraph, budget_for
from gcond.jobs import Condensation
from gcond.methods import Random
from gcond.results import Subject

WHOLE_GRAPH = "whole graph"


@dataclass(frozen=True, eq=False)
class Trained:
    """What models are trained on, and how it is made from a source."""

    subject: Subject
    small: CondensedGraph | None = None
    """A graph that was given."""
    making: Condensation | None = None
    """How it is made again, or in the first place; with the seed of the draw where it is random nodes."""

    @property
    def name(self) -> str:
        return self.subject.name

    def drawn(self, seed: int) -> Condensation | None:
        """How it is made in the draw ``seed``."""
        if self.subject.kind == "random" and self.making is not None:
            return replace(self.making, seed=seed)
        return self.making


def subjects_of(smalls: Sequence[CondensedGraph], source: SourceGraph, notes: list[str]) -> list[Trained]:
    """The whole graph, random nodes for each size, and the graphs that were given, each under a name of its own."""
    found = [Trained(Subject(WHOLE_GRAPH, "whole", source.num_nodes))]
    for nodes in dict.fromkeys(small.num_nodes for small in smalls):
        name = f"{nodes:,} random nodes"
        try:
            making = Condensation(Random(), budget_for(source, nodes=nodes), 0)
        except GcondError as error:
            notes.append(f"{name} are left out: {error}")
            continue
        found.append(Trained(Subject(name, "random", nodes, making.method.name), making=making))
    smalls = list({small.sha256: small for small in smalls}.values())  # one that is given twice is one
    for small, name in zip(smalls, _names(smalls), strict=True):
        made = small.provenance
        if made is not None and made.source.get("sha256") != source.sha256:
            notes.append(
                f"{name} was not made from '{source.name}' as it is here: its distances and its membership are about "
                "a graph that it may not know"
            )
        again: Condensation | None = None
        try:
            again = repetition(small, source)
        except GcondError as error:
            notes.append(f"{name} is left out of noise before condensing, because {_lower(str(error))}")
        subject = Subject(
            name=name,
            kind="condensed",
            nodes=small.num_nodes,
            method=made.method if made is not None else "",
            seed=made.seed if made is not None else None,
            sha256=small.sha256,
            repeated=again is not None,
        )
        found.append(Trained(subject, small, again))
    return found


def _names(smalls: Sequence[CondensedGraph]) -> list[str]:
    """``clusters, 70 nodes`` for each, with as much beside it as tells it from the others: its seed, or its digest."""
    made = [small.provenance for small in smalls]
    methods = ["unknown method" if each is None else each.method for each in made]
    plain = [f"{method}, {small.num_nodes:,} nodes" for method, small in zip(methods, smalls, strict=True)]
    seeded = [name if each is None else f"{name}, seed {each.seed}" for name, each in zip(plain, made, strict=True)]
    digested = [f"{name}, {small.sha256[:8]}" for name, small in zip(plain, smalls, strict=True)]
    return [
        next(names[place] for names in (plain, seeded, digested) if names.count(names[place]) == 1 or names is digested)
        for place in range(len(smalls))
    ]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]

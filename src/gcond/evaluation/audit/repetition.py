"""Whether a condensed graph can be made again in the same way from another source, and if not, why."""

from __future__ import annotations

from gcond import methods
from gcond.callbacks.deadline import OUT_OF_TIME
from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.errors import GcondError
from gcond.graph import SourceGraph, budget_for
from gcond.jobs import Condensation


def repetition(small: CondensedGraph, source: SourceGraph) -> Condensation:
    """The making of ``small``: method, settings, budget and seed; refused where these are not all that made it."""
    made = small.provenance
    if made is None:
        raise GcondError("it does not say how it was made")
    if made.grown_from:
        raise GcondError("it was grown from another condensed graph")
    if made.compaction:
        raise GcondError("it was made compact, which was chosen for this graph alone")
    if made.ended == OUT_OF_TIME:
        raise GcondError("its learning was ended by a deadline, and would not end at the same place again")
    method = settings.build(methods.find(made.method), made.settings, f"its method '{made.method}'")
    return Condensation(method, budget_for(source, nodes=small.num_nodes), made.seed)

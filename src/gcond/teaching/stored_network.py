"""The network teacher on a graph that stays on disk: what it needs is read into memory, where the limit allows it."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gcond.errors import GcondError
from gcond.graph import LabelledView
from gcond.graph.stored_inputs import StoredInputs
from gcond.runtime.memory import held_bytes
from gcond.teaching.random_propagation import RandomPropagation


def in_memory(
    train: LabelledView, val: LabelledView, classes: int, *, beside_ridge: bool = False
) -> tuple[LabelledView, LabelledView]:
    """Both views, of one graph, with that graph in memory; one that does not fit is refused with what it needs.

    With ``beside_ridge`` the ridge speaks too, whose features are then in memory as well, smoothed.
    """
    inputs = train.inputs
    if not isinstance(inputs, StoredInputs):
        return train, val
    need = held_bytes() + RandomPropagation().memory(inputs, classes)
    if beside_ridge:
        need += 16 * inputs.num_nodes * (inputs.num_features + classes)
    if need > inputs.may_hold:
        raise GcondError(
            f"the network as a teacher would take about {need / 10**6:.0f} MB with '{inputs.arrays.name}' in memory, "
            f"and the limit is {inputs.may_hold / 10**6:.0f}: use memory_limit='{ceil(need / 10**6)}MB' or more, or "
            "teacher='ridge'"
        )
    loaded = inputs.loaded()
    return replace(train, inputs=loaded), replace(val, inputs=loaded)

"""A small learned graph that tests of thresholds share."""

from __future__ import annotations

from gcond.methods.condense import condense

OPTIONS = {"epochs": 2, "outer": 2, "inner": 1, "structure_hidden": 8, "init": "sample", "probe_every": 0}


def learned(source, **options):
    return condense(source, method="gcond", nodes=12, **(OPTIONS | options))

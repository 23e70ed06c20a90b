"""The kinds of feature transform by name; without torch, so that naming them costs nothing."""

from __future__ import annotations

from typing import Literal, get_args

FeatureKind = Literal["none", "row-normalise", "unit-rows", "tf-idf", "standardise", "unit-columns", "structural"]
KINDS: tuple[FeatureKind, ...] = get_args(FeatureKind)

FeatureChoice = Literal[
    "auto", "none", "row-normalise", "unit-rows", "tf-idf", "standardise", "unit-columns", "structural"
]
"""A kind, or ``auto``: the one that validation accuracy likes best."""
CHOICES: tuple[FeatureChoice, ...] = get_args(FeatureChoice)

MEANINGS: dict[FeatureChoice, str] = {
    "auto": "chosen by validation accuracy",
    "none": "as they are",
    "row-normalise": "a row's entries sum to 1",
    "unit-rows": "rows have length 1",
    "tf-idf": "counts weighed by how rare a word is, rows of length 1",
    "standardise": "columns have mean 0 and deviation 1 on training nodes",
    "unit-columns": "what is not zero in a column is about 1",
    "structural": "made from the edges alone",
}

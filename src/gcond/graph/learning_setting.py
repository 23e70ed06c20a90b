"""The two ways in which a graph is used; without torch, so that naming them costs nothing.

*Transductive*: the whole graph is seen, and part of it is labelled. *Inductive*: training, validation and
testing each see only the graph that their own nodes induce.
"""

from __future__ import annotations

from typing import Literal, get_args

Setting = Literal["transductive", "inductive"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)

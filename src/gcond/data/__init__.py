"""Graphs by name, from files, or made up: everything that ends in a :class:`gcond.graph.source_graph.SourceGraph`.

Importing this package is cheap: torch and the readers are imported when a graph is asked for.
"""

from __future__ import annotations

from gcond.data.catalogue import catalogue
from gcond.data.loading import load

__all__ = ["catalogue", "load"]

"""The colours of classes in every picture."""

from __future__ import annotations

# Okabe and Ito, Color Universal Design (2008), without black, which is the edges'. The order keeps neighbours apart.
# page.js has the same ones.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")

"""The page: one self-contained HTML file for one or many runs."""

from __future__ import annotations

from gcond.reports.page.page_runs import Run, read_runs
from gcond.reports.page.rendering import render_page

__all__ = ["Run", "read_runs", "render_page"]

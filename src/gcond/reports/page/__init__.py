"""The page: one self-contained HTML file for one or many runs."""

from __future__ import annotations

from gcond.reports.page.page_run import PageRun, read_runs
from gcond.reports.page.rendering import render_page

__all__ = ["PageRun", "read_runs", "render_page"]

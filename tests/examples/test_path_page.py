"""docs/path.md, run as it stands: every command in its order, on fewer nodes and trials where the page says so."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gcond

pytest.importorskip("optuna")

PAGE = Path(__file__).parents[2] / "docs" / "path.md"
REAL = Path(os.environ["GCOND_DATA"]) / "debian" if os.environ.get("GCOND_DATA") else None
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SMALLER = re.compile(r"<!-- the test of this page takes (.*?) for (.*?) -->")
FACT = re.compile(r"^  ([^\s=]+(?: [^\s=]+)*)   +\S", re.MULTILINE)
"""A name on the left of what is said of it; configurations, which have ``=``, are others on fewer nodes."""


def section(heading: str) -> str:
    """The part of the page under a heading of the second level, smaller where the page says so."""
    page = PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    smaller = SMALLER.findall(found)
    assert smaller
    for less, more in smaller:
        assert more in SMALLER.sub("", found), f"the page has no {more}"
        found = found.replace(more, less)
    return found


def walk(text: str, folder: Path) -> None:
    """Write the scripts of a section and run its commands; each prints the facts that the page shows under it."""
    blocks = BLOCK.findall(text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for at, (kind, body) in enumerate(blocks):
        if title := re.search(r'title="(.*?)"', kind):
            (folder / title.group(1)).write_text(body)
        if kind != "sh":
            continue
        done = subprocess.run(
            ["bash", "-e", "-c", body],
            cwd=folder,
            env={**os.environ, "PATH": path, "GCOND_OFFLINE": "1", "COLUMNS": "110"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{body}\n{done.stderr}"
        assert "warning" not in done.stderr
        shown = blocks[at + 1][1] if at + 1 < len(blocks) and blocks[at + 1][0] == "text" else ""
        assert set(FACT.findall(shown)) <= set(FACT.findall(done.stdout)), body


def most_common_share(words: list[str]) -> float:
    return Counter(words).most_common(1)[0][1] / len(words)


def test_every_command_is_run_here() -> None:
    """No command of the page stands outside the sections that are walked."""
    page = PAGE.read_text(encoding="utf-8")
    walked = sum(len(re.findall("^```sh$", section(name), re.MULTILINE)) for name in ("Two tables", "A real graph"))
    assert walked == len(re.findall("^```sh$", page, re.MULTILINE)) >= 8


@pytest.mark.slow
def test_two_tables(tmp_path: Path) -> None:
    walk(section("Two tables"), tmp_path)
    with (tmp_path / "truth.csv").open() as file:
        truth = {row["id"]: row["class"] for row in csv.DictReader(file)}
    with (tmp_path / "answers.csv").open() as file:
        answers = {row["id"]: row["class"] for row in csv.DictReader(file)}
    assert answers.keys() == truth.keys()
    right = sum(answers[name] == truth[name] for name in truth) / len(truth)
    assert right > 1.5 * most_common_share(list(truth.values()))
    # Python says the same, from the same files.
    model = gcond.load_model(tmp_path / "model.safetensors")
    found = model.predict(tmp_path / "papers", "unlabelled")
    assert dict(zip(found.ids.to_list(), found.names, strict=True)) == answers


@pytest.mark.accuracy
def test_a_real_graph(tmp_path: Path) -> None:
    if REAL is None or not REAL.is_dir():
        pytest.skip("$GCOND_DATA has no folder debian")
    (tmp_path / "debian").symlink_to(REAL.resolve())
    walk(section("A real graph"), tmp_path)
    graph = gcond.load(tmp_path / "debian", features="none")
    labels = [graph.class_names[each] for each in graph.y[graph.test_mask].tolist()]
    reached = gcond.load_model(tmp_path / "debian-model.safetensors").record.test_accuracy
    assert reached is not None
    assert reached > 2 * most_common_share(labels)
    with (tmp_path / "sections.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == int((graph.y < 0).sum())
    assert all(row["class"] in graph.class_names for row in rows)
    assert len({row["class"] for row in rows}) > 1

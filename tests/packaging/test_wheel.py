"""The wheel that is published holds everything that the package reads, and nothing else."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gcond"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if importlib.util.find_spec("hatchling") is None:
        reason = "hatchling is not installed: make test sets it up"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_it_has_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    kept = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    kept = {name for name in kept if "__pycache__" not in name}
    assert kept == {name for name in wheel.namelist() if name.startswith("gcond/")}


@pytest.mark.parametrize(
    "name",
    [
        "gcond/py.typed",
        "gcond/reproduction/paper.json",
        "gcond/reports/templates/page.html.j2",
        "gcond/reports/templates/page.js",
        "gcond/reports/templates/page.css",
        "gcond/methods/recipes/cora.toml",
        "gcond/methods/recipes/ogbn-arxiv.toml",
    ],
)
def test_it_has_what_is_read_at_run_time(wheel: zipfile.ZipFile, name: str) -> None:
    assert wheel.read(name) == (SOURCE.parent / name).read_bytes()


def test_it_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    text = wheel.read(metadata).decode()
    assert "License-Expression: MIT" in text
    assert "Requires-Python: >=3.11" in text
    assert "Project-URL: Documentation" in text
    (licence,) = (name for name in wheel.namelist() if name.endswith("/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()

"""A workspace with tiny graphs, and the command run inside this process."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch

from cli.workspace import Outcome, Workspace, build_tiny
from gcond.cli.app import run
from gcond.methods.condense import condense


@pytest.fixture(scope="session")
def files() -> dict[str, bytes]:
    """The bytes of the two good files, made once."""
    graph = build_tiny()
    small = condense(graph, method="random", nodes=6)
    with tempfile.TemporaryDirectory() as folder:
        graph.save(f"{folder}/tiny.safetensors")
        small.save(f"{folder}/small.safetensors")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.fixture
def workspace(tmp_path, files, monkeypatch) -> Workspace:
    folder = tmp_path / "workspace"
    (folder / "out").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GCOND_DATA", raising=False)
    return Workspace(folder)


@pytest.fixture
def gcond(capsys, monkeypatch):
    """Run a command line in this process: exit code, stdout and stderr; tables are as wide as they like."""
    monkeypatch.setenv("COLUMNS", "10000")

    def call(*argv: object) -> Outcome:
        threads = torch.get_num_threads()
        capsys.readouterr()
        try:
            code = run([str(word) for word in argv])
        finally:
            torch.set_num_threads(threads)
        return Outcome(code, *capsys.readouterr())

    return call

"""The scripts in ``examples/`` run as they stand, in an empty folder and without a network."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# A script, what it must say, and what it must leave.
SCRIPTS = {
    "own_graph_from_csv.py": (r"on 12 learned nodes: \d+\.\d%", ["club", "club-12.safetensors"]),
    "pyg_training_loop.py": (r"trained on 30 of 900 nodes\nvalidation \d+\.\d%, test \d+\.\d%", []),
    "architecture_search.py": (r"best on the condensed graph: \{'hops': .*\}, tested at \d+\.\d%", []),
    "callback.py": (r"stopped after epoch \d+ of 10: ", []),
    "own_method.py": (r"Hubs\(fewest=True\): \d+\.\d%[^\n]*\n\{'fewest': True\}", ["hubs-30.safetensors"]),
}


def test_every_script_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_example(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    says, leaves = SCRIPTS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GCOND_OFFLINE", "1")
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert re.search(says, capsys.readouterr().out)
    assert sorted(path.name for path in tmp_path.iterdir()) == leaves

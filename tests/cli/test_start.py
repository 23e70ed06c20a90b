"""The command as a real process: what it imports, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "numpy", "scipy", "pydantic", "pyarrow")


def process(*argv: object, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gcond", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv", [["--help"], ["condense", "--help"], ["evaluate", "-h"], ["grow", "-h"], ["--version"], ["condens"]]
)
def test_help_and_parse_errors_import_nothing_heavy(argv):
    script = (
        "import sys\nfrom gcond.cli.app import run\ncode = run(sys.argv[1:])\n"
        f"print(code, [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *argv], capture_output=True, text=True, check=True, timeout=60)
    code = 2 if argv == ["condens"] else 0
    assert done.stderr.splitlines()[-1] == f"{code} []"


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv", [["datasets"], ["datasets", "--json", "--device", "cpu"], ["methods", "--device", "x"]]
)
def test_what_needs_no_torch_does_not_wait_for_it(argv):
    script = (
        "import sys\nfrom gcond.cli.app import run\ncode = run(sys.argv[1:])\n"
        "print(code, 'torch' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *argv], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.splitlines()[-1] == f"{2 if 'x' in argv else 0} False"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("condense", ["--ratio", "--nodes", "--method", "--seed", "--out", "-o", "--set", "--setting", "--directed"]),
        ("condense", ["--recipe", "--resume", "--checkpoint-every", "--log", "--force", "--compact", "--recommend"]),
        (
            "compact",
            ["--on", "--entries", "--bits", "--tolerance", "--keep-structure", "--keep-digests", "-o", "--force"],
        ),
        ("update", ["--on", "--nodes", "--ratio", "--seed", "--out", "-o", "--force", "--json"]),
        ("grow", ["--on", "--nodes", "--seed", "--out", "-o", "--set", "--force", "--resume", "--checkpoint-every"]),
        (
            "evaluate",
            [
                "--on",
                "--whole",
                "--models",
                "--runs",
                "--seed",
                "--set",
                "--out",
                "-o",
                "--engine",
                "--no-record",
                "--recipe",
            ],
        ),
        ("inspect", ["--on", "--setting", "--directed"]),
        ("compare", ["--ratio", "--nodes", "--methods", "--models", "--seeds", "--runs", "--engine", "--workers"]),
        ("nas", ["--on", "--model", "--grid", "--runs", "--condensed-epochs", "--engine", "--address"]),
        ("recommend", ["--on", "--model", "--runs", "--seed", "--grid", "--set", "--out", "-o", "--engine"]),
        ("plot", ["--kind", "--on", "--out", "-o", "--format", "--delta"]),
        ("report", ["--on", "--out", "-o", "--title"]),
        ("reproduce", ["--datasets", "--quick", "--seeds", "--runs", "--settings", "--engine"]),
        ("propagate", ["--hops", "--out", "-o", "--memory"]),
        ("train", ["--memory"]),
        ("tune", ["--memory"]),
        ("nas", ["--memory"]),
        ("grow", ["--memory"]),
        ("update", ["--memory"]),
        ("compact", ["--memory"]),
        ("recommend", ["--memory"]),
        ("methods", []),
        ("models", []),
        ("datasets", []),
        ("demo", ["--out"]),
    ],
)
def test_help_names_every_option(command, options, gcond):
    shown = gcond(command, "--help")
    assert shown.code == 0
    for option in [*options, "--json", "--quiet", "--device", "--threads", "--data"]:
        assert option in shown.out
    assert command in gcond("--help").out


def test_without_arguments_there_is_help(gcond):
    assert "Usage: gcond COMMAND" in gcond().out


@pytest.mark.slow
def test_a_refusal_of_a_real_process(workspace):
    done = process("inspect", workspace.file("cut.safetensors", workspace.small.read_bytes()[:-9]))
    assert (done.returncode, done.stdout) == (2, "")
    assert "cut.safetensors' cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_json_of_a_real_process_without_a_terminal(workspace):
    done = process("condense", workspace.source, "--nodes", 6, "--method", "random", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["nodes"] == 6
    assert done.stderr == ""


@pytest.mark.slow
def test_nobody_reads_the_output():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gcond", "methods", "--json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
def test_nobody_reads_the_table():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gcond", "models"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_stdout_is_full():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "gcond", "models", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "gcond: the result cannot be written: the disk is full\n"


def test_an_interrupt_in_the_middle(workspace, gcond, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt  # what Ctrl-C becomes; a process started in the background ignores the signal itself

    monkeypatch.setattr("gcond.jobs.training_job.fit", interrupted)
    before = workspace.contents()
    outcome = gcond("evaluate", workspace.small, "--on", workspace.source)
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "gcond: interrupted\n")
    assert workspace.contents() == before

"""Terminals that cannot show everything, and names that would do something to them."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cli.workspace import build_tiny
from gcond.cli.app import run
from gcond.runtime.plain_text import encodable, printable

EVIL = "\x1b[31mred\x07\x9b2J\u202eevil\r\n\u2028gcond: all is well"
QUICK = ("--runs", "2", "--set", "epochs=2")


def written(monkeypatch, encoding, *argv, errors="strict"):
    """Exit code and output of a command whose terminal has another encoding."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors, write_through=True) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    code = run([str(word) for word in argv])
    assert [stream.errors for stream in streams] == [errors] * 2
    return code, *(stream.buffer.getvalue().decode(encoding) for stream in streams)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_what_an_encoding_lacks_is_spelled(encoding, workspace, monkeypatch):
    argv = ("evaluate", workspace.small, "--on", workspace.source, *QUICK)
    code, out, err = written(monkeypatch, encoding, *argv)
    assert (code, err) == (0, "")
    assert ("+-" if encoding == "ascii" else "±") in out
    for command in ("methods", "models", "datasets"):
        assert written(monkeypatch, encoding, command)[0] == 0
    assert written(monkeypatch, encoding, "inspect", workspace.small)[0] == 0
    assert written(monkeypatch, encoding, "condense", "--help")[0] == 0
    code, _, err = written(monkeypatch, encoding, "inspect", "größe-⚙.safetensors")
    assert code == 2
    assert "there is no file" in err


def test_names_in_a_file_reach_the_terminal_as_text(workspace, gcond):
    """The name of the graph and those of its classes are whoever's who wrote the file."""
    evil = build_tiny(name=EVIL, class_names=(EVIL, "b", "c"), extra_edges=[(0, 1), (1, 0)])
    evil.save("evil.safetensors")
    told = [gcond("inspect", "evil.safetensors")]
    told.append(gcond("condense", "evil.safetensors", "--nodes", 6, "--method", "random", "-o", "e.safetensors"))
    told.append(gcond("inspect", "e.safetensors", "--on", "evil.safetensors"))
    told.append(gcond("evaluate", "e.safetensors", "--on", "evil.safetensors", *QUICK))
    told.append(gcond("evaluate", workspace.small, "--on", "evil.safetensors", *QUICK))
    told.append(gcond("train", "e.safetensors", "--on", "evil.safetensors", "--set", "epochs=2", "-o", "m.safetensors"))
    told.append(gcond("predict", "m.safetensors", "--on", "evil.safetensors", "-o", "p.csv"))
    told.append(gcond("inspect", "m.safetensors"))
    for each in told:
        assert each.code == 0, each.err
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\r"} & set(each.out + each.err)
        assert not any(line.startswith("gcond: ") for line in each.err.splitlines())  # none but the command says so
    assert "\\x1b[31mred" in told[0].out
    assert told[4].err.startswith("warning: '\\x1b[31mred")
    refused = gcond("grow", "e.safetensors", "--on", "evil.safetensors", "--nodes", EVIL)
    assert refused.code == 2
    assert "\x1b" not in refused.err


@given(st.text())
def test_nothing_but_line_breaks_acts(text):
    shown = printable(text)
    assert all(letter == "\n" or letter >= " " for letter in shown)
    assert "\x7f" not in shown
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


@given(st.text(st.characters()))
def test_every_text_can_be_written_to_every_stream(text):
    for encoding in ("ascii", "utf-8", "latin-1", "shift_jis"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        with encodable(stream):
            stream.write(printable(text))
            stream.flush()


@pytest.mark.slow
@pytest.mark.parametrize(
    "surrounding",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}],
    ids=["ascii", "C"],
)
def test_a_process_in_such_surroundings(surrounding, workspace):
    for words in (["--help"], ["methods"], ["inspect", str(workspace.small), "--on", str(workspace.source)]):
        told = subprocess.run(
            [sys.executable, "-m", "gcond", *words], env=os.environ | surrounding, capture_output=True, check=False
        )
        assert told.returncode == 0, told.stderr
        assert told.stdout.isascii()
        assert b"Traceback" not in told.stderr

"""``gcond reproduce``."""

from __future__ import annotations

import json

import pytest


def test_without_a_table_they_are_listed(gcond):
    done = gcond("reproduce")
    assert done.code == 0
    assert "cross-depth" in done.out
    listed = json.loads(gcond("reproduce", "--json").out)["tables"]
    assert {"main", "nas", "pubmed"} <= {entry["table"] for entry in listed}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("mian",), "unknown table 'mian' (did you mean 'main'?)"),
        (("main", "--datasets", "corra"), "unknown data set 'corra' (did you mean 'cora'?)"),
        (("pubmed", "--datasets", "cora"), "unknown data set 'cora'"),
        (("main", "--datasets", ","), "--datasets names no data set"),
        (("main", "--seeds", "0"), "use --seeds 1 or more"),
        (("main", "--settings", "mine"), "choose gcond or paper"),
    ],
)
def test_what_cannot_be_is_refused(options, sentence, gcond):
    done = gcond("reproduce", *options)
    assert done.code == 2
    assert sentence in done.err


def test_missing_data_sets_are_told_with_how_to_get_them(gcond, tmp_path, monkeypatch):
    monkeypatch.setenv("GCOND_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = gcond("reproduce", "main", "-o", str(tmp_path / "out"))
    assert done.code == 2
    assert "cora is not here (downloaded on first use)" in done.err
    assert "ogbn-arxiv is not here (put " in done.err
    assert "no data set is at hand" in done.err
    assert not (tmp_path / "out").exists()

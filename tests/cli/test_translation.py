"""Python names arguments, the command line options: one sentence, two spellings."""

from __future__ import annotations

import pytest

from gcond.cli.translation import in_options
from gcond.data import load
from gcond.errors import GcondError
from gcond.methods.condense import condense
from gcond.runtime.engines import open_engine

OPTIONS = (
    "--nodes",
    "--ratio",
    "--memory",
    "--data",
    "--out",
    "-o",
    "--directed",
    "--set",
    "--train",
    "--engine",
    "--send-store",
)


@pytest.mark.parametrize(
    ("python", "command_line"),
    [
        ("use nodes=7 or more", "use --nodes 7 or more"),
        ("nodes=-6 is too small: use 7 or more", "--nodes -6 is too small: use 7 or more"),
        ("for example ratio='2.6%' or nodes=70", "for example --ratio 2.6% or --nodes 70"),
        ("(nodes=7, or fewer)", "(--nodes 7, or fewer)"),
        ("use memory_limit='500MB' or more", "use --memory 500MB or more"),
        ("give data_dir=DIR or set $GCOND_DATA", "give --data DIR or set $GCOND_DATA"),
        ("give another folder='runs'", "give another -o runs"),
        ("write it with out='a b.npy'", "write it with -o a b.npy"),
        ("or be sent there with send_store=True", "or be sent there with --send-store"),
        ("load its raw data with directed=True", "load its raw data with --directed"),
    ],
)
def test_arguments_become_options(python, command_line):
    assert in_options(python, OPTIONS) == command_line


@pytest.mark.parametrize(
    "said",
    [
        "use seeds=3 or more",  # an argument for which this command has no option
        "synthetic:small: setting nodes='x' is not usable",
        "write changes as in 'synthetic:small,nodes=5000'",
        "there is no file or folder './nodes=7/graph'",
        "train=0.001 is 3 nodes, too few for 6 classes",  # --train takes settings
        "lower the setting memory, or take batches by sampling=always",
        "models train on A' = I",
    ],
)
def test_what_is_no_argument_stays(said):
    assert in_options(said, OPTIONS) == said


def test_a_budget_in_both(workspace, gcond):
    with pytest.raises(GcondError) as caught:
        condense(workspace.source, method="random", ratio="2%")
    sentence = "ratio 2% of 60 nodes is 1 nodes, but there are 3 classes: use {} or more"
    assert str(caught.value) == sentence.format("nodes=3")
    assert sentence.format("--nodes 3") in gcond("condense", workspace.source, "--ratio", "2%", "--quiet").err


def test_an_engine_in_both(workspace, gcond):
    with pytest.raises(GcondError, match=r"address='here' .* engine='ray'"):
        open_engine(address="here")
    said = gcond("compare", workspace.source, "--nodes", 6, "--address", "here").err
    assert "--address here is for Ray: add --engine ray" in said
    with pytest.raises(GcondError, match="workers=0"):
        open_engine(workers=0)
    assert "--workers 0" in gcond("compare", workspace.source, "--nodes", 6, "--workers", 0).err


def test_a_data_folder_in_both(tmp_path, gcond):
    with pytest.raises(GcondError, match="give data_dir=DIR"):
        load("flickr", data_dir=tmp_path)
    assert "give --data DIR" in gcond("condense", "flickr", "--nodes", 44, "--data", tmp_path).err

from __future__ import annotations

from pathlib import Path

import pytest

from gcond import methods
from gcond.config import settings
from gcond.data.catalogue import DATASETS
from gcond.errors import GcondError
from gcond.methods import method_for
from gcond.methods import recipe_file as recipes
from gcond.methods.condense import condense

PAPER = ("gcond", "gcond-x", "dc-graph")
NAMES = ("citeseer", "cora", "flickr", "ogbn-arxiv", "pubmed", "reddit")


def written(folder, text):
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_what_comes_with_the_package():
    assert tuple(recipes.available()) == NAMES
    assert {path.parent for path in recipes.available().values()} == {Path(recipes.__file__).parent / "recipes"}


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_can_be_followed(name):
    recipe = recipes.load(name)
    assert recipe.dataset == name
    assert name in DATASETS
    assert recipe.budgets
    assert set(PAPER) <= set(recipe.methods)
    for method in recipe.methods:
        built = method_for(method, {}, name)
        assert (built.probe_every, built.patience, built.init) == (0, 0, "sample")
        # All that is set is meant: a later default cannot change what the paper did.
        assert recipe.settings(method).items() <= settings.as_dict(built).items()


@pytest.mark.parametrize(
    "row",  # data set; layers, rate, outer, inner, epochs, width of Φ, δ
    [
        ("cora", 1, 1e-4, 20, 15, 600, 128, 0.05),
        ("citeseer", 1, 1e-4, 20, 15, 600, 128, 0.05),
        ("pubmed", 1, 1e-4, 20, 10, 600, 128, 0.05),
        ("ogbn-arxiv", 2, 1e-2, 20, 3, 1000, 256, 0.01),
        ("flickr", 2, 5e-3, 10, 1, 1000, 256, 0.01),
        ("reddit", 1, 1e-1, 10, 1, 1000, 256, 0.01),
    ],
)
def test_the_papers_settings(row):
    name, layers, rate, outer, inner, epochs, width, delta = row
    got = method_for("gcond", {}, name)
    assert (got.backbone, got.layers, got.hops, got.hidden) == ("sgc", layers, 2, 256)
    assert (got.lr_features, got.lr_structure, got.lr_model) == (rate, rate, 0.01)
    assert (got.outer, got.inner, got.epochs) == (outer, inner, epochs)
    assert (got.structure_hidden, got.edge_bias, got.delta) == (width, 0.0, delta)
    assert got.neighbours_of(909) is None  # all pairs, as the paper has them
    # Φ learns when epoch % 50 < 10, else X'
    assert [got.turns().learns(epoch) for epoch in (0, 9, 10, 49, 50)] == [
        (False, True),
        (False, True),
        (True, False),
        (True, False),
        (False, True),
    ]


def test_a_file_of_ones_own(tmp_path, make_graph):
    path = written(
        tmp_path, "[gcond]\nepochs = 2\nouter = 2\nlr_features = 1\nfanout = [4, 2]\n[herding]\nepochs = 9\n"
    )
    recipe = recipes.load(path)
    assert (recipe.dataset, recipe.budgets) == ("", ())
    options = {"epochs": "1", "inner": 1, "probe_every": 0, "structure_hidden": 4}
    made = condense(make_graph(), nodes=6, recipe=path, **options).provenance.settings
    assert (made["epochs"], made["outer"], made["lr_features"]) == (1, 2, 1.0)
    assert method_for("herding", {}, str(path)).epochs == 9


def test_what_a_recipe_gives_is_a_copy():
    recipe = recipes.load("cora")
    recipe.settings("gcond")["epochs"] = 1
    assert recipe.settings("gcond")["epochs"] == 600


def test_a_name_is_a_name_and_a_path_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cora").write_text("[gcond]\nepochs = 3\n")
    assert method_for("gcond", {}, "cora").epochs == 600
    assert method_for("gcond", {}, "./cora").epochs == 3
    assert method_for("gcond", {}, Path("cora")).epochs == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gcond]\nepoch = 3\n", r"mine.toml', table \[gcond\] has no setting 'epoch' \(did you mean 'epochs'\?\)"),
        ("[gcond]\nepochs = 'many'\n", r"mine.toml', table \[gcond\]: setting epochs='many' is not usable"),
        ("[gcond]\nepochs = -1\n", r"mine.toml', table \[gcond\]: .*epochs must not be negative"),
        ("[gcondx]\nepochs = 3\n", r"mine.toml' has 'gcondx' \(did you mean 'gcond-x'\?\), which is no method"),
        (
            "epochs = 3\n",
            r"mine.toml' has 'epochs', which is no method: its tables must be among clusters, coarsening, dc-graph",
        ),
        ("gcond = 3\n", r"mine.toml': 'gcond' must be a table of settings, \[gcond\]"),
        ("dataset = 3\n", "mine.toml': setting dataset=3 is not usable: .*string"),
        ("budgets = [3, '4']\n", "mine.toml': setting budgets=.*'4'.* is not usable: .*integer"),
        ("budgets = [0]\n", "mine.toml': setting budgets=.*0.* is not usable: .*greater than 0"),
        ("gat_threshold = 1.0\n", "mine.toml': setting gat_threshold=1.0 is not usable: .*less than 1"),
        ("gat_threshold = '0.5'\n", "mine.toml': setting gat_threshold='0.5' is not usable: .*number"),
        ("[gcond\n", "mine.toml' is not TOML: "),
        ("[herding]\n", r"mine.toml' has no table for method 'gcond': its tables are \[herding\]$"),
        ("", "mine.toml' has no table for method 'gcond': its tables are none$"),
    ],
)
def test_refusals(text, message, tmp_path):
    path = written(tmp_path, text)
    with pytest.raises(GcondError, match=message):
        method_for("gcond", {}, str(path))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(GcondError, match=r"no recipe 'corra' \(did you mean 'cora'\?\): give a TOML file, or one of"):
        recipes.load("corra")
    with pytest.raises(GcondError, match="cannot be read: Is a directory"):
        recipes.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(GcondError, match="is not TOML"):
        recipes.load(tmp_path / "latin.toml")


def test_tables_are_named_after_methods():
    assert set(PAPER) <= set(methods.available())

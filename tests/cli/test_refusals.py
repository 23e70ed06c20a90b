"""Whatever a person can get wrong: exit code 2, one helpful line on stderr, an empty stdout, nothing half-written."""

from __future__ import annotations

import errno
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import safetensors.torch
import torch

from cli.workspace import Workspace, build_tiny


@dataclass(frozen=True)
class Case:
    """A command line to be refused, and the words that the refusal must contain."""

    name: str
    argv: Callable[[Workspace], list[object]]
    words: tuple[str, ...]


CASES: list[Case] = []


def refused(*words: str):
    """Register a function that prepares a workspace and gives the command line."""

    def register(function):
        CASES.append(Case(function.__name__, function, words))
        return function

    return register


def line(name: str, text: str, *words: str) -> None:
    """A case in one line of shell; SOURCE, SMALL and OUT stand for the workspace's own."""

    def argv(w: Workspace) -> list[object]:
        known = {"SOURCE": w.source, "SMALL": w.small, "OUT": w.out}
        return [known.get(word, word) for word in text.split()]

    CASES.append(Case(name, argv, words))


# --- the command line itself
line("unknown command", "frobnicate", "unknown command 'frobnicate'", "condense, evaluate")
line("misspelt command", "condence SOURCE", "did you mean 'condense'?")
line("unknown option before a command", "--frobnicate", "--frobnicate")
line("unknown option", "condense SOURCE --nodes 6 --frobnicate", "no option '--frobnicate'", "condense --help")
line("misspelt option", "condense SOURCE --node 6", "did you mean '--nodes'?")
line("no source", "condense --nodes 6", "needs SOURCE")
line("source swallowed by --set", "condense --nodes 6 --set a=1 SOURCE", "needs SOURCE before --set")
line("option without its value", "condense SOURCE --nodes", "--nodes needs a value")
line("--set without its value", "condense SOURCE --nodes 6 --set", "--set needs a value")
line("one word too many", "condense SOURCE other --nodes 6", "'other'")
line("option twice", "condense SOURCE --nodes 6 --nodes 7", "--nodes is given more than once")
line("nodes not a number", "condense SOURCE --nodes six", "--nodes cannot be 'six'", "whole number")
line("nodes not whole", "condense SOURCE --nodes 6.5", "--nodes cannot be '6.5'", "whole number")
line("seed not a number", "condense SOURCE --nodes 6 --seed lucky", "--seed cannot be 'lucky'")
line("unknown setting", "condense SOURCE --nodes 6 --setting deductive", "deductive", "transductive or inductive")
line("flag with a value", "condense SOURCE --nodes 6 --json=perhaps", "--json cannot be 'perhaps'")
line("inspect nothing", "inspect", "needs FILE")
line("propagate to nowhere", "propagate SOURCE", "needs --out")
line("list with an argument", "datasets herding", "'herding'")
line("explain no method", "methods hoarding", "unknown method 'hoarding'", "did you mean 'herding'?")
line("explain no model", "models gnc", "unknown model 'gnc'")

# --- what evaluate is asked to do
line("evaluate nothing", "evaluate", "--on SOURCE", "--whole SOURCE")
line("evaluate both", "evaluate SMALL --whole SOURCE", "either")
line("evaluate without a source", "evaluate SMALL", "add --on SOURCE")
line("whole graph on another", "evaluate --whole SOURCE --on SOURCE", "--on goes with a condensed file")
line("no runs", "evaluate SMALL --on SOURCE --runs 0", "0 runs", "1 or more")
line("runs not a number", "evaluate SMALL --on SOURCE --runs many", "--runs cannot be 'many'")
line("unknown model", "evaluate SMALL --on SOURCE --models chebi", "unknown model 'chebi'", "did you mean 'cheby'?")
line("no model", "evaluate SMALL --on SOURCE --models ,", "names no model", "gcn")
line("unknown recipe setting", "evaluate SMALL --on SOURCE --set epoch=9", "no setting 'epoch'", "'epochs'")
line("setting of neither", "evaluate SMALL --on SOURCE --set depth=9", "no setting 'depth'", "weight_decay", "hidden")
line(
    "setting of another model", "evaluate SMALL --on SOURCE --set hops=3", "no setting 'hops'", "model 'gcn' has layers"
)
line(
    "setting of some models",
    "evaluate SMALL --on SOURCE --models gcn,sgc,appnp,mlp --set hops=3",
    "setting 'hops' exists for sgc and appnp but not for gcn and mlp",
    "share layers, hidden, activation",
)
line("misspelt model setting", "evaluate SMALL --on SOURCE --set hiden=9", "did you mean 'hidden'?")
line("model setting of the wrong type", "evaluate SMALL --on SOURCE --set hidden=wide", "'gcn'", "hidden='wide'")
line("model without layers", "evaluate SMALL --on SOURCE --set layers=0", "model 'gcn'", "at least 1")
line("unknown model beside all", "evaluate SMALL --on SOURCE --models all,gnc", "unknown model 'gnc'")
line("setting of no graph", "inspect SMALL --setting inductive", "--setting", "add --on SOURCE")
line("features of no graph", "inspect SMALL --features tf-idf", "--features", "add --on SOURCE")
line("unknown features", "condense SOURCE --nodes 6 --features tfidf", "tfidf", "tf-idf")
line("directions of no graph", "inspect SMALL --directed", "--directed", "add --on SOURCE")
line("recipe setting of the wrong type", "evaluate SMALL --on SOURCE --set epochs=many", "epochs='many'")
line("no epochs", "evaluate SMALL --on SOURCE --set epochs=0", "epochs must be at least 1")
line("dropout above one", "evaluate SMALL --on SOURCE --set dropout=1.5", "dropout", "below 1")
line("learning rate not a number", "evaluate SMALL --on SOURCE --set lr=nan", "lr=nan", "finite")
line("unknown selection", "evaluate SMALL --on SOURCE --set select=best", "select='best'", "best-validation")
line("assignment without a value", "evaluate SMALL --on SOURCE --set epochs", "key=value", "'epochs'")

# --- the other commands, asked for what cannot be
line("train without a source", "train SMALL -o m.safetensors", "add --on SOURCE")
line("train to nowhere", "train SMALL --on SOURCE", "needs --out")
line("train an unknown model", "train SMALL --on SOURCE --model gnc -o m.safetensors", "did you mean 'gcn'?")
line("train to another format", "train SMALL --on SOURCE -o m.pt", "'m.pt'", "end it in .safetensors")
line("train a whole graph on another", "train SOURCE --on SMALL -o m.safetensors", "leave --on")
line("train no runs", "train SMALL --on SOURCE --runs 0 -o m.safetensors", "0 runs are too few")
line("train over what it is trained on", "train SMALL --on SOURCE -o SMALL --force", "is the source itself")
line(
    "predict by no model", "predict nothing.safetensors --on SOURCE -o p.csv", "there is no file 'nothing.safetensors'"
)
line("predict by a graph", "predict SMALL --on SOURCE -o p.csv", "a trained model is needed")
line("predict to another format", "predict SMALL --on SOURCE -o p.xlsx", "p.xlsx", ".parquet")
line("predict part of a part", "predict SMALL --on SOURCE -o p.csv --part most", "--part cannot be 'most'")
line("predict ids of no file", "predict SMALL --on SOURCE -o p.csv --nodes ids.txt", "there is no file 'ids.txt'")
line("tune nothing", "tune", "--on SOURCE", "--whole SOURCE")
line("tune no trials", "tune SMALL --on SOURCE --trials 0", "0 trials are too few")
line("tune an unknown setting", "tune SMALL --on SOURCE --grid width=1,2", "width")
line("tune without a source", "tune SMALL", "add --on SOURCE")
line("tune and save nowhere", "tune --whole SOURCE --save", "--save writes into a condensed file")
line("nas without a source", "nas SMALL", "needs --on")
line("nas of an unknown model", "nas SMALL --on SOURCE --model gnc", "did you mean 'gcn'?")
line("nas over nothing", "nas SMALL --on SOURCE --model gcn --grid hidden=", "hidden")
line("nas of no graph", "nas nothing.safetensors --on SOURCE", "there is no file 'nothing.safetensors'")
line("recommend for nothing", "recommend --on SOURCE", "needs a file")
line("recommend with one run", "recommend SMALL --on SOURCE --runs 1", "says nothing of its noise")
line("recommend for a source", "recommend SOURCE --on SOURCE", "holds a source graph", "condensed graph is needed")
line("compact of no file", "compact nothing.safetensors --entries 2", "there is no file 'nothing.safetensors'")
line("compact without a measure", "compact SMALL", "--on SOURCE", "--entries 100")
line("compact to no entries", "compact SMALL --entries 0", "entries")
line("compact to odd bits", "compact SMALL --bits 5", "--bits cannot be '5'")
line("compact said twice", "compact SMALL --entries 2 --tolerance 0.1", "leave one out")
line("compact onto itself", "compact SMALL --entries 2 -o SMALL --force", "is the source itself")
line("compact to another format", "compact SMALL --entries 2 -o c.npz", "'c.npz'", "end it in .safetensors")
line("condense to another format", "condense SOURCE --nodes 6 -o c.pt", "'c.pt'", "end it in .safetensors")
line(
    "grow what did not learn",
    "grow SMALL --on SOURCE --nodes 9",
    "does not learn its nodes",
    "condense the source anew",
)
line("grow without a size", "grow SMALL --on SOURCE", "needs --nodes")
line("pack no folder", "pack nowhere -o out/p.gcond", "nowhere")
line("pack to another name", "pack SOURCE -o out/p.zip", "p.zip", ".gcond")
line("pack within nothing", "pack SOURCE -o out/p.gcond --memory lots", "lots", "2GB")
line("synthesize no nodes", "synthesize -o out/t --nodes 0 --edges 9", "0")
line("synthesize to nowhere", "synthesize --nodes 100 --edges 9", "needs --out")
line("synthesize onto what is there", "synthesize -o SMALL --nodes 300 --edges 900", "small.safetensors")
line("propagate backwards", "propagate SOURCE -o h.npy --hops -1", "hops")
line("propagate within nothing", "propagate SOURCE -o h.npy --memory 1kB", "memory")
line("compare without a budget", "compare SOURCE --methods random", "--ratio or --nodes")
line("compare no methods", "compare SOURCE --nodes 6 --methods ,", "--methods")
line("compare an unknown method", "compare SOURCE --nodes 6 --methods randm", "did you mean 'random'?")
line("compare odd budgets", "compare SOURCE --nodes 6,x", "--nodes cannot be 'x'")
line("compare no seeds", "compare SOURCE --nodes 6 --seeds 0", "0 seeds are too few")
line("compare by no metric", "compare SOURCE --nodes 6 --metric auc", "--metric cannot be 'auc'", "macro-f1")
line("compare one that is not", "compare SOURCE --nodes 6 --methods random --set gcond.epochs=2", "not compared")
line("compare what no folder knows", "compare SOURCE --so-far -o OUT", "does not know what to compare")
line("report of nothing", "report nowhere -o p.html", "nowhere")
line("report to no page", "report SMALL -o p.pdf", "'p.pdf' is not a page", ".html")
line("report over what it is about", "report SMALL -o SMALL", "is what the page is about")
line("report of an empty run", "report OUT -o p.html", "out")
line("plot of nothing", "plot nothing.safetensors", "there is no file or folder")
line("plot an unknown figure", "plot SMALL --kind grpah", "did you mean 'graph'?")
line("plot in another format", "plot SMALL --kind graph -o g.pdf", "g.pdf", ".png or .svg")
line("plot a threshold of no source", "plot SMALL --kind threshold -o t.svg", "add --on SOURCE")
line("reproduce no table", "reproduce table9", "table9")
line("reproduce on no set", "reproduce main --datasets corra", "corra")
line("demo with a word too many", "demo cora", "'cora'")
line("explain a model twice", "models gcn sgc", "'sgc'")
line("explain no method at all", "methods zzz", "unknown method 'zzz'", "gcond")

# --- what the machine refuses
line("a name that is too long", f"condense SOURCE --nodes 6 -o {'n' * 300}.safetensors", "File name too long")
line("an input of a name that is too long", f"inspect {'n' * 300}", "File name too long")
line("a source of a name that is too long", f"condense {'n' * 5000} --nodes 6", "File name too long")
line(
    "a model that no memory holds",
    "train SMALL --on SOURCE -o out/m.safetensors --set hidden=99999999999",
    "GB are free: use fewer layers, or a smaller hidden",
)
line(
    "a model of too many layers",
    "train SMALL --on SOURCE -o out/m.safetensors --set hidden=4000 layers=9999",
    "GB are free: use fewer layers, or a smaller hidden",
)

# --- budgets
line("no budget", "condense SOURCE", "either", "--ratio 2.6% or --nodes 70")
line("two budgets", "condense SOURCE --ratio 10% --nodes 6", "either", "--ratio 2.6% or --nodes 70")
line("ratio in words", "condense SOURCE --ratio tenth", "ratio 'tenth' is not a number", "2.6%")
line("ratio above one", "condense SOURCE --ratio 1.5", "ratio 1.5 is not between 0 and 1")
line("ratio above 100 %", "condense SOURCE --ratio 150%", "ratio 150% is not between 0 and 1")
line("ratio zero", "condense SOURCE --ratio 0", "ratio 0 is not between 0 and 1")
line("ratio negative", "condense SOURCE --ratio=-0.1", "ratio -0.1 is not between 0 and 1")
line("ratio nan", "condense SOURCE --ratio nan", "ratio nan is not between 0 and 1")
line("ratio too small", "condense SOURCE --ratio 2%", "ratio 2% of 60 nodes is 1 nodes", "--nodes 3 or more")
line("nodes too few", "condense SOURCE --nodes 2", "2 nodes are too few for 3 classes", "--nodes 3")
line("nodes negative", "condense SOURCE --nodes -6", "-6 nodes are too few")
line("nodes too many", "condense SOURCE --nodes 31", "more than the 30 labelled", "--nodes 30")

# --- names
line("unknown method", "condense SOURCE --nodes 6 --method hoarding", "unknown method", "did you mean 'herding'?")
line("unknown method setting", "condense SOURCE --nodes 6 --method random --set depth=3", "no setting 'depth'")
line("method setting of the wrong type", "condense SOURCE --nodes 6 --set epochs=many", "epochs='many'", "integer")
line("method setting out of range", "condense SOURCE --nodes 6 --set delta=1", "delta", "below 1")
line("no such recipe", "condense SOURCE --nodes 6 --recipe corra", "no recipe 'corra'", "did you mean 'cora'?")
line(
    "recipe without the method",
    "condense SOURCE --nodes 6 --method herding --recipe cora",
    "recipe 'cora' has no table for method 'herding'",
    "[gcond], [gcond-x], [dc-graph]",
)
line("checkpoints in the past", "condense SOURCE --nodes 6 --checkpoint-every=-1", "--checkpoint-every cannot be -1")
line("checkpoints at no time", "condense SOURCE --nodes 6 --checkpoint-every nan", "--checkpoint-every cannot be nan")
line("checkpoints in words", "condense SOURCE --nodes 6 --checkpoint-every often", "cannot be 'often'", "a number")
line("grow nothing", "grow --on SOURCE --nodes 9", "needs CONDENSED")
line("grow without a source", "grow SMALL --nodes 9", "needs --on")
line("grow to no size", "grow SMALL --on SOURCE", "needs --nodes")
line("grow to a size in words", "grow SMALL --on SOURCE --nodes more", "--nodes cannot be 'more'", "whole number")
line(
    "grow what was selected",
    "grow SMALL --on SOURCE --nodes 9",
    "method 'random' does not learn",
    "condense the source",
)
line("grow a source", "grow SOURCE --on SOURCE --nodes 9", "holds a source graph", "condensed graph is needed")
line("grow no file", "grow nothing.safetensors --on SOURCE --nodes 9", "there is no file 'nothing.safetensors'")
line("unknown data set", "condense corra --nodes 6", "corra", "cora")
line("no such path", "condense graphs/mine --nodes 6", "graphs/mine")
line("no such file to inspect", "inspect nothing.safetensors", "there is no file 'nothing.safetensors'")
line("no such file to evaluate", "evaluate nothing.safetensors --on SOURCE", "there is no file 'nothing.safetensors'")
line("a folder to inspect", "inspect OUT", "is a folder")
line("unknown device", "methods --device gpu", "unknown device 'gpu'", "auto, cpu or cuda:0")
line("device of no number", "models --device cuda:first", "unknown device 'cuda:first'")
line("no threads", "methods --threads 0", "--threads 0", "1 or more")
line("threads not a number", "methods --threads two", "--threads cannot be 'two'")
line("threads not whole", "methods --threads 1.5", "--threads cannot be '1.5'")
line("memory not a size", "propagate SOURCE -o OUT/x.npy --memory lots", "memory 'lots' is not a size", "500MB")
line("memory too small", "propagate SOURCE -o h.npy --memory 1KB", "too small", "use --memory ")
line("hops negative", "propagate SOURCE -o h.npy --hops=-1", "--hops -1", "0 or more")
line("--on with a source", "inspect SOURCE --on SOURCE", "--on goes with a condensed file")


@refused("device 'cuda:99' is not there")
def device_that_is_not_there(w):
    return ["condense", w.source, "--nodes", 6, "--device", "cuda:99"]


@refused("mine.toml', table [gcond] has no setting 'epoch'", "did you mean 'epochs'?")
def recipe_with_an_unknown_setting(w):
    return ["condense", w.source, "--nodes", 6, "--recipe", w.file("mine.toml", "[gcond]\nepoch = 3\n")]


@refused("mine.toml' is not TOML")
def recipe_that_is_no_toml(w):
    return ["condense", w.source, "--nodes", 6, "--recipe", w.file("mine.toml", "epochs: 3\n")]


@refused("tiny-gcond-6.safetensors.checkpoint' is of a run that did not finish", "--resume", "--force")
def checkpoint_of_the_default_name(w):
    w.file("tiny-gcond-6.safetensors.checkpoint", "precious")
    return ["condense", w.source, "--nodes", 6]


@refused("new.safetensors.checkpoint' is of a run that did not finish", "--resume", "--force")
def checkpoint_beside_the_output(w):
    w.file("new.safetensors.checkpoint", "precious")
    return ["condense", w.source, "--nodes", 6, "-o", "new.safetensors"]


@refused("new.safetensors.checkpoint' cannot be read")
def checkpoint_that_is_none(w):
    w.file("new.safetensors.checkpoint", "precious")
    return ["condense", w.source, "--nodes", 6, "-o", "new.safetensors", "--resume"]


# --- files where a condensed graph belongs
@refused("cut short", "cannot be read")
def condensed_cut_short(w):
    return ["evaluate", w.file("cut.safetensors", w.small.read_bytes()[:-100]), "--on", w.source]


@refused("cannot be read")
def condensed_cut_in_its_header(w):
    return ["inspect", w.file("cut.safetensors", w.small.read_bytes()[:40])]


@refused("it is empty")
def condensed_empty(w):
    return ["inspect", w.file("empty.safetensors", b"")]


@refused("Python pickle", "never opens")
def condensed_pickle(w):
    return ["inspect", w.file("graph.safetensors", pickle.dumps({"x": [1.0]}))]


@refused("zip archive")
def condensed_zip(w):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x", "1")
    return ["evaluate", w.file("graph.pt", buffer.getvalue()), "--on", w.source]


@refused("gcond did not write", "has no tensor 'y'")
def condensed_foreign_without_labels(w):
    safetensors.torch.save_file({"x": torch.ones(2)}, w.folder / "foreign.safetensors")
    return ["inspect", w.folder / "foreign.safetensors"]


@refused("damaged metadata")
def condensed_metadata_not_json(w):
    safetensors.torch.save_file({"x": torch.ones(2)}, w.folder / "odd.safetensors", {"gcond": "{"})
    return ["inspect", w.folder / "odd.safetensors"]


@refused("damaged metadata")
def condensed_provenance_of_the_wrong_shape(w):
    return ["inspect", w.tampered(w.small, lambda t, m: m.update(provenance={"method": "random"}))]


@refused("damaged metadata", "provenance.cost.wall_seconds")
def condensed_cost_in_words(w):
    return ["inspect", w.tampered(w.small, lambda t, m: m["provenance"]["cost"].update(wall_seconds="x"))]


@refused("damaged metadata", "provenance.scores.0")
def condensed_score_without_figures(w):
    return ["inspect", w.tampered(w.small, lambda t, m: m["provenance"].update(scores=[{"model": "gcn"}]))]


@refused("damaged metadata", "provenance.source")
def condensed_source_of_the_wrong_shape(w):
    return ["inspect", w.tampered(w.small, lambda t, m: m["provenance"].update(source=[]))]


@refused("damaged metadata", "provenance.setting", "transductive")
def condensed_in_an_unknown_setting(w):
    argv = w.tampered(w.small, lambda t, m: m["provenance"].update(setting="deductive"))
    return ["evaluate", argv, "--on", w.source]


@refused("1000000000000 classes", "1 to 1,000,000")
def condensed_of_too_many_classes(w):
    return ["inspect", w.tampered(w.small, lambda t, m: m["provenance"].update(num_classes=10**12))]


@refused("1000000000001 classes", "1 to 1,000,000")
def condensed_label_that_is_huge(w):
    def change(tensors, metadata):
        tensors["y"].fill_(10**12)
        metadata["provenance"] = None

    return ["inspect", w.tampered(w.small, change)]


@refused("lists an edge more than once")
def condensed_edge_twice(w):
    edges = {"edge_index": torch.tensor([[0, 1, 0], [1, 0, 1]]), "edge_weight": torch.ones(3)}
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(edges))]


@refused("format 99", "upgrade gcond")
def condensed_from_the_future(w):
    return ["inspect", w.tampered(w.small, lambda t, m: m.update(format=99))]


@refused("lacks the tensor 'y'")
def condensed_without_labels(w):
    return ["inspect", w.tampered(w.small, lambda t, m: t.pop("y"))]


@refused("'extra'", "does not know")
def condensed_with_an_unknown_tensor(w):
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(extra=torch.ones(1)))]


@refused("x is torch.float64", "float32")
def condensed_features_of_the_wrong_dtype(w):
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(x=t["x"].double()))]


@refused("y is torch.int32", "int64")
def condensed_labels_of_the_wrong_dtype(w):
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(y=t["y"].int()))]


@refused("x has numbers that are not finite")
def condensed_features_nan(w):
    return ["inspect", w.tampered(w.small, lambda t, m: t["x"].fill_(torch.nan))]


@refused("label 9 is out of range", "3 classes")
def condensed_label_out_of_range(w):
    return ["inspect", w.tampered(w.small, lambda t, m: t["y"].fill_(9))]


@refused("names node 99", "6 nodes")
def condensed_edge_beyond_the_last_node(w):
    edges = {"edge_index": torch.tensor([[0], [99]]), "edge_weight": torch.ones(1)}
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(edges))]


@refused("negative")
def condensed_weight_negative(w):
    edges = {"edge_index": torch.tensor([[0], [1]]), "edge_weight": -torch.ones(1)}
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(edges))]


@refused("self-loops")
def condensed_self_loop(w):
    edges = {"edge_index": torch.tensor([[1], [1]]), "edge_weight": torch.ones(1)}
    return ["inspect", w.tampered(w.small, lambda t, m: t.update(edges))]


@refused("holds a source graph", "condensed graph is needed")
def source_where_condensed_is_needed(w):
    return ["evaluate", w.source, "--on", w.source]


# --- files where a source graph belongs
@refused("condensed")
def condensed_where_a_source_is_needed(w):
    return ["condense", w.small, "--nodes", 3]


@refused("condensed")
def condensed_as_its_own_source(w):
    return ["evaluate", w.small, "--on", w.small]


@refused("cut.safetensors")
def source_cut_short(w):
    return ["condense", w.file("cut.safetensors", w.source.read_bytes()[:-100]), "--nodes", 6]


@refused("graph.safetensors")
def source_empty(w):
    return ["condense", w.file("graph.safetensors", b""), "--nodes", 6]


def flipped(w: Workspace, file, place: int):
    """A copy with one bit changed, among the tensors."""
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    return w.file(f"flipped-{file.name}", bytes(content))


@refused("is damaged", "does not hold what gcond wrote")
def condensed_with_a_flipped_bit(w):
    return ["inspect", flipped(w, w.small, -100)]


@refused("is damaged", "does not hold what gcond wrote")
def evaluation_of_a_flipped_bit(w):
    return ["evaluate", flipped(w, w.small, -9), "--on", w.source]


@refused("is damaged", "does not hold what gcond wrote")
def source_with_a_flipped_bit(w):
    return ["condense", flipped(w, w.source, -500), "--nodes", 6]


@refused("notes.txt")
def source_of_an_unknown_kind(w):
    return ["condense", w.file("notes.txt", "hello"), "--nodes", 6]


@refused("empty")
def source_in_an_empty_folder(w):
    (w.folder / "empty").mkdir()
    return ["condense", w.folder / "empty", "--nodes", 6]


@refused("label 7 is out of range", "3 classes")
def source_label_out_of_range(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["y"].fill_(7)), "--nodes", 6]


@refused("label -2 is out of range")
def source_label_below_minus_one(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["y"].fill_(-2)), "--nodes", 6]


@refused("adjacency", "do not fit together")
def source_edge_beyond_the_last_node(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["adjacency.indices"].fill_(60)), "--nodes", 6]


@refused("weight -1", "not be negative")
def source_weight_negative(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["adjacency.values"].fill_(-1)), "--nodes", 6]


@refused("nan", "finite")
def source_features_nan(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["x"][3, 2].fill_(torch.nan)), "--nodes", 6]


@refused("inf", "finite")
def source_features_infinite(w):
    return ["propagate", w.tampered(w.source, lambda t, m: t["x"][3, 2].fill_(torch.inf)), "-o", "h.npy"]


@refused("no training node of class 2")
def source_without_training_nodes_of_a_class(w):
    def forget(tensors, metadata):
        tensors["train_mask"] &= tensors["y"] != 2

    return ["condense", w.tampered(w.source, forget), "--nodes", 6]


@refused("no training node")
def source_without_training_nodes(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["train_mask"].fill_(False)), "--nodes", 6]


@refused("both train and test", "must not overlap")
def source_masks_overlap(w):
    return ["condense", w.tampered(w.source, lambda t, m: t["test_mask"].fill_(True)), "--nodes", 6]


@refused("labels", "60 nodes")
def source_labels_too_short(w):
    return ["condense", w.tampered(w.source, lambda t, m: t.update(y=t["y"][:10].clone())), "--nodes", 6]


@refused("lacks", "test_mask")
def source_without_a_mask(w):
    return ["condense", w.tampered(w.source, lambda t, m: t.pop("test_mask")), "--nodes", 6]


@refused("unknown setting 'deductive'")
def source_of_an_unknown_setting(w):
    return ["condense", w.tampered(w.source, lambda t, m: m.update(setting="deductive")), "--nodes", 6]


@refused("already made undirected")
def source_that_cannot_be_directed_again(w):
    return ["condense", w.source, "--nodes", 6, "--directed"]


# --- tables of a person's own
def tables(w: Workspace, nodes: str, edges: str = "source,target\\na,b\\n") -> list[object]:
    """A folder of tables from one-line texts, and the command that condenses it."""
    folder = w.folder / "mine"
    folder.mkdir()
    (folder / "nodes.csv").write_text(nodes.replace("\\n", "\n").replace(" ", "\n"))
    (folder / "edges.csv").write_text(edges.replace("\\n", "\n").replace(" ", "\n"))
    return ["condense", folder, "--nodes", 6]


GOOD = "id,label,split,f a,0,train,1.5 b,1,train,2.5 c,0,val,3 d,1,test,4 "


@refused("'a' appears more than once")
def table_with_a_duplicate_id(w):
    return tables(w, GOOD.replace(" b,", " a,"))


@refused("names the target 'z'", "no such id")
def table_with_an_edge_to_nobody(w):
    return tables(w, GOOD, "source,target a,z ")


@refused("no column 'label'")
def table_without_labels(w):
    return tables(w, GOOD.replace("label", "colour"))


@refused("not numeric")
def table_with_features_in_words(w):
    return tables(w, GOOD.replace("2.5", "large"))


@refused("the column 'f'", "row 2", "needs a number")
def table_with_a_feature_that_is_no_number(w):
    return tables(w, GOOD.replace("2.5", "nan"))


@refused("inf", "finite")
def table_with_an_infinite_feature(w):
    return tables(w, GOOD.replace("2.5", "inf"))


@refused("no training node of class '1'")
def table_with_a_negative_label_for_a_class_of_its_own(w):
    return tables(w, GOOD.replace("b,1", "b,-5"))


@refused("split 'taining'", "is unknown", "train, val, test")
def table_with_an_unknown_split(w):
    return tables(w, GOOD.replace("train", "taining"))


@refused("no training node of class")
def table_without_training_nodes_of_a_class(w):
    return tables(w, GOOD.replace("b,1,train", "b,1,val"))


@refused("weight -2", "not be negative")
def table_with_a_negative_weight(w):
    return tables(w, GOOD, "source,target,weight a,b,-2 ")


@refused("no edges.parquet or edges.csv")
def table_of_edges_missing(w):
    argv = tables(w, GOOD)
    (w.folder / "mine" / "edges.csv").unlink()
    return argv


@refused("nodes.csv")
def table_with_a_broken_row(w):
    return tables(w, GOOD + "e,1 ")


@refused("is one table", "give its folder")
def table_given_alone(w):
    tables(w, GOOD)
    return ["condense", w.folder / "mine" / "nodes.csv", "--nodes", 6]


# --- a condensed graph and a source that do not belong together
@refused("8 features", "5")
def features_do_not_match(w):
    build_tiny(features=5).save(w.folder / "other.safetensors")
    return ["evaluate", w.small, "--on", w.folder / "other.safetensors", "--quiet"]


@refused("3 classes", "4")
def classes_do_not_match(w):
    build_tiny(classes=4).save(w.folder / "other.safetensors")
    return ["evaluate", w.small, "--on", w.folder / "other.safetensors", "--quiet"]


@refused("no test nodes")
def nothing_to_test_on(w):
    build_tiny(test=torch.zeros(60, dtype=torch.bool)).save(w.folder / "other.safetensors")
    return ["evaluate", w.small, "--on", w.folder / "other.safetensors", "--quiet"]


# --- places to write to
@refused("the folder", "nowhere", "does not exist")
def output_folder_missing(w):
    return ["condense", w.source, "--nodes", 6, "-o", w.folder / "nowhere" / "small.safetensors"]


@refused("it is a folder")
def output_is_a_folder(w):
    return ["condense", w.source, "--nodes", 6, "-o", w.out]


@refused("is not a folder")
def output_folder_is_a_file(w):
    return ["condense", w.source, "--nodes", 6, "-o", w.source / "small.safetensors"]


@refused("cannot write '/proc/small.safetensors': no file can be made in the folder '/proc'")
def output_folder_not_writable(w):
    return ["condense", w.source, "--nodes", 6, "-o", "/proc/small.safetensors"]


@refused("it is a pipe or a device")
def output_is_a_pipe(w):
    os.mkfifo(w.out / "pipe")
    return ["condense", w.source, "--nodes", 6, "-o", w.out / "pipe", "--force"]


@refused("cannot write '/dev/null'", "it is a pipe or a device")
def propagation_into_nothing(w):
    return ["propagate", w.source, "-o", "/dev/null", "--force"]


@refused("exists already", "--force")
def output_exists(w):
    return ["condense", w.source, "--nodes", 6, "-o", w.small]


@refused("exists already", "--force")
def output_of_the_default_name_exists(w):
    w.file("tiny-random-6.safetensors", "precious")
    return ["condense", w.source, "--nodes", 6, "--method", "random"]


@refused("is the source itself")
def output_is_the_source(w):
    return ["condense", w.source, "--nodes", 6, "-o", w.source, "--force"]


@refused("link.safetensors' is a link to", "small.safetensors': give the name of the file itself")
def output_is_a_link(w):
    (w.out / "link.safetensors").symlink_to(w.small)
    return ["condense", w.source, "--nodes", 6, "-o", w.out / "link.safetensors", "--force"]


@refused("is a link to", "nothing.safetensors': give the name of the file itself")
def output_is_a_link_to_nothing_yet(w):
    (w.out / "link.safetensors").symlink_to("nothing.safetensors")
    return ["train", w.small, "--on", w.source, "-o", w.out / "link.safetensors"]


@refused("exists already", "--force")
def page_exists(w):
    return ["report", w.small, "-o", w.file("keep.html", "precious")]


@refused("exists already", "--force")
def figure_exists(w):
    return ["plot", w.small, "--kind", "graph", "-o", w.file("keep.svg", "precious")]


@refused("the folder", "does not exist")
def propagation_folder_missing(w):
    return ["propagate", w.source, "-o", w.folder / "nowhere" / "h.npy"]


@refused("exists already")
def propagation_exists(w):
    return ["propagate", w.source, "-o", w.file("h.npy", "precious")]


@refused("it is a file")
def run_folder_is_a_file(w):
    return ["evaluate", w.small, "--on", w.source, "-o", w.source]


@refused("cannot write", "is not a folder")
def run_folder_in_a_file(w):
    return ["evaluate", w.small, "--on", w.source, "-o", w.source / "run"]


@refused("not a file of trials")
def trials_are_something_else(w):
    (w.out / "trials.jsonl").write_text('{"a": 1}\n')
    return ["evaluate", w.small, "--on", w.source, "-o", w.out]


@refused("cannot write", "is not a folder")
def demo_folder_is_a_file(w):
    return ["demo", "-o", w.source / "demo"]


def test_there_are_many_cases_and_each_is_its_own():
    assert len({case.name for case in CASES}) == len(CASES) >= 180


@pytest.mark.parametrize("machine_readable", [False, True], ids=["", "json"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_bad_input_is_refused_in_one_line(case, machine_readable, workspace, gcond):
    argv = [*case.argv(workspace), *(["--json"] if machine_readable else [])]
    before = workspace.contents()
    outcome = gcond(*argv)
    assert outcome.out == ""
    assert outcome.err.startswith("gcond: ")
    assert outcome.err.count("\n") == 1
    for word in case.words:
        assert word in outcome.err
    assert outcome.code == 2
    assert workspace.contents() == before


@pytest.mark.parametrize(
    "argv", [["condense", "SOURCE", "--nodes", "6", "--method", "random", "-o", "out/new.safetensors"]]
)
@pytest.mark.parametrize("stage", ["before", "during"])
def test_a_full_disk(argv, stage, workspace, gcond, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if stage == "before":
        monkeypatch.setattr("gcond.runtime.files.os.open", full)
    else:
        monkeypatch.setattr("safetensors.torch.save_file", full)
    before = workspace.contents()
    outcome = gcond(*[workspace.source if word == "SOURCE" else word for word in argv])
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "gcond: cannot write 'out/new.safetensors': the disk is full\n"
    assert workspace.contents() == before


def test_a_full_disk_while_scores_are_recorded_keeps_the_graph(workspace, gcond, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("safetensors.torch.save_file", full)
    before = workspace.contents()
    outcome = gcond("evaluate", workspace.small, "--on", workspace.source, "--runs", 1, "--set", "epochs=1")
    assert outcome.code == 0
    assert "test accuracy" in outcome.out  # what was measured is not lost
    assert outcome.err.startswith("warning: the scores are printed and not recorded: cannot write ")
    assert outcome.err.endswith("the disk is full\n")
    assert workspace.contents() == before


def test_a_file_in_a_place_that_cannot_be_written_to_is_evaluated(workspace, gcond, monkeypatch):
    def read_only(path, flags, *rest):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *rest)

    opened, before = os.open, workspace.contents()
    monkeypatch.setattr("gcond.runtime.files.os.open", read_only)
    words = ("evaluate", workspace.small, "--on", workspace.source, "--runs", 1, "--set", "epochs=1")
    outcome = gcond(*words)
    assert outcome.code == 0, outcome.err
    assert "test accuracy" in outcome.out
    said = f"warning: the scores are printed and not recorded: cannot write '{workspace.small}': "
    assert outcome.err == f"{said}the folder '{workspace.folder}' is not writable\n"
    assert gcond(*words, "--no-record").err == ""
    assert workspace.contents() == before


def test_a_bug_keeps_its_traceback(workspace, gcond, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("this is a bug")

    monkeypatch.setattr("gcond.condensed.condensed_graph.is_symmetric", broken)
    with pytest.raises(RuntimeError, match="this is a bug"):
        gcond("inspect", workspace.small)

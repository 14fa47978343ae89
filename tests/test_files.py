"""A file is there whole or not at all."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import ellzero as lz
from ellzero.files import check_writable, replacing, write_text


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_what_is_not_finished_leaves_nothing(fault, tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("before")

    def write():
        with replacing(path) as unfinished:
            unfinished.write_text("half")
            raise fault

    with pytest.raises(fault):
        write()
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
    assert path.read_text() == "before"


def test_what_is_finished_takes_the_place(tmp_path):
    path = tmp_path / "file.txt"
    for text in ("one", "two\n"):
        write_text(path, text)
        assert path.read_bytes() == text.encode()
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "shutil.copymode"])
def test_errors_of_every_step_name_the_file(step, tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    path.write_text("before")

    def fail(*_):
        raise FULL

    monkeypatch.setattr(step, fail)
    with pytest.raises(OSError, match="could not be written: No space left on device") as caught:
        write_text(path, "after")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
    assert path.read_text() == "before"


def test_errors_about_the_unfinished_file_name_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("file.txt")
    with pytest.raises(PermissionError) as caught, replacing(path) as unfinished:
        raise PermissionError(errno.EACCES, "Permission denied", str(unfinished))
    assert caught.value.filename == "file.txt"
    assert caught.value.strerror == "could not be written: Permission denied"


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "other.txt"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        OSError("no number"),
    ],
)
def test_other_errors_stay_as_they_are(error, tmp_path):
    with pytest.raises(type(error)) as caught, replacing(tmp_path / "file.txt"):
        raise error
    assert caught.value is error


def test_a_name_may_be_as_long_as_the_system_lets_it(tmp_path):
    for name in ("n" * 255, "é" * 127):
        write_text(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"


def test_statistics_that_cannot_be_saved_name_the_file(tmp_path, monkeypatch):
    statistics = lz.Statistics.from_arrays(np.eye(3), np.ones(3))

    def save(file, **arrays):
        file.write(b"half")
        raise FULL

    monkeypatch.setattr("numpy.savez", save)
    with pytest.raises(OSError, match="could not be written") as caught:
        statistics.save(tmp_path / "statistics.npz")
    assert caught.value.filename == str(tmp_path / "statistics.npz")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("mine")
    path.chmod(0o600)
    write_text(path, "still mine")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_text(path, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_writable(tmp_path / "file.txt")
    tmp_path.chmod(0o700)

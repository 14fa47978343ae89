"""A file is there whole or not at all."""

import os

import pytest

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

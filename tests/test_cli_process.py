"""The command as a process: exit codes, terminals, pipes, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cli_files import numbers, write

COMMAND = [sys.executable, "-m", "ellzero"]


def started(*arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=options.pop("stderr", subprocess.PIPE),
        text=True,
        **options,
    )


@pytest.fixture
def interrupts():
    """Processes heed them: in the background of a shell they ignore them, and so do children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def finished(*arguments, **options):
    process = started(*arguments, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def data(tmp_path, rng):
    X, y = numbers(rng)
    return write("csv", tmp_path, X, y, list("abcdef"))


def test_exit_codes_of_errors(data):
    code, out, err = finished("fit", data, "--target", "no")
    assert (code, out) == (1, "")
    assert err.startswith("ellzero: error: --target: there is no column 'no'")
    assert len(err.splitlines()) == 1

    code, out, err = finished("fit", data, "--task", "ranking")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_output_that_nobody_reads(data, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [*COMMAND, "fit", str(data), "--target", "y", "-s", "2"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    os.close(writer)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "BrokenPipe" not in process.stderr


def test_a_terminal_that_knows_ascii_only(data):
    code, out, _ = finished(
        "fit", data, "--target", "y", "-s", "2", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert code == 0
    assert "\\u2212b" in out or "\\u2212e" in out


@pytest.mark.skipif(os.name != "posix", reason="needs a signal that is sent to a process")
def test_an_interrupt_leaves_no_part_of_a_file(request, interrupts, tmp_path, rng):
    """A search with much effort, interrupted once it is under way."""
    folder = tmp_path / "folder"
    folder.mkdir()
    X = rng.standard_normal((120, 60))
    data = write("csv", tmp_path, X, X[:, :30].sum(axis=1) + rng.standard_normal(120),
                 [f"x{j}" for j in range(60)])  # fmt: skip
    out = folder / "model.json"
    out.write_text("what was there")
    process = started("fit", data, "--target", "y", "-s", "20", "--effort", "1e6", "--out", out)
    request.addfinalizer(process.kill)
    assert process.stderr.readline().startswith("ellzero: the task is regression")
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    printed, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    assert err.splitlines()[-1] == "ellzero: interrupted"
    assert "Traceback" not in err
    assert [path.name for path in folder.iterdir()] == ["model.json"]
    assert out.read_text() == "what was there"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_bar_is_shown_on_a_terminal(data):
    pytest.importorskip("rich")
    ours, theirs = os.openpty()
    arguments = ("fit", data, "--target", "y", "-s", "2", "--json")
    process = started(*arguments, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = b""
    while True:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # the other side was closed
            break
        if not block:
            break
        seen += block
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0
    assert b"searching" in seen
    assert json.loads(out)["task"] == "regression"


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/stdout")
def test_a_device_is_written_to_and_not_replaced(data):
    """And nothing but the one line about the task is on stderr where it is no terminal."""
    code, out, err = finished("fit", data, "--target", "y", "-s", "2", "--out", "/dev/stdout")
    assert code == 0
    assert json.loads(out[: out.index("\n}\n") + 2])["schema"] == "ellzero.model"
    assert [line.split()[1] for line in err.splitlines()] == ["the", "the"]
    assert "searching" not in err

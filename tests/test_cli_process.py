"""The command as a process: exit codes, terminals, pipes, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ellzero
from cli_files import limited, numbers, write
from ellzero.interrupts import EndOnInterrupt, is_command

COMMAND = [sys.executable, "-m", "ellzero"]


def started(*arguments, **options):
    return subprocess.Popen(
        [*options.pop("begin", COMMAND), *map(str, arguments)],
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


WATCH = """
import sys

class Watch:
    def find_spec(name, *_):
        if name == "numpy":
            sys.stdout.write("begun\\n")
            sys.stdout.flush()

sys.meta_path.insert(0, Watch)
"""
"""Says when Python begins to import NumPy."""

SCRIPT = "import sys\nfrom ellzero.__main__ import main\nsys.exit(main())\n"
"""What pip installs as `ellzero`."""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("how", ["module", "script"])
@pytest.mark.parametrize("seconds", [0, 0.05, 0.2, 0.5, 1, 2])
def test_ctrl_c_while_modules_are_imported(seconds, how, tmp_path, rng, interrupts, request):
    data = write("csv", tmp_path, *numbers(rng, 300, 60), [f"x{j}" for j in range(60)])
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    script = tmp_path / "ellzero"
    script.write_text(SCRIPT)
    paths = [str(tmp_path), str(Path(ellzero.__file__).parents[1])]
    started_as = ["-m", "ellzero"] if how == "module" else [str(script)]
    arguments = ["fit", str(data), "--target", "y", "-s", "20", "--effort", "1e6"]
    process = subprocess.Popen(
        [sys.executable, *started_as, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    request.addfinalizer(process.kill)
    assert process.stdout.readline() == "begun\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    lines = [line for line in err.splitlines() if "the task is regression" not in line]
    assert lines == ["ellzero: interrupted"]


def test_the_installed_command_starts_there_too():
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert '\nellzero = "ellzero.__main__:main"\n' in project.read_text(encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("name", ["other.py", "ellzero_study.py", "-c"])
def test_other_programs_get_a_keyboard_interrupt(name, tmp_path, interrupts):
    """Also while they import the package."""
    code = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'ellzero.core': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt)\n"
        "try: import ellzero\n"
        "except KeyboardInterrupt: sys.exit(7)\n"
    )
    program = tmp_path / name
    program.write_text(code)
    arguments = ["-c", code] if name == "-c" else [str(program)]
    process = subprocess.run([sys.executable, *arguments], capture_output=True, timeout=60)
    assert process.returncode == 7, process.stderr


@pytest.mark.parametrize(
    ("argv", "started"),
    [
        (["/usr/bin/ellzero"], True),
        (["ellzero.exe"], True),
        (["bin/ellzero-script.py"], True),
        (["ellzero_study.py"], False),
        (["-m"], False),
        (["-c"], False),
        ([""], False),
        ([], False),
    ],
)
def test_the_command_is_known_by_its_name(argv, started, monkeypatch):
    monkeypatch.setattr("sys.argv", argv)
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "other"])
    assert is_command() is started


def test_another_thread_may_import(monkeypatch):
    """There Python lets nobody say what a signal does."""
    results = []

    def enter():
        with EndOnInterrupt():
            results.append(signal.getsignal(signal.SIGINT))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, before)
    assert results == [signal.default_int_handler]


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
@pytest.mark.parametrize("command", ["fit", "path", "predict", "report", "demo"])
def test_a_file_that_cannot_be_written_is_named(command, data, tmp_path):
    model, results = tmp_path / "model.json", tmp_path / "results.json"
    folder = tmp_path / "out"
    folder.mkdir()
    out = folder / f"{'long ' * 45}name"
    if command == "predict":
        assert finished("fit", data, "--target", "y", "-s", 2, "--out", model)[0] == 0
    if command == "report":
        assert finished("path", data, "--target", "y", "--max", 2, "--out", results)[0] == 0
    arguments = {
        "fit": (data, "--target", "y", "-s", 2, "--out"),
        "path": (data, "--target", "y", "--max", 2, "--out"),
        "predict": (model, data, "--out"),
        "report": (results, "--out"),
        "demo": ("--picture",),
    }[command]
    if command == "demo":
        pytest.importorskip("matplotlib")
    code, _, err = finished(command, *arguments, out, begin=limited("RLIMIT_FSIZE", 99))
    assert code == 1
    expected = f"ellzero: error: {out}: could not be written: File too large."
    assert err.splitlines()[-1] == expected
    assert [*folder.iterdir()] == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_space_is_left(data):
    arguments = ("fit", data, "--target", "y", "-s", "2")
    code, _, err = finished(*arguments, "--out", "/dev/full")
    assert code == 1
    assert err.splitlines()[-1] == (
        "ellzero: error: /dev/full: could not be written: No space left on device."
    )
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [*COMMAND, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == (
        "ellzero: error: standard output: could not be written: No space left on device."
    )


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/stdout")
def test_a_device_is_written_to_and_not_replaced(data):
    """And nothing but the one line about the task is on stderr where it is no terminal."""
    code, out, err = finished("fit", data, "--target", "y", "-s", "2", "--out", "/dev/stdout")
    assert code == 0
    assert json.loads(out[: out.index("\n}\n") + 2])["schema"] == "ellzero.model"
    assert [line.split()[1] for line in err.splitlines()] == ["the", "the"]
    assert "searching" not in err

"""The examples in the documentation give what they say."""

import doctest
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from cli_files import run

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page for page in (ROOT / "docs").rglob("*.md") if "\n>>> " in page.read_text(encoding="utf-8")
)
SHOWN = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.fixture(autouse=True)
def frames():
    pytest.importorskip("pandas", reason="some examples read frames")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page):
    flags = doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert tried > 0
    assert not failed


def test_readme_prints_what_it_shows():
    examples = SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert examples
    for code, shown in examples:
        with redirect_stdout(StringIO()) as printed:
            exec(code, {})
        assert printed.getvalue() == shown


def test_commands(tmp_path, monkeypatch, capsys):
    """Every `$ ellzero ...` writes what stands below it, but for the last digits of numbers."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(code, {})
    examples = [
        example.partition("\n")[::2]
        for block in re.findall(r"```console\n(.*?)```", page, re.S)
        for example in block.removeprefix("$ ").split("\n$ ")
    ]
    assert len(examples) > 5
    for command, expected in examples:
        name, *arguments = shlex.split(command)
        if name == "cat":
            written = Path(*arguments).read_text()
        else:
            _, out, err = run(capsys, *arguments)
            written = err + out
        assert NUMBER.sub("0", written.strip()) == NUMBER.sub("0", expected.strip()), command
        assert [float(x) for x in NUMBER.findall(written)] == pytest.approx(
            [float(x) for x in NUMBER.findall(expected)], rel=1e-6
        ), command

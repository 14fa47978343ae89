"""The examples in the documentation give what they say."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from cli_files import run

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.mark.parametrize("page", ["tutorial.md", "report.md"])
def test_examples(page):
    pytest.importorskip("pandas", reason="the pages read frames")
    flags = doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert tried > 0
    assert not failed


def test_commands(tmp_path, monkeypatch, capsys):
    """Every `$ ellzero ...` writes what stands below it, but for the last digits of numbers."""
    pytest.importorskip("pandas", reason="the command line reads tables")
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
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

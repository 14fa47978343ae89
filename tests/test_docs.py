"""The examples in the documentation give what they say."""

import doctest
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page for page in (ROOT / "docs").rglob("*.md") if "\n>>> " in page.read_text(encoding="utf-8")
)
SHOWN = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)


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

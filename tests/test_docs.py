"""The examples in the documentation give what they say."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["tutorial.md", "report.md"])
def test_examples(page):
    pytest.importorskip("pandas", reason="the pages read frames")
    flags = doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert tried > 0
    assert not failed

"""Names from a hostile table reach neither the terminal nor its markup."""

import json

import numpy as np
import pandas as pd
import pytest

from cli_files import run
from ellzero.wording import END_OF_ISOLATE, ISOLATE, escaped, shown

HOSTILE = {
    "escape": "\x1b[31mred\x1b]0;title\x07",
    "control": "a\x00b\rc\x9bd",
    "newline": "first\nsecond",
    "markup": "[red]x[/red][link=http://x]",
    "long": "x" * 10_000,
    "override": "abc\u202egpj.exe",
    "hebrew": "שלום",
    "zero width": "a\u200bb",
    "lone surrogate": "a\\ud800",
    "formula": "=1+1",
    "format": "{0} %s \\n",
}


def is_safe(text):
    isolates = ISOLATE + END_OF_ISOLATE
    return all(c.isprintable() or c in "\n" + isolates for c in text)


@pytest.fixture(params=HOSTILE)
def hostile(request):
    return HOSTILE[request.param]


def test_names_levels_classes_and_targets(hostile, tmp_path, rng, capsys):
    m = 40
    frame = pd.DataFrame({hostile: rng.standard_normal(m), "b": rng.standard_normal(m)})
    frame["words"] = rng.choice([hostile, "other", "third"], m)
    frame[f"{hostile}?"] = np.where(frame[hostile] + 0.3 * frame["b"] > 0, hostile, "no")
    data, model = tmp_path / "data.parquet", tmp_path / "model.json"
    frame.to_parquet(data)
    arguments = (data, "--target", f"{hostile}?")
    for command in (
        ("fit", *arguments, "-s", 2, "--forced", "words", "--out", model),
        ("fit", *arguments, "-s", 2, "--json"),
        ("path", *arguments, "--max", 2),
        ("path", *arguments, "--max", 2, "--json"),
        ("predict", model, data, "--json"),
        ("fit", data, "--target", hostile + "x"),
        ("fit", *arguments, "--exclude", hostile, "words", "b"),
    ):
        code, out, err = run(capsys, *command)
        assert is_safe(out)
        assert is_safe(err)
        assert max(map(len, err.splitlines()), default=0) < 5000
        if "--json" in command:
            assert code == 0
            json.loads(out)
    document = json.loads(model.read_text())
    assert document["columns"][0]["name"] == hostile
    assert hostile in document["classes"]
    given = pd.DataFrame({hostile: ["text"], "words": ["new" + hostile]})
    given.to_parquet(data)
    code, out, err = run(capsys, "predict", model, data)
    assert code == 1
    assert is_safe(err)
    assert "does not" not in out


def test_what_is_shown():
    assert shown("plain name") == "plain name"
    assert shown("[red]") == "[red]"
    assert len(shown("x" * 10_000)) < 100
    assert shown(HOSTILE["hebrew"]) == f"{ISOLATE}שלום{END_OF_ISOLATE}"
    assert escaped("a\u202eb\x1b") == "a\\u202eb\\x1b"
    assert escaped("\ud800") == "\\ud800"

"""No class of a hostile table becomes a formula in a spreadsheet, and each can be had back."""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from cli_files import FORMULAS, NUMBERS, WORDS, run
from ellzero.cli.spreadsheet import csv_line


def given_back(cell):
    """The text that a cell stands for."""
    return cell[1:] if re.match("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", cell) else cell


@pytest.mark.parametrize("text", FORMULAS + NUMBERS + WORDS)
def test_cells_are_no_formulas_and_can_be_read_back(text):
    line = csv_line([text, 1.5])
    [[cell, number]] = csv.reader(io.StringIO(line, newline=""))
    assert number == "1.5"
    assert given_back(cell) == text
    assert cell == (f"'{text}" if text in FORMULAS else text)


def test_numbers_stay_as_they_are():
    assert csv_line([-1.5, -1, True, 1e-7, float("-inf")]) == "-1.5,-1,True,1e-07,-inf\n"


def test_a_cell_stays_one_whatever_separates_columns():
    assert csv_line(["x;=1+1", "x\t=1+1", "x|y"]) == '"x;=1+1","x\t=1+1","x|y"\n'


@pytest.mark.parametrize("where", ["stdout", "--out"])
def test_predictions_of_hostile_classes(where, tmp_path, rng, capsys):
    x = rng.standard_normal(40)
    data, model, out = (tmp_path / name for name in ("data.csv", "model.json", "out.csv"))
    pd.DataFrame({"x": x, "y": np.where(x > 0, "=HYPERLINK(1)", "no")}).to_csv(data, index=False)
    assert run(capsys, "fit", data, "--target", "y", "-s", 1, "--alpha", 1, "--out", model)[0] == 0
    extra = () if where == "stdout" else ("--out", out)
    code, printed, _ = run(capsys, "predict", model, data, *extra)
    assert code == 0
    table = pd.read_csv(io.StringIO(printed) if where == "stdout" else out)
    assert set(table["prediction"]) == {"'=HYPERLINK(1)", "no"}
    assert list(table.columns) == ["prediction", "probability_=HYPERLINK(1)", "probability_no"]
    exact = json.loads(run(capsys, "predict", model, data, "--json")[1])
    assert [given_back(cell) for cell in table["prediction"]] == exact["predictions"]
    np.testing.assert_array_equal(table.iloc[:, 1:], exact["probabilities"])

"""Command lines that are wrong whatever the files hold: exit code 2, before anything is read."""

import pytest

from cli_files import fails, run

NOWHERE = "no.csv"
"""Is not there, and nobody looks."""

WRONG = {
    "argument -s/--sparsity: expected a whole number of at least 1, got '0'": ("-s", 0),
    "at least 1, got '2.5'": ("-s", 2.5),
    "at least 1, got '-1'": ("-s", -1),
    "argument --alpha: expected a finite number of at least 0, got '-1'": ("--alpha", -1),
    "at least 0, got 'nan'": ("--alpha", "nan"),
    "argument --effort: expected a finite number above 0, got '0'": ("--effort", 0),
    "above 0, got '1e999'": ("--effort", "1e999"),
    "argument --certify: expected a finite number above 0, got '-5'": ("--certify", -5),
    "argument --cv: expected a whole number of at least 2, got '1'": ("--cv", 1),
    "argument --seed: expected a whole number from 0 to 4294967295": ("--seed", 2**32),
    "argument --separator: expected one character such as ; or tab, got ''": ("--separator", ""),
    "such as ; or tab, got ';;'": ("--separator", ";;"),
    "such as ; or tab, got 'x'": ("--separator", "x"),
    "argument --decimal: invalid choice: ';'": ("--decimal", ";"),
    "argument --task: invalid choice: 'ranking'": ("--task", "ranking"),
    "unrecognized arguments: --no": ("--no",),
    "--effort: is for the method auto; omp has none.": ("--effort", 2, "--method", "omp"),
    "--weights: column 'y' is the target.": ("--weights", "y"),
    "--exclude: column 'y' is the target.": ("--exclude", "y"),
    "--exclude: column 'w' is that of the weights.": ("--exclude", "w", "--weights", "w"),
    "--forced: column 'y' is the target.": ("--forced", "y"),
    "--forced: column 'a' is excluded.": ("--forced", "a", "--exclude", "a"),
    "--categorical: column 'y' is the target; say --task classification.": ("--categorical", "y"),
    "--categorical: column 'a' is excluded.": ("--categorical", "a", "--exclude", "a"),
}


@pytest.mark.parametrize("reason", WRONG)
def test_options_that_cannot_be(reason, capsys):
    arguments = ("fit", NOWHERE, "--target", "y", *WRONG[reason])
    message = fails(capsys, *arguments, code=2)
    assert reason in message
    if message.startswith("argument"):
        assert message.endswith("(see ellzero fit --help)")


def test_paths_have_the_same_rules(capsys):
    arguments = ("path", NOWHERE, "--target", "y")
    assert "argument --max: expected" in fails(capsys, *arguments, "--max", 0, code=2)
    assert "argument --cv: expected" in fails(capsys, *arguments, "--cv", 0, code=2)
    assert fails(capsys, *arguments, "--effort", 2, "--methods", "omp", "auto", code=2) == (
        "--effort: is for the method auto; omp has none."
    )
    assert "argument --jobs: expected" in fails(capsys, "reproduce", "--jobs", 0, code=2)


def test_what_must_be_said(capsys):
    assert fails(capsys, "fit", NOWHERE, code=2) == "--target: say which column is to be predicted."
    message = fails(capsys, "fit", "--forced", "a", NOWHERE, "--target", "y", code=2)
    assert "required: DATA; DATA stands before options that take several columns" in message
    assert fails(capsys, "fit", "data.xyz", "--target", "y", code=2) == (
        "data.xyz: the ending of the name does not say what it is; name one with --format: "
        "csv, tsv, parquet, libsvm, npz, arff."
    )


def test_only_text_has_separators(capsys):
    for option, value in (("--separator", ";"), ("--decimal", ",")):
        message = fails(capsys, "fit", "no.npz", option, value, code=2)
        assert message == f"{option}: is for text; a npz file has none."


def test_a_file_that_is_read_is_not_written(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text("a,y\n1,2\n")
    for command in ("fit", "path"):
        message = fails(capsys, command, data, "--target", "y", "--out", data, code=2)
        assert message == f"--out: {data} is the file that is read; name another one."
    assert data.read_text() == "a,y\n1,2\n"


def test_a_tab_has_names(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text("a\tb\ty\n1\t2\t3\n2\t2\t4\n4\t3\t5\n")
    for name in ("tab", "\\t", "\t"):
        arguments = ("fit", data, "--target", "y", "-s", 1, "--separator", name)
        assert run(capsys, *arguments)[0] == 0

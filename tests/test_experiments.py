"""The experiments: right losses, nothing lost when killed, a report that tells the truth."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas", reason="data sets need pandas")
pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from data_files import sample_frame, shrunk  # noqa: E402
from ellzero.cli.main import main  # noqa: E402
from ellzero.datasets import loading  # noqa: E402
from ellzero.datasets.registry import ENTRIES  # noqa: E402
from ellzero.experiments import FAST, FIGURES, Settings, report, reproduce, store  # noqa: E402
from ellzero.experiments.figures import CURVES, METHODS, REFITTED, SPARSITIES, chosen  # noqa: E402
from ellzero.experiments.observations import verdicts  # noqa: E402

ROWS = 60
FEW = Settings(n_sparsities=3)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A folder with made-up files of cal_housing and letter, whose few rows are taken for all."""
    entries = {name: shrunk(entry, ROWS) for name, entry in ENTRIES.items()}
    monkeypatch.setattr(loading, "ENTRIES", entries)
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("cal_housing", "letter"):
        sample_frame(ENTRIES[name], ROWS).to_parquet(folder / f"{name}.parquet")
    return folder


def run(out, folder, **options):
    options = {"settings": FEW, **options}
    return reproduce(out, data_home=folder, download=False, **options)


def saved(out):
    return list(store.read(out / "results.jsonl").values())


# what is computed


def by_hand(folder, features):
    """½‖residual‖² over these features and ones, from the file."""
    frame = pd.read_parquet(folder / "cal_housing.parquet").iloc[1:]  # the paper's rows
    A = np.column_stack([frame[list(features)].to_numpy(), np.ones(len(frame))])
    b = frame["target"].to_numpy()
    return 0.5 * np.sum((b - A @ np.linalg.lstsq(A, b, rcond=None)[0]) ** 2)


def test_losses_are_those_of_the_features(small, tmp_path):
    run(tmp_path / "out", small, datasets=["cal_housing"])
    results = saved(tmp_path / "out")
    assert {(r.method, r.sparsity) for r in results} == {
        (method, s) for method in CURVES for s in FEW.sparsities("cal_housing")
    }
    for r in results:
        assert r.rows == ROWS - 1
        assert len(r.features) == r.sparsity - 1 or r.status == "FEWER_FEATURES"
        if r.method != "LASSO":
            assert_allclose(r.loss, by_hand(small, r.features), rtol=1e-8)
    loss = {(r.method, r.sparsity): r.loss for r in results}
    for s in FEW.sparsities("cal_housing"):
        subsets = combinations(ENTRIES["cal_housing"].features, s - 1)
        best = min(by_hand(small, features) for features in subsets)
        assert_allclose(loss["ellzero", s], best, rtol=1e-8)
        assert loss["ELS", s] <= loss["OMP", s] * (1 + 1e-12)
        assert loss["LASSO", s] >= loss[REFITTED, s] * (1 - 1e-12)


def test_logistic_losses_start_from_omp(small, tmp_path):
    run(tmp_path / "out", small, datasets=["letter"])
    loss = {(r.method, r.sparsity): r.loss for r in saved(tmp_path / "out")}
    for s in FEW.sparsities("letter"):
        assert loss["OMP", s] < ROWS * np.log(2)
        for method in ("OMPR", "ELS", "ARHT", "ellzero"):
            assert loss[method, s] <= loss["OMP", s] + 1e-9


def test_fast_takes_few_rows_and_the_figure_says_so(small, tmp_path):
    run(tmp_path / "out", small, datasets=["cal_housing"], settings=replace(FEW, rows=40))
    assert {r.rows for r in saved(tmp_path / "out")} == {40}
    for file in ("fig1.svg", "README.md"):
        text = (tmp_path / "out" / file).read_text(encoding="utf-8")
        assert "40 of the paper's 20 639 rows" in text
    assert "fast run" in text


def test_sparsities():
    assert set(SPARSITIES) == {name for names in FIGURES.values() for name in names}
    for name in SPARSITIES:
        few = FAST.sparsities(name)
        assert few == sorted(set(few) & set(SPARSITIES[name]))
        assert len(few) == FAST.n_sparsities
        assert (few[0], few[-1]) == (SPARSITIES[name][0], SPARSITIES[name][-1])
        assert few[-1] <= ENTRIES[name].paper_shape[1] + 1
    assert Settings(n_sparsities=1).sparsities("letter") == [2]


# what is saved


def test_nothing_is_computed_twice(small, tmp_path):
    run(tmp_path, small, datasets=["cal_housing"])
    before = (tmp_path / "results.jsonl").read_bytes()
    (tmp_path / "README.md").unlink()
    run(tmp_path, small, datasets=["cal_housing"])
    assert (tmp_path / "results.jsonl").read_bytes() == before
    assert (tmp_path / "README.md").exists()


def test_more_sparsities_keep_what_is_there(small, tmp_path):
    run(tmp_path, small, datasets=["cal_housing"])
    before = (tmp_path / "results.jsonl").read_text()
    run(tmp_path, small, datasets=["cal_housing"], settings=Settings(n_sparsities=8))
    after = (tmp_path / "results.jsonl").read_text()
    assert after.startswith(before)
    keys = [r.key for r in saved(tmp_path) if r.method == "ARHT"]
    assert len(keys) == len(set(keys)) == 8 == after.count('"ARHT"')


def test_results_of_other_settings_or_data_are_not_mixed_in(small, tmp_path):
    run(tmp_path, small, datasets=["cal_housing"])
    first = pd.read_parquet(tmp_path / "results.parquet")
    run(tmp_path, small, datasets=["cal_housing"], settings=replace(FEW, rows=40))
    second = pd.read_parquet(tmp_path / "results.parquet")
    other = sample_frame(ENTRIES["cal_housing"], ROWS, seed=1)
    other.to_parquet(small / "cal_housing.parquet")
    run(tmp_path, small, datasets=["cal_housing"])
    third = pd.read_parquet(tmp_path / "results.parquet")
    assert len(saved(tmp_path)) == len(first) + len(second) + len(third)
    assert set(first["rows"]) == set(third["rows"]) == {ROWS - 1}
    assert set(second["rows"]) == {40}
    assert not set(first["loss"]) & set(third["loss"])


def test_options_of_a_method_make_its_results_other_ones(small, tmp_path, monkeypatch):
    run(tmp_path, small, datasets=["cal_housing"])
    before = len(saved(tmp_path))
    monkeypatch.setitem(METHODS, "ARHT", {**METHODS["ARHT"], "n_runs": 2})
    run(tmp_path, small, datasets=["cal_housing"])
    assert len(saved(tmp_path)) == before + FEW.n_sparsities


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_torn_line_is_made_anew(small, tmp_path, keep):
    run(tmp_path, small, datasets=["cal_housing"])
    file = tmp_path / "results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][: int(keep * len(lines[-1]))])
    before = {r.key: r.loss for r in saved(tmp_path)}
    assert len(before) == len(lines) - 1
    run(tmp_path, small, datasets=["cal_housing"])
    after = {r.key: r.loss for r in saved(tmp_path)}
    assert len(after) == len(lines)
    assert before.items() <= after.items()


@pytest.fixture(scope="module")
def slices(tmp_path_factory):
    """A made-up file of slice's sample: its size is all that is checked, so commands accept it."""
    folder = tmp_path_factory.mktemp("slices")
    frame = sample_frame(ENTRIES["slice"], 682)
    frame.to_parquet(folder / "slice_first682.parquet")
    return folder


def command(out, folder, jobs=1):
    where = ["--out", str(out), "--data-home", str(folder), "--no-download", "--jobs", str(jobs)]
    return ["reproduce", "fig2", "--datasets", "slice", "--fast", *where]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_killed_run_goes_on_where_it_was(slices, tmp_path):
    file = tmp_path / "results.jsonl"
    process = subprocess.Popen([sys.executable, "-m", "ellzero", *command(tmp_path, slices, 2)])
    deadline = time.monotonic() + 120
    while not file.exists() or file.read_bytes().count(b"\n") < 12:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = file.read_bytes()
    assert not (tmp_path / "README.md").exists()
    assert main(command(tmp_path, slices)) == 0
    after = file.read_bytes()
    assert after.startswith(before)
    found = saved(tmp_path)
    assert len(found) == len(CURVES) * FAST.n_sparsities
    assert len(found) == len(after.splitlines()), "something was computed twice"


def test_the_command(slices, tmp_path, capsys):
    assert main(command(tmp_path, slices)) == 0
    written = capsys.readouterr()
    assert written.err == ""
    files = [line.rsplit(os.sep, 1)[1] for line in written.out.splitlines()]
    assert files == ["results.parquet", "fig2.png", "fig2.svg", "README.md"]
    frame = pd.read_parquet(tmp_path / "results.parquet")
    assert set(frame["method"]) == set(CURVES)
    assert set(frame["figure"]) == {"fig2"}
    assert len(frame.drop_duplicates(["dataset", "method", "sparsity"])) == len(frame)
    report = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "slice: 682 of the paper's 53 500 rows" in report
    assert "682 of the paper's 53 500 rows" in (tmp_path / "fig2.svg").read_text(encoding="utf-8")
    els = frame[(frame["method"] == "ELS")].sort_values("sparsity")
    for s, loss in zip(els["sparsity"], els["loss"], strict=True):
        assert re.search(rf"^\| {s} \|.* {re.escape(f'{loss:.7g}')} \|", report, re.MULTILINE)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal(small, tmp_path, monkeypatch):
    pytest.importorskip("rich", reason="the bar needs rich")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    run(tmp_path / "out", small, datasets=["cal_housing"])
    assert "computing" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


# what cannot be had


def test_a_missing_data_set_is_skipped_and_named(small, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["fig1", "--fast", "--jobs", "1", "--no-download"]
    arguments += ["--out", str(out), "--data-home", str(small)]
    assert main(["reproduce", *arguments]) == 0
    error = capsys.readouterr().err
    assert "skipped year" in error
    assert "YearPredictionMSD" in error
    assert "- year: year is not in" in (out / "README.md").read_text(encoding="utf-8")
    assert {r.dataset for r in saved(out)} == {"cal_housing"}


def test_no_data_at_all_is_an_error(tmp_path, capsys):
    arguments = ["--no-download", "--out", str(tmp_path / "out"), "--data-home", str(tmp_path)]
    assert main(["reproduce", *arguments]) == 1
    error = capsys.readouterr().err
    assert "no data set could be had" in error
    assert "cal_housing.tgz" in error
    assert not (tmp_path / "out").exists()


def test_what_is_asked_for_is_checked(tmp_path, capsys):
    assert chosen() == dict(FIGURES)
    assert chosen(["fig3"]) == {"fig3": ("census", "kddcup04_bio")}
    assert chosen([], ["slice"]) == {"fig2": ("slice",)}
    with pytest.raises(ValueError, match=r"figure: expected one of fig1, .* got 'fig5'"):
        chosen(["fig5"])
    with pytest.raises(ValueError, match="datasets: expected some of cal_housing, year; got"):
        chosen(["fig1"], ["letter"])
    assert main(["reproduce", "fig5", "--out", str(tmp_path)]) == 1
    assert "fig5" in capsys.readouterr().err
    assert main(["reproduce", "--jobs", "0"]) == 2
    assert "--jobs" in capsys.readouterr().err


def test_a_readme_of_someone_else_is_not_overwritten(small, tmp_path, capsys):
    mine = tmp_path / "README.md"
    mine.write_text("# My project\n", encoding="utf-8")
    arguments = ["fig1", "--out", str(tmp_path), "--data-home", str(small), "--no-download"]
    assert main(["reproduce", *arguments]) == 1
    assert "README.md is not a report of these experiments" in capsys.readouterr().err
    assert mine.read_text(encoding="utf-8") == "# My project\n"
    assert not (tmp_path / "results.jsonl").exists()


# what the report says

AS_THE_PAPER = {
    "LASSO": {2: 100.0, 3: 90.0, 4: 80.0, 5: 70.0},
    REFITTED: {2: 95.0, 3: 85.0, 4: 75.0, 5: 65.0},
    "OMP": {2: 90.0, 3: 80.0, 4: 70.0, 5: 60.0},
    "OMPR": {2: 85.0, 3: 75.0, 4: 65.0, 5: 55.0},
    "ARHT": {2: 81.0, 3: 74.0, 4: 61.0, 5: 54.0},
    "ELS": {2: 80.0, 3: 70.0, 4: 60.0, 5: 50.0},
    "ellzero": {2: 80.0, 3: 69.0, 4: 60.0, 5: 50.0},
}


def judged(**changed):
    """Verdicts, by observation, for the paper's picture with some curves replaced."""
    losses = {**AS_THE_PAPER, **{name: dict(enumerate(c, 2)) for name, c in changed.items()}}
    return {v.observation: (v.verdict, v.numbers) for v in verdicts(losses)}


def test_every_observation_holds_of_the_papers_picture():
    found = judged()
    assert found.pop("ARHT oscillates between ELS and OMPR") == (
        "yes",
        "of 4 sparsities with ELS below OMPR: nearer to ELS at 2, to OMPR at 2; 3 changes of side",
    )
    assert {verdict for verdict, _ in found.values()} == {"holds"}
    assert len(found) == 7
    assert (
        "below them by up to 10 % (s = 5)"
        in judged(ARHT=[85, 75, 65, 55])["ELS is the best of the five"][1]
    )


@pytest.mark.parametrize(
    ("changed", "observation", "verdict", "numbers"),
    [
        ({"ELS": [82, 75, 62, 55]}, "ELS is the best of the five", "fails", "at 0 of 4"),
        ({"ELS": [80, 70, 60, 56]}, "ELS is the best of the five", "holds mostly", "3.7 % (s = 5)"),
        ({"ARHT": [79, 74, 61, 54]}, "ARHT is between ELS and OMPR", "holds mostly", "ELS at 1"),
        ({"ARHT": [86, 76, 61, 54]}, "ARHT is between ELS and OMPR", "fails", "OMPR at 2"),
        ({"ARHT": [84, 74, 64, 54]}, "ARHT oscillates between ELS and OMPR", "no", "0 changes"),
        ({"ARHT": [81, 71, 64, 54]}, "ARHT oscillates between ELS and OMPR", "no", "1 changes"),
        ({"ELS": [86, 76, 66, 56]}, "ELS is ahead of OMP and OMPR", "fails", "at 0 of 4"),
        ({"ARHT": [85, 75, 65, 55]}, "ARHT is ahead of OMP and OMPR", "tied", "at 4 of 4"),
        ({"ARHT": [91, 70, 60, 50]}, "ARHT is ahead of OMP and OMPR", "holds mostly", "10 %"),
        ({"LASSO": [80, 70, 60, 70]}, "LASSO is last", "fails", "at 1 of 4"),
        ({REFITTED: [89, 85, 75, 65]}, "LASSO is last even when refitted", "holds mostly", "3 of"),
        ({"ellzero": [81, 71, 61, 51]}, "ellzero's search is best of all", "fails", "2 % (s = 5)"),
        ({"ellzero": [80 + 1e-6, 70, 60, 50]}, "ellzero's search is best of all", "holds", "4 of"),
    ],
)
def test_observations_that_fail_are_said_to(changed, observation, verdict, numbers):
    found = judged(**changed)[observation]
    assert found[0] == verdict
    assert numbers in found[1]


def test_the_report_says_what_is_true_of_which_data_set(tmp_path):
    def results(name, **changed):
        losses = {**AS_THE_PAPER, **{m: dict(enumerate(c, 2)) for m, c in changed.items()}}
        return [
            store.Result(name, method, s, loss, (), "COMPLETE", 9, 60.0, "")
            for method, curve in losses.items()
            for s, loss in curve.items()
        ]

    names = FIGURES["fig4"]
    shown = {"letter": results("letter"), "ijcnn1": results("ijcnn1", ELS=[82, 75, 62, 55])}
    file = report.write({"fig4": names}, shown, {"year": "no file"}, FEW, tmp_path / "README.md")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert "| ELS is the best of the five | holds | fails |" in lines
    (both,) = [line for line in lines if line.startswith("- True of letter and ijcnn1:")]
    assert "LASSO is last" in both
    (one,) = [line for line in lines if line.startswith("- True of letter:")]
    assert "ELS is the best of the five" in one
    assert "- year: no file" in lines


def test_observations_need_their_methods():
    losses = {name: AS_THE_PAPER[name] for name in ("OMP", "OMPR", "ELS")}
    assert [v.observation for v in verdicts(losses)] == ["ELS is ahead of OMP and OMPR"]
    apart = {"ELS": {2: 1.0}, "OMP": {3: 1.0}, "OMPR": {2: 1.0, 3: 1.0}}
    (verdict,) = verdicts(apart)
    assert verdict.verdict == "no result"


@pytest.mark.parametrize("package", ["pandas", "pyarrow", "matplotlib"])
def test_missing_packages_are_named_before_the_work(package, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["reproduce", "--no-download", "--data-home", str(tmp_path)]) == 1
    assert f"need {package}: pip install 'ellzero[data,plot]'" in capsys.readouterr().err

"""A study says what the estimators say, and the page made of it is whole and inert."""

import json
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris

import ellzero as lz
from ellzero import LeastSquares, SparseClassifier, SparseRegressor, SparseRegressorCV
from ellzero.cli.main import main
from ellzero.report import render, study
from ellzero.report.stand_ins import correlations, stand_ins
from report_data import HOSTILE, hostile_study


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def found(diabetes):
    X, y = diabetes
    return study(X, y, sizes=range(1, 6), methods=("auto", "omp", "lasso"), cv=5, forced=["sex"])


def features(entry):
    return [row["feature"] for row in entry["chosen"]]


def test_models_are_those_of_the_estimator(diabetes, found):
    model = SparseRegressor(sparsity=3, forced=["sex"]).fit(*diabetes)
    entry = found["models"][2]
    assert features(entry) == model.support_.tolist()
    assert entry["loss"] == pytest.approx(model.loss_, rel=1e-12)
    coefficients = [row["coefficients"][0] for row in entry["chosen"] + entry["forced"]]
    chosen = [*model.support_, *model.forced_]
    np.testing.assert_allclose(coefficients, model.coef_[chosen], rtol=1e-9)
    np.testing.assert_allclose(entry["intercept"], model.intercept_, rtol=1e-9)
    assert entry["explained"] == pytest.approx(model.score(*diabetes))
    residual = diabetes[1] - model.predict(diabetes[0])
    assert entry["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))


def test_folds_and_criteria_are_those_of_the_estimator(diabetes, found):
    options = {"sparsity": range(1, 6), "cv": 5, "forced": ["sex"]}
    model = SparseRegressorCV(criterion="1se", **options).fit(*diabetes)
    np.testing.assert_allclose(found["cv"]["error"], -model.cv_results_["mean_test_score"])
    np.testing.assert_allclose(found["cv"]["standard_error"], model.cv_results_["se_test_score"])
    assert found["cv"]["one_standard_error"] == model.sparsity_
    for criterion in ("aic", "bic", "ebic", "gic"):
        model = SparseRegressorCV(criterion=criterion, **options).fit(*diabetes)
        assert found["criteria"][criterion] == model.sparsity_


def test_methods_are_compared_after_a_refit(diabetes, found):
    X, y = diabetes
    Z = (X - X.mean()) / X.std()
    f = LeastSquares(Z, y, fit_intercept=True, forced=[1])
    for method in ("omp", "lasso"):
        path = lz.path(f, range(1, 6), method)
        losses = [f.minimize(path[s].support).value for s in path]
        np.testing.assert_allclose(found["losses"][method], losses, rtol=1e-9)


def test_models_that_are_no_minimisers_are_refitted(diabetes):
    X, y = diabetes
    seen = []
    (entry,) = study(
        X, y, sizes=[2], methods=["iht"], callback=lambda x: seen.append(x) or len(seen) == 3
    )["models"]
    f = LeastSquares(X, y, fit_intercept=True)
    best = f.refit(f.minimize(features(entry)))
    assert seen[-1].value > 1.001 * best.value
    assert entry["loss"] == pytest.approx(best.value)
    assert [row["coefficients"][0] for row in entry["chosen"]] == pytest.approx(best.coef)


def test_removals_and_stand_ins_are_losses_of_refits(diabetes, found):
    X, y = diabetes
    f = LeastSquares(X, y, fit_intercept=True, forced=[1])
    entry = found["models"][3]
    S = features(entry)
    for row in entry["chosen"]:
        rest = [j for j in S if j != row["feature"]]
        assert row["loss_without"] == pytest.approx(f.minimize(rest).value)
        everyone = {
            i: f.minimize([*rest, i]).value
            for i in range(10)
            if i not in S and i not in f.features.forced
        }
        best = sorted(everyone, key=everyone.get)[:3]
        assert [other["feature"] for other in row["stand_ins"]] == best
        for other in row["stand_ins"]:
            i = other["feature"]
            assert other["loss"] == pytest.approx(everyone[i])
            r = np.corrcoef(X.iloc[:, i], X.iloc[:, row["feature"]])[0, 1]
            assert other["correlation"] == pytest.approx(r)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    data = load_iris(as_frame=True)
    rows = data.target < 3 if classes == 3 else data.target > 0
    X, y = data.data[rows], data.target_names[data.target[rows]]
    found = study(X, y, sizes=[1, 2], task="classification", target="species")
    model = SparseClassifier(sparsity=2).fit(X, y)
    entry = found["models"][1]
    assert found["classes"] == sorted(set(y))
    assert features(entry) == model.support_.tolist()
    assert len(entry["intercept"]) == len(model.coef_)
    for row in entry["chosen"]:
        coefficients = model.coef_[:, row["feature"]]
        np.testing.assert_allclose(row["coefficients"], coefficients, rtol=1e-5)
        assert row["feature"] not in [other["feature"] for other in row["stand_ins"]]
        assert all(other["loss"] < row["loss_without"] for other in row["stand_ins"])
    assert entry["accuracy"] == pytest.approx(model.score(X, y))
    assert found["stand_in_losses"] == "refitted"


def test_stand_ins_of_a_logistic_loss_are_refitted(rng):
    X = rng.standard_normal((80, 6))
    X[:, 3] = X[:, 0] + 0.1 * rng.standard_normal(80)
    f = lz.Logistic(X, (X[:, 0] - X[:, 1] + rng.standard_normal(80) > 0).astype(int))
    x = f.minimize([0, 1])
    for j, others in zip([0, 1], stand_ins(f, x, 2), strict=True):
        assert others[0].loss <= others[1].loss
        for i, loss in others:
            assert loss == pytest.approx(f.minimize([1 - j, i]).value)
    assert stand_ins(f, x, 2)[0][0].feature == 3
    assert stand_ins(f, x, 0) == [[], []]


def test_correlations_are_weighted_and_of_constants_unknown(rng):
    X = rng.standard_normal((30, 3)) + 1e3
    X[:, 2] = 7.0
    weight = rng.integers(0, 4, 30).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    R = correlations(sparse.csc_matrix(X), weight, np.array([0, 1, 2]))
    assert R[1, 0] == pytest.approx(np.corrcoef(repeated[:, :2].T)[0, 1])
    assert np.isnan(R[0, 2])
    X[:, 2] = 0.0
    assert np.isnan(correlations(X, weight, np.array([0, 2]))[0, 1])


def test_weights_are_repeated_rows(diabetes, rng):
    X, y = (part.iloc[:60] for part in diabetes)
    weight = rng.integers(1, 3, 60)
    options = {"sizes": [2, 3], "n_stand_ins": 2}
    weighted = study(X, y, sample_weight=weight, **options)
    repeated = study(X.loc[X.index.repeat(weight)], y.loc[y.index.repeat(weight)], **options)
    for one, other in zip(weighted["models"], repeated["models"], strict=True):
        assert features(one) == features(other)
        assert one["loss"] == pytest.approx(other["loss"])
        assert one["rmse"] == pytest.approx(other["rmse"])


def test_only_features_that_are_named_are_kept(rng):
    X = rng.standard_normal((40, 5000))
    found = study(X, X[:, 7] - X[:, 4000], sizes=[1, 2], methods=["omp"], n_stand_ins=1)
    assert found["n_features"] == 5000
    assert len(found["features"]) < 8
    assert found["features"]["4000"]["name"] == "x4000"
    assert len(render(found)) < 60_000


def test_bounds_are_those_of_certificates(rng):
    X = rng.standard_normal((60, 30)) + rng.standard_normal((60, 1))
    y = X[:, :4].sum(axis=1) + 4 * rng.standard_normal(60)
    assert all("lower_bound" not in entry for entry in study(X, y, sizes=[4])["models"])
    (entry,) = study(X, y, sizes=[4], certify=30)["models"]
    assert entry["status"] != "OPTIMAL"
    assert entry["certified"]
    assert entry["lower_bound"] == entry["loss"]
    (entry,) = study(X, y, sizes=[4], certify=1e-9)["models"]
    assert not entry["certified"]
    assert entry["lower_bound"] < entry["loss"]


def test_a_callback_may_end_the_search(diabetes):
    X, y = diabetes
    seen = []

    def stop_at_second(x):
        seen.append(x)
        return len(seen) > 1

    found = study(X, y, sizes=range(1, 4), methods=["ompr"], callback=stop_at_second)
    assert 1 <= len(found["models"]) < 3
    assert found["models"][-1]["status"] == "STOPPED"
    with pytest.raises(ValueError, match="callback: ended the search before"):
        study(X, y, sizes=[1], methods=["omp"], callback=lambda x: True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "ranking"}, "task: expected 'regression' or 'classification', got 'ranking'"),
        ({"methods": "auto"}, r"methods: expected names such as \('auto', 'omp'\)"),
        ({"methods": []}, "methods: expected at least one"),
        ({"methods": ["best"]}, "method: expected 'auto' or one of"),
        ({"sizes": [11]}, "s: expected 1 to 10"),
        ({"sizes": []}, "sizes: expected at least one"),
        ({"n_stand_ins": -1}, "n_stand_ins: expected a whole number"),
        ({"feature_names": ["a"]}, "feature_names: expected 10 names, one per column of X; got 1"),
        ({"forced": ["weight"]}, "forced: X has no column 'weight'"),
    ],
)
def test_bad_arguments_are_named(diabetes, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        study(*diabetes, **{"sizes": [1], **options})


def test_names_may_be_given_for_arrays(diabetes):
    X, y = diabetes
    names = [f"column {j}" for j in range(10)]
    found = study(X.to_numpy(), y, sizes=[1], feature_names=names, forced=["column 8"])
    assert found["models"][0]["forced"][0]["feature"] == 8
    assert found["features"]["8"]["name"] == "column 8"
    assert found["target"] == "target"


def embedded(page):
    return re.search(r'<script type="application/json" id="study">(.*?)</script>', page, re.S)[1]


def test_a_page_holds_the_study_and_loads_nothing(found):
    page = render(json.loads(json.dumps(found)))
    assert json.loads(embedded(page)) == found
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//\w+\.\w+/|@import|url\(|fetch\(|XMLHttp", outside)
    assert "default-src 'none'" in page
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", page)


def test_hostile_names_cannot_leave_their_element():
    data = hostile_study()
    page = render(data)
    assert json.loads(embedded(page)) == data
    assert page.count("<script") == 2
    assert not re.search("[<>&\u2028\u2029]", embedded(page))
    assert "</title><script>" not in page
    page.encode("utf-8")  # also with half a surrogate pair in a name
    assert any("\ud800" in name for name in HOSTILE)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([], "expected the results of a study"),
        ({"schema": "other"}, "expected the results of a study"),
        ({"version": 99}, "expected version 1 of the results, got 99"),
        ({"models": []}, "one model for every size"),
        ({"title": float("nan")}, "cannot be written as JSON"),
        ({"losses": 3}, "damaged; a part has a wrong type"),
        ({"models": 3}, "damaged; a part has a wrong type"),
        ({"losses": {"auto": [1.0], "omp": [1.0]}}, "one model for every size"),
        ({"features": {}}, "damaged; a model lacks '2'"),
        ({"models": [{}] * 5}, "damaged; a model lacks 's'"),
    ],
)
def test_what_is_no_study_is_refused(found, broken, message):
    with pytest.raises(ValueError, match=f"study: .*{message}"):
        render({**found, **broken} if isinstance(broken, dict) else broken)
    with pytest.raises(ValueError, match="'models' is missing"):
        render({key: value for key, value in found.items() if key != "models"})


def test_command(found, tmp_path, capsys):
    results, page = tmp_path / "results.json", tmp_path / "page.html"
    results.write_text(json.dumps(found), encoding="utf-8")
    assert main(["report", str(results), "-o", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == render(found)
    assert main(["report", str(results)]) == 0
    assert capsys.readouterr().out.split() == [str(page), str(tmp_path / "results.html")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not json", "is no file of `ellzero path --out`: it is no JSON"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"{}", "expected the results of a study"),
        (None, "No such file"),
    ],
)
def test_command_tells_what_is_wrong_with_a_file(content, message, tmp_path, capsys):
    results = tmp_path / "results.json"
    if content is not None:
        results.write_bytes(content)
    assert main(["report", str(results)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "results.json" in error
    assert not results.with_suffix(".html").exists()


def test_command_does_not_overwrite_the_results(found, tmp_path, capsys):
    results = tmp_path / "results.html"
    results.write_text(json.dumps(found), encoding="utf-8")
    assert main(["report", str(results)]) == 2
    assert "is the file that is read; name another one" in capsys.readouterr().err
    assert json.loads(results.read_text(encoding="utf-8")) == found

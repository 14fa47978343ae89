"""What a fitted model shows: tables, words, pictures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.exceptions import NotFittedError

import ellzero as lz

NAMES = ["age", "bmi", "<b>&", "hdl", "ldl"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = X @ [0.0, 2.0, -1.0, 0.0, 0.3] + 0.1 * RNG.normal(size=60)


@pytest.fixture
def model():
    pandas = pytest.importorskip("pandas")
    return lz.SparseRegressor(2, forced=["age"]).fit(pandas.DataFrame(X, columns=NAMES), Y)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_summary_is_a_table(model):
    table = model.summary()
    assert table.index.tolist() == ["age", "bmi", "<b>&"]
    assert table.index.name == "feature"
    assert_allclose(table["coefficient"], model.coef_[:3])
    assert table["forced"].tolist() == [True, False, False]
    assert table["first_size"].tolist() == [0, 1, 2]


def test_report_in_words(model):
    assert repr(model) == "SparseRegressor(forced=['age'], sparsity=2)"
    headline, *table, less, more, status = repr(model.report()).splitlines()
    assert headline == f"SparseRegressor: 2 of 4 features and 1 forced, loss {model.loss_:.6g}"
    assert [line.split()[0] for line in table] == ["coefficient", "bmi", "<b>&", "age", "intercept"]
    assert "age (forced)" in table[3]
    for line, s, moves in ((less, 1, "−<b>&"), (more, 3, "+ldl")):
        loss = model.path_[s].value
        change = loss / model.loss_ - 1
        assert line == f"with {s}: loss {loss:.6g} ({change:+.2%}), {moves}"
    assert status.startswith("status OPTIMAL")


def test_report_in_a_notebook_escapes_names(model):
    html = model.report()._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert f"{model.coef_[1]:.6g}" in html
    assert "with 3: loss" in html


def test_estimators_show_their_report_once_fitted(model):
    bundle = model._repr_mimebundle_()
    assert "ellzero-report" in bundle["text/html"]
    assert "ellzero-report" in model._repr_html_()
    assert bundle["text/plain"] == repr(model)
    assert "ellzero-report" not in lz.SparseRegressor()._repr_html_()
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
    for method in ("report", "summary", "plot_path", "plot_coefficients"):
        with pytest.raises(NotFittedError):
            getattr(lz.SparseRegressor(), method)()


def test_long_reports_are_cut():
    A = RNG.normal(size=(60, 45))
    text = repr(lz.SparseRegressor(40, method="omp").fit(A, Y).report())
    assert "... and 10 more" in text


def test_path_display(model, plt):
    display = lz.PathDisplay.from_estimator(model, color="red")
    assert_array_equal(display.line_.get_xdata(), [1, 2, 3])
    assert_allclose(display.line_.get_ydata(), [model.path_[s].value for s in (1, 2, 3)])
    assert display.line_.get_color() == "red"
    assert display.ax_.get_xlabel() == "number of selected features"
    assert display.figure_ is display.ax_.figure
    assert display.selected == 2
    _, ax = plt.subplots()
    assert model.plot_path(ax=ax).ax_ is ax


def test_coefficient_display(model, plt):
    display = model.plot_coefficients()
    assert isinstance(display, lz.CoefficientDisplay)
    assert list(display.coefficients) == ["age", "bmi", "<b>&", "ldl"]
    assert_allclose(display.coefficients["bmi"], [model.path_[s].x[1] for s in (1, 2, 3)])
    assert [line.get_label() for line in display.lines_] == list(display.coefficients)


def test_cv_display(model, plt):
    chosen = lz.SparseRegressorCV(4, cv=3).fit(X, Y)
    display = chosen.plot_cv()
    assert isinstance(display, lz.CVDisplay)
    assert_allclose(display.mean, chosen.cv_results_["mean_test_score"])
    assert display.selected == chosen.sparsity_
    with pytest.raises(ValueError, match="SparseRegressor was not cross-validated; fit"):
        lz.CVDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="criterion='cv'"):
        lz.SparseRegressorCV(criterion="bic").fit(X, Y).plot_cv()

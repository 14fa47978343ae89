"""The paper's preprocessing, and that it can be undone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

pd = pytest.importorskip("pandas", reason="frames need pandas")

from ellzero import LeastSquares, omp  # noqa: E402
from ellzero.datasets import Preprocessing  # noqa: E402


@pytest.fixture
def frame(rng):
    m = 60
    return pd.DataFrame(
        {
            "age": rng.integers(1, 90, m).astype(float),
            "colour": rng.choice(["red", "green", "?", "NA"], m),
            "zero": np.zeros(m),
            "weight": rng.normal(50, 5, m),
            "shape": pd.Categorical(rng.choice(["round", "square"], m)),
        }
    )


def dense(A):
    return A.toarray() if sparse.issparse(A) else A


@pytest.mark.parametrize("sparse_output", [True, False, "auto"])
def test_the_matrix_is_the_papers(frame, sparse_output):
    prep = Preprocessing(sparse_output=sparse_output)
    A = prep.fit_transform(frame)
    assert sparse.issparse(A) == (sparse_output is not False)
    names = ["age", "colour=NA", "colour=green", "colour=red", "zero", "weight"]
    names += ["shape=round", "shape=square", "1"]
    assert prep.get_feature_names_out().tolist() == names
    plain = np.column_stack(
        [frame["age"]]
        + [frame["colour"] == level for level in ("NA", "green", "red")]
        + [frame["zero"], frame["weight"]]
        + [frame["shape"] == level for level in ("round", "square")]
        + [np.ones(len(frame))]
    ).astype(float)
    norms = np.linalg.norm(plain, axis=0)
    assert_allclose(dense(A), plain / np.where(norms > 0, norms, 1), rtol=1e-13)
    assert_allclose(np.linalg.norm(dense(A), axis=0), norms > 0, rtol=1e-13)
    assert_array_equal(dense(prep.transform(frame)), dense(A))


def test_numbers_alone_give_a_dense_matrix(rng):
    X = rng.normal(size=(10, 3))
    A = Preprocessing().fit_transform(X)
    assert isinstance(A, np.ndarray)
    assert A.flags.c_contiguous
    assert_allclose(A[:, 3], 1 / np.sqrt(10))
    assert_allclose(A[:, :3], X / np.linalg.norm(X, axis=0), rtol=1e-13)


def test_the_frame_is_left_alone(frame):
    before = frame.copy(deep=True)
    Preprocessing().fit_transform(frame)
    pd.testing.assert_frame_equal(frame, before)
    X = np.asfortranarray(frame[["age", "weight"]].to_numpy())
    kept = X.copy()
    Preprocessing(ones=False).fit_transform(X)
    one = X[:, :1]
    Preprocessing(ones=False).fit_transform(one)
    assert_array_equal(X, kept)


def test_only_a_missing_number_discards_a_row(frame):
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "shape"] = np.nan
    frame["colour"] = frame["colour"].mask(frame.index == 7)
    prep = Preprocessing().fit(frame)
    kept = prep.complete(frame)
    assert np.flatnonzero(~kept).tolist() == [3]
    A = prep.transform(frame).toarray()
    assert A.shape == (59, 9)
    assert not A[4, 6:8].any()  # row 5, after row 3 has gone
    assert not A[6, 1:4].any()
    assert_allclose(np.linalg.norm(A, axis=0), [1, 1, 1, 1, 0, 1, 1, 1, 1], rtol=1e-13)


def test_levels_are_those_of_all_rows_as_one_hot_comes_first():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "c": ["a", "b", "rare"]})
    prep = Preprocessing(sparse_output=False)
    A = prep.fit_transform(frame)
    assert prep.get_feature_names_out().tolist() == ["x", "c=a", "c=b", "c=rare", "1"]
    assert not A[:, 3].any()


def test_inverse_transform_gives_the_frame_back(frame):
    prep = Preprocessing()
    back = prep.inverse_transform(prep.fit_transform(frame))
    assert back.columns.tolist() == frame.columns.tolist()
    for name in ("age", "zero", "weight"):
        assert_allclose(back[name], frame[name], rtol=1e-13)
    colours = frame["colour"].mask(frame["colour"] == "?")
    assert back["colour"].astype(object).where(back["colour"].notna(), None).tolist() == [
        None if pd.isna(colour) else colour for colour in colours
    ]
    assert back["shape"].astype(str).tolist() == frame["shape"].astype(str).tolist()


def by_hand(frame, intercept, coefficients):
    total = np.full(len(frame), intercept)
    for name, value in coefficients.items():
        if isinstance(value, dict):
            total += [value.get(word, 0.0) for word in frame[name]]
        else:
            total += value * frame[name]
    return total


def test_coefficients_go_back_to_the_original_columns(frame, rng):
    prep = Preprocessing()
    A = prep.fit_transform(frame)
    x = rng.normal(size=A.shape[1])
    x[2] = 0.0
    intercept, coefficients = prep.original_coef(x)
    assert "green" not in coefficients["colour"]
    assert_allclose(by_hand(frame, intercept, coefficients), A @ x, rtol=1e-12)


def test_a_model_of_a_solver_with_an_intercept_goes_back(frame, rng):
    y = 3 + 0.5 * frame["age"].to_numpy() + 2.0 * (frame["colour"] == "red").to_numpy()
    prep = Preprocessing(ones=False, sparse_output=False)
    found = omp(LeastSquares(prep.fit_transform(frame), y, fit_intercept=True), 2)
    intercept, coefficients = prep.original_coef(found.x, found.intercept)
    assert_allclose(intercept, 3.0, rtol=1e-8)
    assert coefficients.keys() == {"age", "colour"}
    assert_allclose(coefficients["age"], 0.5, rtol=1e-8)
    assert_allclose(coefficients["colour"]["red"], 2.0, rtol=1e-8)


def test_new_data(frame):
    prep = Preprocessing().fit(frame)
    turned = frame.iloc[::-1, ::-1]
    assert_allclose(prep.transform(turned).toarray(), prep.transform(frame).toarray()[::-1])
    with pytest.raises(ValueError, match="no column 'age'"):
        prep.transform(frame.drop(columns="age"))
    with pytest.raises(ValueError, match="'colour' has a level not seen in fit: 'blue'"):
        prep.transform(frame.assign(colour="blue"))


def test_bad_input(frame):
    with pytest.raises(ValueError, match="no row is complete"):
        Preprocessing().fit(pd.DataFrame({"x": [np.nan, np.nan]}))
    with pytest.raises(ValueError, match="'x' has an infinite entry"):
        Preprocessing().fit(pd.DataFrame({"x": [np.inf, 1.0]}))
    with pytest.raises(ValueError, match="two columns are called '1'"):
        Preprocessing().fit(pd.DataFrame([[1.0, 2.0]], columns=[1, "1"]))
    with pytest.raises(TypeError, match="absent: expected a tuple of words, got 'NA'"):
        Preprocessing(absent="NA").fit(frame)
    prep = Preprocessing().fit(frame)
    with pytest.raises(ValueError, match="expected 9 coefficients"):
        prep.original_coef(np.zeros(8))
    with pytest.raises(ValueError, match="expected 9 columns"):
        prep.inverse_transform(np.zeros((3, 8)))
    with pytest.raises(ValueError, match=r"expected 9 columns, got shape \(9,\)"):
        prep.inverse_transform([0.0] * 9)
    with pytest.raises(ValueError, match="'age' had numbers in fit"):
        prep.transform(frame.assign(age="old"))


def test_it_is_a_transformer(frame):
    prep = clone(Preprocessing(ones=False, unit_norm=False))
    A = prep.fit_transform(frame).toarray()
    assert_array_equal(A[:, 0], frame["age"])
    assert set(np.unique(A[:, 1:4])) == {0.0, 1.0}

"""What users bring, checked: an error names the argument or the column and says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ellzero.checks import as_support, check_count, closest
from ellzero.supports import Support

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn < 1.6 has it as a method, with an older name of one argument

    def validate_data(  # type: ignore[no-redef]
        estimator: Any, X: Any, y: Any = "no_validation", *, ensure_all_finite: Any, **options: Any
    ) -> Any:
        check = getattr(estimator, "_validate_data")  # noqa: B009
        return check(X, y, force_all_finite=ensure_all_finite, **options)


LARGEST_DEFAULT = 10
"""The sizes to choose from end here unless the user says more."""

FOR_CLASSES = "for classes use SparseClassifier or loss='log_loss'."
TEXT_IN_Y = f"y: expected numbers, got text; {FOR_CLASSES}"


def check_data(estimator: Any, X: Any, *target: Any, **options: Any) -> Any:
    """X (and the target, where given) as arrays; the columns of X go on record."""
    try:
        checked = validate_data(
            estimator,
            X,
            *target,
            dtype=[np.float64, np.float32],
            accept_sparse=["csc", "csr"],
            ensure_all_finite=False,
            **options,
        )
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        raise ValueError(_about_text(X)) from error
    check_finite(checked[0] if target else checked, names_of(estimator))
    return checked


def check_numeric(y: NDArray[Any]) -> NDArray[Any]:
    if y.dtype.kind not in "fiub":
        kind = "text" if y.dtype.kind in "OSU" else f"dtype {y.dtype}"
        raise ValueError(f"y: expected numbers, got {kind}; {FOR_CLASSES}")
    return y


def names_of(estimator: Any) -> NDArray[Any] | None:
    return getattr(estimator, "feature_names_in_", None)


def feature_names(estimator: Any) -> list[Any]:
    """Return the names of the columns of X, or their indices where they have none."""
    names = names_of(estimator)
    return list(range(estimator.n_features_in_)) if names is None else names.tolist()


def _about_text(X: Any) -> str:
    """Which column of X holds text; if none does, it is y."""
    is_frame = hasattr(X, "columns")
    columns = X.columns if is_frame else range(np.asarray(X, dtype=object).shape[1])
    for j in columns:
        column = np.asarray(X[j] if is_frame else np.asarray(X, dtype=object)[:, j], dtype=object)
        text = next((entry for entry in column if isinstance(entry, str)), None)
        if text is not None:
            return (
                f"X: column {j!r} holds text such as {text!r}; encode it, for example with "
                "OneHotEncoder, or drop it."
            )
    return TEXT_IN_Y


def check_finite(X: Any, names: NDArray[Any] | None) -> None:
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    rows, columns, entries = sparse.find(X) if sparse.issparse(X) else _entries(X)
    bad = ~np.isfinite(entries)
    j = columns[bad].min()
    where = rows[bad & (columns == j)]
    column = j if names is None else repr(str(names[j]))
    raise ValueError(
        f"X: column {column} has {len(where)} NaN or infinite value(s), the first in row "
        f"{where.min()}; drop those rows or impute them, for example with SimpleImputer."
    )


def _entries(X: NDArray[Any]) -> tuple[Any, Any, Any]:
    rows, columns = np.nonzero(~np.isfinite(X))
    return rows, columns, X[rows, columns]


def check_forced(forced: Any, names: NDArray[Any] | None, n_features: int) -> Support:
    """Names or indices of features as sorted indices."""
    if forced is None:
        forced = ()
    members = [forced] if isinstance(forced, str | int | np.integer) else forced
    if not isinstance(members, Iterable):
        raise TypeError(f"forced: expected names or indices of features, got {forced!r}.")
    members = np.asarray(members) if hasattr(members, "dtype") else list(members)
    if isinstance(members, list) or members.dtype.kind in "OU":
        members = [_index(m, names) if isinstance(m, str) else m for m in members]
    return as_support(members, "forced", n_features)


def _index(name: str, names: NDArray[Any] | None) -> int:
    if names is None:
        raise ValueError(
            f"forced: {name!r} is a name, but the columns of X have none; pass a data frame, or "
            "the indices of the features."
        )
    known = names.tolist()
    if name in known:
        return known.index(name)
    close = closest(name, known)
    hint = f"its columns are {_some(known)}." if close is None else f"did you mean {close!r}?"
    raise ValueError(f"forced: X has no column {name!r}; {hint}")


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def check_search(options: Any, max_iter: Any) -> dict[str, Any]:
    """What a user adds to the call of `path`, which itself checks the keywords."""
    limit = {}
    if max_iter is not None:
        check_count("max_iter", max_iter, 1)
        limit = {"max_iter": max_iter}
    if options is None:
        return limit
    if not isinstance(options, dict) or not all(isinstance(key, str) for key in options):
        raise TypeError(f"options: expected a dict such as {{'effort': 2}}, got {options!r}.")
    return {**limit, **options}


def check_size(sparsity: Any, n_features: int, n_forced: int) -> int:
    """How many features to select."""
    free = n_features - n_forced
    if free == 0:
        raise ValueError(
            f"forced: all of the {n_features} feature(s) of X are forced, so there is none to "
            "select; force fewer."
        )
    if sparsity is None:
        return ceil(sqrt(free))
    if isinstance(sparsity, bool) or not isinstance(sparsity, int | np.integer):
        raise TypeError(f"sparsity: expected a whole number of features, got {sparsity!r}.")
    if sparsity < 1:
        raise ValueError(f"sparsity: expected at least 1 feature, got {sparsity}.")
    if sparsity > free:
        besides = f" besides the {n_forced} forced" if n_forced else ""
        raise ValueError(
            f"sparsity: cannot select {sparsity} features, X has only {free} feature(s){besides}; "
            f"ask for {free} or fewer."
        )
    return int(sparsity)


def check_sizes(sparsity: Any, n_features: int, n_forced: int) -> list[int]:
    """The sizes to choose from, ascending; one number stands for all up to it."""
    single = isinstance(sparsity, str | Iterator) or getattr(sparsity, "ndim", 1) == 0
    if isinstance(sparsity, Iterable) and not single:
        sizes = sorted({check_size(s, n_features, n_forced) for s in sparsity})
        if not sizes:
            raise ValueError("sparsity: expected at least one size, such as range(1, 11).")
        return sizes
    if sparsity is None:
        sparsity = max(min(LARGEST_DEFAULT, n_features - n_forced), 1)
    return list(range(1, check_size(sparsity, n_features, n_forced) + 1))


def encode_classes(y: NDArray[Any], weight: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, sorted, and for every row the position of its class among them."""
    classes, codes = np.unique(y, return_inverse=True)
    present = classes if weight is None else np.unique(y[weight > 0])
    if len(present) < 2:
        left = "" if len(classes) < 2 else " once rows of weight zero are left out"
        raise ValueError(
            f"y: has only one class, {present.tolist()[0]!r}{left}; a classifier needs rows of at "
            "least two classes."
        )
    if len(present) < len(classes):
        lost = np.setdiff1d(classes, present).tolist()[0]
        raise ValueError(f"y: all rows of class {lost!r} have weight zero; leave them out.")
    return classes, codes

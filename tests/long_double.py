"""Independent answers in long double: the least loss of every support, and random hard problems."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import helmert

L = np.longdouble
DISTINCT = L(1e-17)
"""Less than this part of a column, when others are taken out, is nothing."""
ROUNDED = L(4e-15)
"""The same where columns depend on others up to the rounding of the data."""

Options = dict[str, Any]


def orthonormal(A: np.ndarray, least: Any) -> np.ndarray:
    """Return orthonormal columns with the span of A, by Gram and Schmidt, thrice."""
    norms = np.sqrt((A * A).sum(axis=0))
    norms[norms == 0] = 1
    Q: list[np.ndarray] = []
    for column in (A / norms).T:
        v = column
        for _ in range(2):
            for q in Q:
                v = v - q * (q @ v)
        left = np.sqrt(v @ v)
        if left > least:
            v = v / left
            for q in Q:
                v = v - q * (q @ v)
            Q.append(v / np.sqrt(v @ v))
    return np.array(Q, dtype=L).reshape(len(Q), len(A)).T


def centred(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    for _ in range(2):
        A = A - (w @ A) / w.sum()
    return A


def squares(
    X: np.ndarray, y: np.ndarray, options: Options, least: Any
) -> tuple[dict[int, dict[tuple[int, ...], float]], float]:
    """Return the least squares loss of every support, by size, and that of the mean alone."""
    m, n = X.shape
    A, t = X.astype(L), y.astype(L)
    w = np.asarray(options.get("sample_weight", np.ones(m))).astype(L)
    if options["fit_intercept"]:
        A, t = centred(A, w), centred(t, w)
    A, t = A * np.sqrt(w)[:, None], t * np.sqrt(w)
    if options.get("ridge"):
        A = np.vstack([A, np.eye(n) * np.sqrt(L(options["ridge"]))])
        t = np.append(t, np.zeros(n, L))
    forced = list(options.get("forced", []))

    def loss(S: tuple[int, ...]) -> float:
        left = t
        Q = orthonormal(A[:, forced + list(S)], least)
        for _ in range(2):
            for q in Q.T:
                left = left - q * (q @ left)
        return float(left @ left) / 2

    return by_size(n, forced, loss), float(t @ t) / 2


def by_size(n: int, forced: list[int], loss: Any) -> dict[int, dict[tuple[int, ...], float]]:
    free = [j for j in range(n) if j not in forced]
    return {s: {S: loss(S) for S in combinations(free, s)} for s in range(1, len(free) + 1)}


def classes(
    X: np.ndarray, y: np.ndarray, n_classes: int, options: Options, least: Any
) -> tuple[dict[int, dict[tuple[int, ...], float]], float]:
    """Return the least log-loss of every support, by size, and that of even odds."""
    m, n = X.shape
    w = np.asarray(options.get("sample_weight", np.ones(m))).astype(L)
    A = X.astype(L)
    first = [np.ones((m, 1), L)] if options["fit_intercept"] else []
    if first:
        A = centred(A, w)
    Y, forced = np.eye(n_classes)[y.astype(int)].astype(L), list(options.get("forced", []))

    def loss(S: tuple[int, ...]) -> float:
        columns = np.column_stack([*first, A[:, forced + list(S)]])
        return newton(orthonormal(columns, least), Y, w)

    return by_size(n, forced, loss), float(w.sum()) * np.log(n_classes)


def newton(Q: np.ndarray, Y: np.ndarray, w: np.ndarray) -> float:
    """Minimise the log-loss over orthonormal columns; stop where it is as good as nothing."""
    B = helmert(Y.shape[1]).T.astype(L)
    V = np.zeros((Q.shape[1], B.shape[1]), L)

    def value(V: np.ndarray) -> tuple[float, np.ndarray]:
        eta = Q @ V @ B.T
        margins = np.minimum(eta - (eta * Y).sum(axis=1)[:, None], 11000)
        wrong = np.where(Y > 0, L(0), np.exp(margins)).sum(axis=1)
        return float((w * np.log1p(wrong)).sum()), eta

    (current, eta), null = value(V), float(w.sum())
    for step in range(80 if V.size else 0):
        p = np.exp(eta - eta.max(axis=1)[:, None])
        p /= p.sum(axis=1)[:, None]
        g = (Q.T @ ((p - Y) * w[:, None]) @ B).ravel()
        pB = p @ B
        second = np.einsum("kc,ca,cb->kab", p, B, B) - pB[:, :, None] * pB[:, None]
        H = np.einsum("k,ki,kab,kj->iajb", w, Q, second, Q).reshape(len(g), len(g))
        move = -solved(H, g)
        promised, length = -g @ move, L(1)
        while length > 1e-12:
            reached, moved = value(V + length * move.reshape(V.shape))
            if reached <= current - L(1e-4) * length * promised:
                break
            length /= 2
        else:
            break
        V, current, eta = V + length * move.reshape(V.shape), reached, moved
        if (promised < 1e-16 * null and step > 3) or current < 1e-9 * null:
            break
    return current


def solved(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return H⁻¹g by elimination, on the scale on which H has a unit diagonal."""
    scale = np.sqrt(np.maximum(H.diagonal(), L(1e-300)))
    H, g = H / scale / scale[:, None] + np.eye(len(g)) * L(1e-18), g / scale
    for k in range(len(g)):
        for i in range(k + 1, len(g)):
            c = H[i, k] / H[k, k]
            H[i, k:] -= c * H[k, k:]
            g[i] -= c * g[k]
    x = np.zeros(len(g), L)
    for k in reversed(range(len(g))):
        x[k] = (g[k] - H[k, k + 1 :] @ x[k + 1 :]) / H[k, k]
    return x / scale


def hard_squares(seed: int) -> tuple[np.ndarray, np.ndarray, Options, Any]:
    """Return least squares with offsets, near copies, forced features, weights and scales."""
    rng = np.random.default_rng([seed, 0])
    n, m = int(rng.integers(3, 9)), int(rng.integers(4, 41))
    kind = rng.choice(
        ["plain", "near", "near sum", "copy", "scales", "small signal", "levels", "offset"]
    )
    X, e = rng.standard_normal((m, n)), rng.standard_normal(m)
    noise = 10.0 ** rng.uniform(-8, 1) * rng.standard_normal(m)
    y = X @ (rng.standard_normal(n) * (rng.random(n) < 0.5)) + noise
    if kind in ("near", "near sum"):
        apart = 10.0 ** rng.uniform(-14, -3)
        X[:, 1] = X[:, 0] + (X[:, 2] if kind == "near sum" else 0) + apart * e
        y = y + rng.choice([0, apart, 1]) * rng.standard_normal() * e
    elif kind == "copy":
        X[:, 1] = X[:, 0] * rng.choice([1, -1, 2])
    elif kind == "scales":
        X = X * 10.0 ** rng.uniform(-8, 8, n)
    elif kind == "small signal":
        y = X[:, 0] + 10.0 ** rng.uniform(-8, -3) * X[:, 1] + 10.0 ** rng.uniform(-12, -6) * e
    elif kind == "levels":
        X[:, :3] = np.eye(3)[rng.integers(0, 3, m)]
    elif kind == "offset":
        X = X + 10.0 ** rng.uniform(0, 9) * rng.standard_normal(n)
    if rng.random() < 0.4:
        y = y + 10.0 ** rng.uniform(3, 12) * rng.standard_normal()
    options: Options = {"fit_intercept": bool(rng.random() < 0.6)}
    if rng.random() < 0.3:
        options["sample_weight"] = rng.uniform(0.1, 3, m)
    if rng.random() < 0.3:
        options["forced"] = [int(rng.integers(n))]
        if rng.random() < 0.5:
            y = y + 10.0 ** rng.uniform(3, 8) * X[:, options["forced"][0]]
    if rng.random() < 0.2:
        options["ridge"] = 10.0 ** rng.uniform(-12, 0)
    return X, y, options, ROUNDED if kind in ("copy", "levels") else DISTINCT


def hard_classes(seed: int) -> tuple[np.ndarray, np.ndarray, int, Options, Any]:
    """Return a classification problem with near copies, some of which separate the classes."""
    rng = np.random.default_rng([seed, 1])
    n_classes = 2 if rng.random() < 0.7 else 3
    n, m = int(rng.integers(3, 6)), int(rng.integers(15, 41))
    kind = rng.choice(["near", "near", "near sum", "copy", "plain", "offset", "levels", "scales"])
    X, e = rng.standard_normal((m, n)), rng.standard_normal(m)
    apart = 10.0 ** rng.uniform(-14, -3)
    if kind in ("near", "near sum"):
        X[:, 1] = X[:, 0] + (X[:, 2] if kind == "near sum" else 0) + apart * e
    elif kind == "copy":
        X[:, 1] = X[:, 0] * rng.choice([1, -1, 2])
    elif kind == "offset":
        X = X + 10.0 ** rng.uniform(0, 6)
    elif kind == "levels":
        X[:, :3] = np.eye(3)[rng.integers(0, 3, m)]
    elif kind == "scales":
        X = X * 10.0 ** rng.uniform(-6, 6, n)
    signal, strength = e if rng.random() < 0.5 else X[:, -1] / np.abs(X[:, -1]).max(), 10.0
    clear = rng.random() < 0.3
    target = strength * signal + (0.0 if clear else rng.uniform(1, 10)) * rng.standard_normal(m)
    target = target.argsort().argsort()  # ranks, so that no class is without rows
    cuts = np.quantile(target, np.arange(1, n_classes) / n_classes)
    options: Options = {"fit_intercept": bool(rng.random() < 0.5)}
    if rng.random() < 0.3:
        options["sample_weight"] = rng.uniform(0.2, 2, m)
    if rng.random() < 0.25:
        options["forced"] = [int(rng.integers(n))]
    least = ROUNDED if kind in ("copy", "levels") else DISTINCT
    return X, np.digitize(target, cuts), n_classes, options, least

"""Reference fits on a given support, in float64: least squares by QR, classes by Newton."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit, logsumexp


def columns(X: Any, S: np.ndarray) -> np.ndarray:
    """The columns S of X, dense and float64."""
    A = X[:, S]
    return A.toarray() if sparse.issparse(A) else np.array(A, dtype=float)


def least_squares(A: np.ndarray, y: np.ndarray) -> float:
    """½ min ‖y − A b‖² for centred A and y; a rank-deficient A is fine."""
    if A.shape[1] == 0:
        return 0.5 * float(y @ y)
    b = linalg.lstsq(A, y, lapack_driver="gelsy", check_finite=False)[0]
    r = y - A @ b
    return 0.5 * float(r @ r)


class LogisticFit(NamedTuple):
    loss: float
    coef: np.ndarray  # on the standardised columns, intercept last
    probability: np.ndarray


def logistic_loss(t: np.ndarray, y: np.ndarray) -> float:
    return float(np.logaddexp(0.0, t).sum() - t @ y)


def logistic(
    A: np.ndarray, y: np.ndarray, start: np.ndarray | None = None, max_iter: int = 100
) -> LogisticFit:
    """min Σ log(1 + eᵗ) − y t over t = A b + a, y in {0, 1}, by damped Newton steps.

    On separable data there is no minimiser: the loss is driven below 1e-9 per row and returned.
    """
    m = len(y)
    Z = _standardised(A)
    b = np.zeros(Z.shape[1])
    if start is not None:
        b[:] = start
    else:
        rate = y.mean()
        b[-1] = np.log(rate / (1 - rate))
    t = Z @ b
    loss = logistic_loss(t, y)
    for _ in range(max_iter):
        p = expit(t)
        g = Z.T @ (p - y)
        H = Z.T @ ((p * (1 - p))[:, None] * Z)
        d = -linalg.lstsq(H, g, check_finite=False)[0]
        decrement = float(-(g @ d))
        if decrement <= 1e-11 * loss or loss <= 1e-9 * m:
            break
        move, step = Z @ d, 1.0
        while step > 1e-10:
            new = logistic_loss(t + step * move, y)
            if new <= loss - 1e-4 * step * decrement:
                break
            step /= 2
        else:
            break
        b, t, loss = b + step * d, t + step * move, new
    return LogisticFit(loss, b, expit(t))


class SoftmaxFit(NamedTuple):
    loss: float
    coef: np.ndarray  # on the standardised columns, intercept last; the last class has zeros


def multinomial(A: np.ndarray, y: np.ndarray, max_iter: int = 200) -> SoftmaxFit:
    """Minimise Σ log Σ_c exp(t_c) − t_y over t = A B + a, y in 0 … C−1, by damped Newton steps.

    Separable data have no minimiser: the loss is driven below 1e-9 per row and returned.
    """
    m, Z = len(y), _standardised(A)
    Y = y[:, None] == np.unique(y)
    B = np.zeros((Z.shape[1], Y.shape[1] - 1))
    loss = _softmax_loss(Z @ B, Y)
    for _ in range(max_iter):
        T = np.column_stack([Z @ B, np.zeros(m)])
        P = np.exp(T - logsumexp(T, axis=1, keepdims=True))[:, :-1]
        G = Z.T @ (P - Y[:, :-1])
        W = P[:, :, None] * (np.eye(P.shape[1]) - P[:, None, :])
        H = np.einsum("ia,ijk,ib->ajbk", Z, W, Z, optimize=True).reshape(G.size, G.size)
        D = -linalg.lstsq(H, G.ravel(), check_finite=False)[0].reshape(G.shape)
        decrement = float(-np.sum(G * D))
        if decrement <= 1e-11 * loss or loss <= 1e-9 * m:
            break
        step = 1.0
        while step > 1e-10:
            new = _softmax_loss(Z @ (B + step * D), Y)
            if new <= loss - 1e-4 * step * decrement:
                break
            step /= 2
        else:
            break
        B, loss = B + step * D, new
    return SoftmaxFit(loss, B)


def _softmax_loss(T: np.ndarray, Y: np.ndarray) -> float:
    T = np.column_stack([T, np.zeros(len(T))])
    return float((logsumexp(T, axis=1) - T[Y]).sum())


def _standardised(A: np.ndarray) -> np.ndarray:
    """Return the columns of A, centred and scaled to variance one, and a column of ones."""
    Z = np.column_stack([A, np.ones(len(A))])
    Z[:, :-1] -= A.mean(axis=0)
    scale = np.sqrt(np.einsum("ij,ij->j", Z, Z) / len(A))
    return Z / np.where(scale > 0, scale, 1.0)


def raw_coefficients(A: np.ndarray, fit: LogisticFit) -> np.ndarray:
    """The fit's coefficients on the columns of A themselves, intercept last."""
    mean, spread = A.mean(axis=0), A.std(axis=0)
    b = fit.coef[:-1] / np.where(spread > 0, spread, 1.0)
    return np.append(b, fit.coef[-1] - mean @ b)

"""The quadratic model of a generalised linear model around a point."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from ellzero.core import Iterate
from ellzero.objectives.design import SHARED_FROM
from ellzero.objectives.gram import DenseGram, Gram, gram_inverse
from ellzero.objectives.products import weighted_square
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import NONE, Matrix, Vector

if TYPE_CHECKING:
    from ellzero.objectives.glm import GeneralizedLinear

LARGEST_LOCAL_GRAM = 500
"""With more features, only those rows of a local model's Gram matrix are made that are used."""

LARGEST_SPARSE_LOCAL_GRAM = 128
"""The same for sparse data, of which a few columns are handled faster than all."""


SINGLE_FROM = SHARED_FROM
"""Numbers in X; with fewer, a model is made in double precision."""

OWN = 1e-3
"""Single precision does where at least this part of every column is its own ..."""

SMALLEST = 1e-30
"""... and its rows have weight enough: smaller squares have lost digits, or are gone."""


class CurvedGram(NamedTuple):
    gram: Gram
    own: Matrix  # NᵀDN, for the columns N of the intercept and the forced features
    cross: Matrix  # NᵀDX


class LocalModel(Quadratic):
    """A quadratic model that also predicts the intercept and the forced coefficients."""

    centre: Iterate
    slope: Matrix

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        x = super().minimize(support)
        there = self.slope[:, x.support] @ x.coef
        here = self.slope[:, self.centre.support] @ self.centre.coef
        assert self.centre.nuisance is not None
        return replace(x, nuisance=self.centre.nuisance + there - here)


def single_gram(f: GeneralizedLinear, D: Vector, own: Matrix, cross: Matrix) -> DenseGram | None:
    """The Gram matrix of large dense data, with weights D and after profiling, by products in
    single precision, which take half the time; None where these would not tell columns apart."""
    if f.is_sparse or f.design.X.size < SINGLE_FROM or not f._clear_in_single:
        return None
    top = D.max()
    G = weighted_square(f.design.single, D / top, f.threads)
    zero = G.diagonal() < SMALLEST
    if f.design.X[:, zero].any():
        return None
    G *= top
    raw = G.diagonal().copy()
    G -= cross.T @ gram_inverse(own + np.diag(f._penalty(NONE))) @ cross
    zero[list(f.forced)] = True
    if (G.diagonal() < OWN * raw)[~zero].any():
        return None
    gram = DenseGram(G, zero)
    if not clearly_independent(gram):
        return None
    gram.scale = gram.scale * f.scale  # back to the units of X
    return gram


def clear_in_single(f: GeneralizedLinear) -> bool:
    """May single precision do for models of f? Where columns are dependent it never does."""
    G = weighted_square(f.design.single, np.ones(f.design.shape[0]), f.threads)
    return clearly_independent(DenseGram(G))


def clearly_independent(gram: DenseGram) -> bool:
    """Is at least `OWN` of every column its own?"""
    factor, info = lapack.dpotrf(gram.matrix + np.diag(gram.diagonal == 0), lower=1)
    return info == 0 and bool((factor.diagonal() ** 2 >= OWN).all())


def local_model(f: GeneralizedLinear, x: Iterate) -> LocalModel:
    """f(x) + ∇f·(z − x) + ½ (z − x)ᵀ H (z − x), with H the Hessian after profiling."""
    largest = LARGEST_SPARSE_LOCAL_GRAM if f.is_sparse else LARGEST_LOCAL_GRAM
    gram, own, cross = f._curved_gram(x, largest)
    S = x.support
    scaled = x.coef * gram.scale[S]
    Hx = gram.combined(S, scaled[None])[0] * gram.scale
    g = f.gradient(x)
    g[S] -= f.ridge[S] * x.coef
    b = Hx - g
    constant = x.value - 0.5 * f.ridge[S] @ x.coef**2 - g[S] @ x.coef + 0.5 * Hx[S] @ x.coef
    ridge = f.ridge + _stiffness(f, x, g, gram) if f.is_sparse else f.ridge
    model = LocalModel(gram, b, float(constant), ridge)
    model.forced = f.forced
    model.centre = x
    model.slope = -gram_inverse(own + np.diag(f._penalty(S[:0]))) @ cross * f.scale
    return model


def _stiffness(f: GeneralizedLinear, x: Iterate, g: Vector, gram: Gram) -> Vector:
    """A ridge that keeps what the model promises of a feature to what its rows can give.

    Sparse features may have few rows, and these be far from where the second derivatives hold:
    a row whose class has probability p promises (1 − p)/2p, and gives −log p.
    """
    if f.floor != 0:
        return np.zeros(f.n_features)
    gives = f._agreeing_losses(x, g)
    wanted = np.divide(g * g, 2 * gives, out=np.zeros_like(g), where=gives > 0)
    extra = np.maximum(wanted - gram.scale**2 - f.ridge, 0.0)
    extra[x.support] = 0.0
    return extra

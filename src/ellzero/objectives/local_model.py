"""The quadratic model of a generalised linear model around a point."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellzero.core import Iterate
from ellzero.objectives.gram import Gram, gram_inverse
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Matrix, Vector

if TYPE_CHECKING:
    from ellzero.objectives.glm import GeneralizedLinear

LARGEST_LOCAL_GRAM = 500
"""With more features, only those rows of a local model's Gram matrix are made that are used."""

LARGEST_SPARSE_LOCAL_GRAM = 128
"""The same for sparse data, of which a few columns are handled faster than all."""


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

"""Quadratics of a generalised linear model: models around a point, and bounds on the curvature."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.core import Features, Iterate
from ellzero.objectives.moments import Moments
from ellzero.objectives.moments.held import (
    inverse_gram,
    penalty_on,
    profiled_out,
    unit_moments,
    unit_of,
)
from ellzero.objectives.moments.on_demand import OnDemandMoments
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import NONE, Mask, Matrix, Support, Vector

if TYPE_CHECKING:
    from ellzero.objectives.glm.glm import GLM

LARGEST_MODEL = 500
"""Features up to which a model holds its whole matrix. Of more, rows are made on demand."""

LARGEST_SPARSE_MODEL = 128
"""The same for sparse data, of which a few columns are handled faster than all."""

MOST_COORDINATES = 1000
"""Coordinates in a model of several outputs: those of the features that promise most."""


class LocalModel(Quadratic):
    """A quadratic model around `centre` that also predicts intercept and forced coefficients."""

    centre: Iterate
    known: Support
    """The coordinates that the model knows. The others promise nothing."""
    follow: Matrix
    """How intercept and forced coefficients fall where the known coordinates rise."""

    def minimize(self, S: ArrayLike, start: Iterate | None = None, below: float = inf) -> Iterate:
        x = super().minimize(S)
        assert self.centre.nuisance is not None
        moved = self.follow @ (x.x - self.centre.x)[self.known]
        return replace(x, nuisance=self.centre.nuisance - moved)


class KnownMoments:
    """Moments of which only the coordinates `known` are held. The others are columns of zeros."""

    def __init__(self, moments: Moments, known: Support, n: int):
        self.known, self.held = known, moments
        self.place = np.full(n, -1)
        self.place[known] = np.arange(len(known))
        self.diagonal, self.target = np.zeros(n), np.zeros(n)
        self.diagonal[known], self.target[known] = moments.diagonal, moments.target
        self.constant = moments.constant

    def block(self, S: Support, T: Support) -> NDArray[np.float64]:
        s, t = self.place[S], self.place[T]
        known = (s >= 0)[..., :, None] & (t >= 0)[..., None, :]
        return np.where(known, self.held.block(np.maximum(s, 0), np.maximum(t, 0)), 0.0)

    def products(self, S: Support, A: Matrix) -> Matrix:
        known = self.place[S] >= 0
        found = np.zeros((len(A), len(self.place)))
        found[:, self.known] = self.held.products(self.place[S[known]], A[:, known])
        return found

    def factor(self) -> None:
        return None


def local_model(f: GLM, x: Iterate) -> LocalModel:
    """Return f(x) + ∇f·(z − x) + ½ (z − x)ᵀH(z − x), with H the Hessian after profiling.

    x has the intercept and the forced coefficients that go with it.
    """
    slopes = f.rows.slopes(f.linear(x))
    largest = LARGEST_SPARSE_MODEL if f.rows.is_sparse else LARGEST_MODEL
    if f.family.n_outputs > 1:
        model = _model_of_known(f, x, slopes, _promising(f, x.support, slopes))
    elif len(f.features) <= largest:
        model = _model_of_known(f, x, slopes, None)
    else:
        model = _model_on_demand(f, x, slopes)
    model.centre, model.resolution = x, f.resolution
    return model


def _model_of_known(f: GLM, x: Iterate, slopes: Matrix, T: Support | None) -> LocalModel:
    """Make a model that holds the matrix of the features T, by default of all."""
    K, q, n = f.family.n_outputs, f.n_nuisance, f.features.n_coordinates
    whole = f.rows.gram(f.linear(x), T)
    known = np.arange(n) if T is None else f.features.coordinates(T)
    H, follow = profiled(whole, q * K, f.penalty(NONE), ~f.features.free[known // K])
    z, g = (x.x * f.scale_of_coordinates)[known], slopes.ravel()[known]
    Hz = H @ z
    moments, own, unit = unit_moments(H, Hz - g, _constant(f, x, g, z, Hz))
    scale = np.ones(n)
    scale[known] = own
    held = moments if T is None else KnownMoments(moments, known, n)
    ridge = f.ridge + _stiffness(f, x, slopes, scale)
    model = _new_model(held, f.features, scale * f.scale_of_coordinates, unit, ridge)
    model.known, model.follow = known, follow * f.scale_of_coordinates[known]
    return model


def _model_on_demand(f: GLM, x: Iterate, slopes: Matrix) -> LocalModel:
    """Make a model of one output whose rows are made when they are asked for."""
    ridge = penalty_on(f.ridge, f.scale)
    columns, own, cross = f.rows.columns(f.linear(x), ridge)
    moments = OnDemandMoments(columns, np.zeros(len(ridge)), 0.0)
    scale, S = columns.scale, x.support
    z, g = x.coef * f.scale[S], slopes[:, 0]
    Hz = moments.products(S, (z * scale[S])[None])[0] * scale
    constant = _constant(f, x, g[S], z, Hz[S])
    c = (Hz - g) / scale * columns.diagonal
    unit = unit_of(c, constant)
    moments.target, moments.constant = c / unit, constant / unit**2
    ridge = f.ridge + _stiffness(f, x, slopes, scale)
    model = _new_model(moments, f.features, scale * f.scale, unit, ridge)
    model.known = np.arange(len(scale))
    model.follow = inverse_gram(own + np.diag(f.penalty(NONE))) @ cross * f.scale
    return model


def _new_model(
    moments: Moments, features: Features, scale: Vector, unit: float, ridge: Vector
) -> LocalModel:
    model = LocalModel.__new__(LocalModel)
    model.hold(moments, features, scale, unit, ridge)
    return model


def _constant(f: GLM, x: Iterate, g: Vector, z: Vector, Hz: Vector) -> float:
    """Return the model's value at zero without the ridge."""
    own = 0.5 * float(f.features.per_coordinate(f.ridge[x.support], x.support) @ x.coef**2)
    return float(x.value - own - g @ z + 0.5 * z @ Hz)


def profiled(whole: Matrix, q: int, penalty: Vector, gone: Mask) -> tuple[Matrix, Matrix]:
    """Take the first q coordinates out of a Hessian, and set the coordinates `gone` to zero.

    Also return how the first q follow the others (see `Profiled`).
    """
    each = np.repeat(penalty, q // max(len(penalty), 1))
    found = profiled_out(np.pad(whole, ((0, 1), (0, 1))), np.arange(q), each)
    H = found.M[q:-1, q:-1]
    H[gone] = H[:, gone] = 0.0
    return H, found.follow[:, q:-1]


def _promising(f: GLM, S: Support, slopes: Matrix) -> Support | None:
    """Return S and the features with the largest slopes; None if there is room for all."""
    room = max(MOST_COORDINATES // f.family.n_outputs, 2 * len(S), 2)
    if room >= len(f.features):
        return None
    scores = np.linalg.norm(slopes, axis=1)
    scores[S] = inf
    free = f.features.choosable
    return np.sort(free[np.argsort(-scores[free], kind="stable")[:room]])


def _stiffness(f: GLM, x: Iterate, slopes: Matrix, scale: Vector) -> Vector:
    """Return a ridge that keeps what the model promises of a feature to what its rows can give.

    Sparse features may have few rows, and these may be far from where the second derivatives hold:
    a row whose class has probability p promises (1 − p)/2p, and gives −log p.
    """
    if not f.rows.is_sparse or f.family.n_outputs > 1:
        return np.zeros(len(f.features))
    g = slopes[:, 0]
    gives = f.rows.agreeing(f.linear(x), g)
    wanted = np.divide(g * g, 2 * gives, out=np.zeros_like(g), where=gives > 0)
    extra = np.maximum((wanted - scale**2) * f.scale**2 - f.ridge, 0.0)
    extra[x.support] = 0.0
    return extra


def bound_of(f: GLM, gram: Matrix) -> Quadratic:
    """Return ½ xᵀHx plus the ridge, with H made of a Gram matrix for one output.

    Where second derivatives are bounded by those of the Gram matrix, H bounds the curvature of f
    for every output.
    """
    H = profiled(gram, f.n_nuisance, f.penalty(NONE), ~f.features.free)[0]
    moments, scale, unit = unit_moments(H, np.zeros(len(H)), 0.0)
    single = Features(len(H), f.features.forced)
    return Quadratic.of(moments, single, scale * f.scale, unit, f.ridge)


def bound_on_demand(f: GLM) -> Quadratic:
    """Return such a quadratic for the curvature of the family, whose rows are made on demand."""
    single = Features(len(f.scale), f.features.forced)
    columns = f.rows.columns(None, penalty_on(f.ridge, f.scale))[0]
    moments = OnDemandMoments(columns, np.zeros(len(f.scale)), 0.0)
    return Quadratic.of(moments, single, columns.scale * f.scale, ridge=f.ridge)

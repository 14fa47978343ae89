"""Objectives a user brings: plain callables, or one JAX function."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize as scipy_minimize

from ellzero.checks import check_number
from ellzero.core import Features, Iterate, Model, Objective, Point, as_features
from ellzero.objectives.glm.newton import newton, newton_step
from ellzero.objectives.moments.held import unit_moments
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Matrix, Support, Vector

if TYPE_CHECKING:
    from typing import Self

ATTAINED_STEP = 1e-2
"""At a minimiser, Newton's next step changes no coefficient by more than this part of it."""

ATTAINED_SLOPE = 1e-5
"""Without a Hessian: where no slope is larger than this part of the largest at zero."""


class Custom(Objective):
    """A differentiable convex f given by its value and gradient, perhaps its Hessian."""

    def __init__(
        self,
        value: Callable[[Vector], float],
        gradient: Callable[[Vector], Vector],
        n_features: int,
        hessian: Callable[[Vector], Matrix] | None,
        smoothness: float | None,
    ):
        self.features = Features(n_features)
        self.ridge = np.zeros(n_features)
        self._functions = value, gradient, hessian
        self._smoothness = inf if smoothness is None else smoothness
        zero = np.zeros(n_features)
        slope = float(np.abs(self._call_gradient(zero)).max())
        self._size_at_zero = max(abs(self._call_value(zero)), slope) or 1.0
        self.resolution = (1e-12 if hessian else 1e-9) * self._size_at_zero

    # the contract

    def at(self, x: Point) -> Iterate:
        x = self.point(x)
        return replace(x, value=self._value(x.support, x.coef))

    def gradient(self, x: Point) -> Vector:
        full = self.point(x).x
        return self._call_gradient(full) + self.ridge * full

    def minimize(self, S: ArrayLike, start: Iterate | None = None, below: float = inf) -> Iterate:
        S = as_features(S)
        u = np.zeros(len(S)) if start is None else start.x[S]
        if self._functions[2] is not None:
            found = newton(
                lambda u: (self._value(S, u), partial(self._derivatives, S, u)),
                u,
                1e-12 * self._size_at_zero,
                below,
            )
            return Iterate(self.features, S, found.u, found.value)
        if not len(S):
            return Iterate(self.features, S, u, self._value(S, u))
        best = scipy_minimize(
            lambda u: self._value(S, u),
            u,
            jac=lambda u: self._restricted_gradient(S, u),
            method="BFGS",
            options={"gtol": 1e-9 * self._size_at_zero, "maxiter": 200 * len(S) + 1000},
        )
        return Iterate(self.features, S, best.x, float(best.fun))

    def ridged(self, d: ArrayLike) -> Self:
        other = copy.copy(self)
        other.ridge = self.ridge + np.asarray(d, dtype=float)
        return other

    def smoothness(self, k: int) -> float:
        return self._smoothness + float(self.ridge.max(initial=0.0))

    def quadratic(self, x: Iterate) -> Quadratic | None:
        if self._functions[2] is None:
            return None
        full = x.x
        H, g = self._call_hessian(full), self._call_gradient(full)
        constant = self._call_value(full) - g @ full + 0.5 * full @ H @ full
        moments, scale, unit = unit_moments(H, H @ full - g, float(constant))
        model = Quadratic.of(moments, self.features, scale, unit, self.ridge)
        model.resolution = self.resolution
        return model

    def refit(self, x: Iterate) -> Model:
        """Return the model, and check that f has a minimiser over its features."""
        x = self.at(x)
        return Model(x.support, x.coef, 0.0, x.value, self._is_attained(x))

    # what proofs ask (see `Certifiable`)

    def rounding(self, x: Iterate) -> float:
        """Bound what the gradient leaves to gain at a minimiser; inf where none is attained."""
        if not x.minimizer or not len(x.support):
            return self.resolution
        slope = np.abs(self._restricted_gradient(x.support, x.coef))
        left = float(slope @ (1 + 2 * np.abs(x.coef)))
        return self.resolution + left if self._is_attained(x) else inf

    def _is_attained(self, x: Iterate) -> bool:
        """Say whether x is as good as a minimiser, if it is meant to be one."""
        S, u = x.support, x.coef
        if not x.minimizer or not len(S):
            return True
        g = self._restricted_gradient(S, u)
        if self._functions[2] is None:
            return bool(np.abs(g).max() <= ATTAINED_SLOPE * self._size_at_zero)
        step, _ = newton_step(*self._derivatives(S, u))
        return bool(np.abs(step).max() <= ATTAINED_STEP * (1 + np.abs(u).max()))

    # calls of the user's functions

    def _full(self, S: Support, coef: Vector) -> Vector:
        x = np.zeros(len(self.features))
        x[S] = coef
        return x

    def _value(self, S: Support, u: Vector) -> float:
        return self._call_value(self._full(S, u)) + 0.5 * float(self.ridge[S] @ u**2)

    def _restricted_gradient(self, S: Support, u: Vector) -> Vector:
        return self._call_gradient(self._full(S, u))[S] + self.ridge[S] * u

    def _derivatives(self, S: Support, u: Vector) -> tuple[Vector, Matrix]:
        H = self._call_hessian(self._full(S, u))[np.ix_(S, S)] + np.diag(self.ridge[S])
        return self._restricted_gradient(S, u), H

    def _call_value(self, x: Vector) -> float:
        return float(_checked("value", self._functions[0](x), ()))

    def _call_gradient(self, x: Vector) -> Vector:
        return _checked("gradient", self._functions[1](x), (len(self.features),))

    def _call_hessian(self, x: Vector) -> Matrix:
        assert self._functions[2] is not None
        n = len(self.features)
        H = _checked("hessian", self._functions[2](x), (n, n))
        if np.abs(H - H.T).max() > 1e-3 * np.abs(H).max():
            raise ValueError("hessian: the callable returned a matrix that is not symmetric.")
        return (H + H.T) / 2


def _checked(name: str, result: Any, shape: tuple[int, ...]) -> Any:
    try:
        array = np.asarray(result, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: the callable must return numbers, got {result!r}.") from None
    if array.shape != shape:
        wanted = f"shape {shape}" if shape else "one number"
        raise ValueError(f"{name}: the callable must return {wanted}, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: the callable returned NaN or infinity; f must be finite on Rⁿ.")
    return array


def from_callables(
    value: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    n_features: int,
    *,
    hessian: Callable[[Vector], Matrix] | None = None,
    smoothness: float | None = None,
) -> Objective:
    """Make an objective of any differentiable convex f.

    Parameters
    ----------
    value, gradient : callable
        Functions of an array of `n_features` coefficients.
    n_features : int
    hessian : callable, optional
        The matrix of second derivatives. It makes restricted minimisers exact and fast.
    smoothness : float, optional
        An upper bound on the curvature of f, where you know one. `iht` takes its step and `arht`
        its ρ from it.

    Returns
    -------
    Objective

    Examples
    --------
    >>> import numpy as np
    >>> from ellzero import from_callables, omp
    >>> t = np.array([3.0, -1.0, 0.5])
    >>> f = from_callables(lambda x: np.sum((x - t) ** 4), lambda x: 4 * (x - t) ** 3, 3)
    >>> omp(f, 2).support
    array([0, 1])
    """
    for name, function in (("value", value), ("gradient", gradient), ("hessian", hessian)):
        if not callable(function) and not (name == "hessian" and function is None):
            raise TypeError(f"{name}: expected a function of x, got {function!r}.")
    if not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ValueError(f"n_features: expected a positive whole number, got {n_features!r}.")
    if smoothness is not None:
        check_number("smoothness", smoothness, above=0)
    return Custom(value, gradient, int(n_features), hessian, smoothness)


def from_jax(
    fn: Callable[[Any], Any], n_features: int, *, smoothness: float | None = None
) -> Objective:
    """Make an objective of one JAX function of x. Its gradient and Hessian are derived, in float64.

    Parameters
    ----------
    fn : callable
        A convex function of an array of `n_features` coefficients, written with `jax.numpy`.
    n_features : int
    smoothness : float, optional
        As for `from_callables`.

    Notes
    -----
    Needs the extra ``jax``: ``pip install 'ellzero[jax]'``.
    """
    try:
        import jax
    except ImportError as error:
        raise ImportError("from_jax needs JAX: pip install 'ellzero[jax]'") from error

    def in_float64(transformed: Any) -> Callable[[Vector], Any]:
        compiled = jax.jit(transformed)

        def call(x: Vector) -> Any:
            with jax.enable_x64(True):
                return np.asarray(compiled(x))

        return call

    return from_callables(
        in_float64(fn),
        in_float64(jax.grad(fn)),
        n_features,
        hessian=in_float64(jax.hessian(fn)),
        smoothness=smoothness,
    )

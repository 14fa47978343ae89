"""Objectives a user brings: plain callables, or one JAX function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize as scipy_minimize

from ellzero.checks import check_number
from ellzero.core import Iterate, Model, Objective
from ellzero.objectives.gram import DenseGram
from ellzero.objectives.newton import newton, newton_step
from ellzero.objectives.quadratic import Quadratic
from ellzero.supports import Matrix, Support, Vector


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
        self.n_features = n_features
        self.ridge = np.zeros(n_features)
        self._functions = value, gradient, hessian
        self._smoothness = smoothness
        zero = np.zeros(n_features)
        self._scale = max(
            abs(self._call_value(zero)), float(np.abs(self._call_gradient(zero)).max())
        )
        self._scale = self._scale or 1.0
        self.resolution = (1e-12 if hessian else 1e-9) * self._scale

    # the contract

    def _value(self, S: Support, coef: Vector) -> float:
        return self._call_value(self._full(S, coef)) + 0.5 * float(self.ridge[S] @ coef**2)

    def _gradient(self, point: Iterate) -> Vector:
        x = point.x
        return self._call_gradient(x) + self.ridge * x

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        start = np.zeros(self.n_features) if x0 is None else x0.x
        u = start[S]
        if self._functions[2] is not None:
            best = newton(
                lambda u: self._value(S, u),
                lambda u: self._restricted_gradient(S, u),
                lambda u: self._restricted_hessian(S, u),
                u,
                1e-12 * self._scale,
            )
            u, value = best.u, best.value
        elif len(S):
            found = scipy_minimize(
                lambda u: self._value(S, u),
                u,
                jac=lambda u: self._restricted_gradient(S, u),
                method="BFGS",
                options={"gtol": 1e-9 * self._scale, "maxiter": 200 * len(S) + 1000},
            )
            u, value = found.x, float(found.fun)
        else:
            value = self._value(S, u)
        return Iterate(S, u, value, self.n_features)

    def smoothness(self, k: int) -> float:
        if self._smoothness is None:
            raise ValueError(
                "smoothness: unknown for this objective; give from_callables(..., smoothness=L) "
                "with an upper bound on its curvature, or pass iht's step or arht's rho yourself."
            )
        return self._smoothness + float(self.ridge.max(initial=0.0))

    def quadratic_model(self, x: Iterate) -> Quadratic | None:
        if self._functions[2] is None:
            return None
        full = x.x
        H = self._call_hessian(full)
        g = self._call_gradient(full)
        b = H @ full - g
        constant = self._call_value(full) - g @ full + 0.5 * full @ H @ full
        return Quadratic(DenseGram(H), b, float(constant), self.ridge)

    def complete(self, x: Iterate) -> Model:
        """With a check that there is a minimiser: Newton's last step, or the gradient, is small."""
        return Model(x.support, x.coef, 0.0, self._value(x.support, x.coef), self._attained(x))

    def rounding(self, x: Iterate) -> float:
        """Also what the gradient that is left may gain; anything where there is no minimiser."""
        if not x.minimizer or not len(x.support):
            return self.resolution
        slope = np.abs(self._restricted_gradient(x.support, x.coef))
        left = float(slope @ (1 + 2 * np.abs(x.coef)))
        return self.resolution + left if self._attained(x) else np.inf

    def _attained(self, x: Iterate) -> bool:
        """Is x as good as a minimiser, if it is meant to be one?"""
        S, u = x.support, x.coef
        if not x.minimizer or not len(S):
            return True
        g = self._restricted_gradient(S, u)
        if self._functions[2] is None:
            return bool(np.abs(g).max() <= 1e-5 * self._scale)
        step = newton_step(g, self._restricted_hessian(S, u))
        return bool(np.abs(step).max() <= 1e-2 * (1 + np.abs(u).max()))

    # inside

    def _full(self, S: Support, coef: Vector) -> Vector:
        x = np.zeros(self.n_features)
        x[S] = coef
        return x

    def _restricted_gradient(self, S: Support, u: Vector) -> Vector:
        return self._call_gradient(self._full(S, u))[S] + self.ridge[S] * u

    def _restricted_hessian(self, S: Support, u: Vector) -> Matrix:
        return self._call_hessian(self._full(S, u))[np.ix_(S, S)] + np.diag(self.ridge[S])

    def _call_value(self, x: Vector) -> float:
        return float(_checked("value", self._functions[0](x), ()))

    def _call_gradient(self, x: Vector) -> Vector:
        return _checked("gradient", self._functions[1](x), (self.n_features,))

    def _call_hessian(self, x: Vector) -> Matrix:
        assert self._functions[2] is not None
        n = self.n_features
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
    """An objective from any differentiable convex f.

    Parameters
    ----------
    value, gradient : functions of a vector of `n_features` coefficients
    hessian : the matrix of second derivatives; makes restricted minimisers exact and fast
    smoothness : an upper bound on the curvature of f, where you know one; `iht` takes its step
        and `arht` its ρ from it

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
    """An objective from one JAX function of x; gradient and Hessian are derived, in float64.

    Needs the extra ``jax``: ``pip install ellzero[jax]``.
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

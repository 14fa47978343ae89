"""A quadratic of rows: every feature owns several coefficients, which enter and leave together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.core import Iterate, Objective
from ellzero.linalg import DEPENDENT
from ellzero.objectives.gram import gram_inverse, scaled_ridge
from ellzero.objectives.newton import stable_inverse
from ellzero.supports import Matrix, Support, Vector


class GroupQuadratic(Objective):
    """½ zᵀHz − bᵀz + constant + ½ Σ ridge_j ‖x_j‖², where z_j = scale_j · x_j · basis.

    The columns of `basis` are orthonormal; what of a row is outside their span only meets the
    ridge. H and b are known for the features `known`, and no others can enter.
    """

    def __init__(
        self,
        H: Matrix,
        b: Vector,
        constant: float,
        ridge: Vector,
        *,
        known: Support,
        scale: Vector,
        basis: Matrix,
    ):
        self.H, self.b, self.constant = H, b, constant
        self.ridge, self.scale, self.basis = ridge, scale, basis
        self.known = known
        self.n_features, self.per_feature = len(scale), (len(basis),)
        self.width = basis.shape[1]
        self._position = np.full(len(scale), -1)
        self._position[known] = np.arange(len(known))
        self.resolution = 1e-12 * abs(constant)
        self._inverses: tuple[Vector, dict[bytes, Matrix]] = ridge, {}

    def outside(self, S: Support) -> NDArray[np.bool_]:
        return super().outside(S) & (self._position >= 0)

    # the contract

    def _value(self, S: Support, coef: NDArray[np.float64]) -> float:
        at, z = self._unknowns(S), self._reduced(S, coef)
        smooth = 0.5 * z @ self.H[np.ix_(at, at)] @ z - self.b[at] @ z + self.constant
        return float(smooth + 0.5 * self.ridge[S] @ (coef**2).sum(axis=1))

    def _gradient(self, point: Iterate) -> NDArray[np.float64]:
        S = point.support
        g = np.zeros(self.shape)
        slopes = self._reduced(S, point.coef) @ self.H[self._unknowns(S)] - self.b
        g[self.known] = slopes.reshape(-1, self.width) @ self.basis.T
        g *= self.scale[:, None]
        g[S] += self.ridge[S, None] * point.coef
        return g

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        S = np.sort(np.asarray(support, dtype=np.intp))
        b = self.b[self._unknowns(S)]
        z = self._inverse(S) @ b
        coef = z.reshape(len(S), self.width) @ self.basis.T / self.scale[S, None]
        return Iterate(S, coef, float(self.constant - 0.5 * b @ z), self.n_features)

    def smoothness(self, k: int) -> float:
        """Of all features at once."""
        scale = np.repeat(self.scale[self.known], self.width)
        top = np.linalg.norm(self.H * scale * scale[:, None], 2)
        return float(top * (1 + 1e-12) + self.ridge.max())

    def insertion_values(
        self, S: Support, x0: Iterate | None = None, below: float = np.inf
    ) -> Vector:
        """With r_i the residual of feature i and L_i what S leaves of its block of H, inserting it
        lowers the value by ½ r_iᵀ L_i⁻¹ r_i."""
        at, r = self._unknowns(S), self.width
        inverse, b = self._inverse(S), self.b[at]
        new = np.flatnonzero(self.outside(S))
        own = self._unknowns(new).reshape(len(new), r)
        cross = self.H[at][:, own].swapaxes(0, 1)  # new × unknowns of S × width
        z = inverse @ b
        residual = self.b[own] - z @ cross
        blocks = self.H[own[:, :, None], own[:, None, :]]
        np.einsum("iaa->ia", blocks)[...] += scaled_ridge(self.ridge, self.scale)[new, None]
        whole = np.einsum("iaa->ia", blocks).max(axis=1, initial=0.0)
        lengths, axes = np.linalg.eigh(blocks - cross.swapaxes(1, 2) @ (inverse @ cross))
        along = (residual[:, None, :] @ axes)[:, 0]
        clear = lengths > DEPENDENT * whole[:, None]
        gain = np.divide(along**2, lengths, out=np.zeros_like(along), where=clear).sum(axis=1)
        values = np.full(self.n_features, np.inf)
        values[new] = self.constant - 0.5 * b @ z - 0.5 * gain
        return values

    # inside

    def _unknowns(self, S: Support) -> Support:
        """Where the numbers that belong to S are in b."""
        return (self._position[S, None] * self.width + np.arange(self.width)).ravel()

    def _reduced(self, S: Support, coef: NDArray[np.float64]) -> Vector:
        return (coef * self.scale[S, None] @ self.basis).ravel()

    def _inverse(self, S: Support) -> Matrix:
        """Of what H and the ridge are for S; kept, as exchanges and removals share supports."""
        if self._inverses[0] is not self.ridge:
            self._inverses = self.ridge, {}
        known = self._inverses[1]
        key = S.tobytes()
        if key not in known:
            known[key] = self._new_inverse(S)
        return known[key]

    def _new_inverse(self, S: Support) -> Matrix:
        at = self._unknowns(S)
        A = self.H[np.ix_(at, at)]
        np.einsum("ii->i", A)[...] += np.repeat(
            scaled_ridge(self.ridge[S], self.scale[S]), self.width
        )
        inverse = stable_inverse(A)
        return gram_inverse(A) if inverse is None else inverse


class LocalGroupModel(GroupQuadratic):
    """A model of f around `centre` that also predicts the intercept and the forced coefficients."""

    centre: Iterate
    slope: Matrix

    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        x = super().minimize(support)
        there = self._reduced(x.support, x.coef) @ self.slope[self._unknowns(x.support)]
        S = self.centre.support
        here = self._reduced(S, self.centre.coef) @ self.slope[self._unknowns(S)]
        assert self.centre.nuisance is not None
        moved = (there - here).reshape(-1, self.width) @ self.basis.T
        return replace(x, nuisance=self.centre.nuisance + moved)

"""What features outside the working set of a search could do for supports that are kept.

Bounds exclude most of the features, for all supports together; the others are scored exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ellzero.algorithms.levels import Held, Levels
from ellzero.algorithms.sweep import joint_changes
from ellzero.core import Objective
from ellzero.linalg import DEPENDENT, inverse_root
from ellzero.supports import Matrix, Support, Vector, at_once

INSERTED = 3
"""So many of the best insertions of a support are offered."""


class View(NamedTuple):
    """A support as seen from all features."""

    held: Held
    S: Support  # in the working set
    root: Matrix  # of the inverse of the moments of S
    target: Vector  # the root times those of S with the target

    @property
    def coef(self) -> Vector:
        return self.target @ self.root

    @property
    def diagonal(self) -> Vector:
        """Of the inverse."""
        return np.einsum("ij,ij->j", self.root, self.root)


class Outside:
    """The features outside the working set W, whose moments are given."""

    def __init__(self, f: Objective, levels: Levels, W: Support, moments: Matrix):
        self.f, self.levels, self.W, self.moments = f, levels, W, moments
        diagonal = f.moment_diagonal
        assert diagonal is not None
        self._diagonal = diagonal[:-1]

    def offer(self, kept: list[Held]) -> None:
        """Offer what these features could do for some supports."""
        views = [view for x in kept for view in self.views(x)]
        if not views:
            return
        reached = list(self.within_reach(views))
        columns = np.unique(np.concatenate([own for _, own in reached]))
        rows = np.unique(np.concatenate([view.held.support for view in views]))
        for part in at_once(len(columns), len(rows) + 1):
            some = columns[part]
            block = self.f.moment_block(np.append(rows, self.f.n_features), some)
            for view, own in reached:
                own = own[(own >= some[0]) & (own <= some[-1])]
                here = np.searchsorted(some, own)
                S = np.append(np.searchsorted(rows, view.held.support), len(rows))
                if len(here):
                    self._offer_columns(view, own, block[S[:, None], here])

    def views(self, x: Held) -> list[View]:
        """A view, if the features of the support are independent."""
        S = np.searchsorted(self.W, x.support)
        root = inverse_root(self.moments[S[:, None], S])
        return [] if root is None else [View(x, S, root, root @ self.moments[S, -1])]

    def within_reach(self, views: list[View]) -> Iterator[tuple[View, Support]]:
        """For every view the features outside that no bound excludes.

        What a support leaves of a column is at least λ, what all supports together leave of it. So
        with the residual r it gains at most r²/2λ by entering, and nothing by taking the place of a
        feature whose loss costs u²/2 if |r| ≤ u (√d − √(d − λ)): the case in which all of the
        column that lies in the span of the supports is due to that feature.
        """
        d = self._diagonal
        left, error = d.copy(), 0.0
        for _, (spanned, doubt) in self._products(self._basis([view.S for view in views])):
            left -= np.einsum("ij,ij->j", spanned, spanned)
            error += float(doubt @ doubt)
        left -= 2 * np.sqrt(error * d) + error
        np.clip(left, 0.0, d, out=left)
        hurdle = np.sqrt(d) - np.sqrt(d - left)
        outside = self.f.outside(self.W) & (d > 0)
        A = np.zeros((len(views), len(self.moments)))
        A[:, -1] = 1.0
        for a, view in zip(A, views, strict=True):
            a[view.S] = -view.coef
        least = np.array([self._thresholds(view) for view in views])[:, :, None]
        for part, (r, doubt) in self._products(A):
            np.abs(r, out=r)
            r += doubt[:, None]
            with np.errstate(invalid="ignore"):  # inf · 0
                reached = r > least[part, 0] * hurdle
                r *= r
                reached |= r > least[part, 1] * left
            reached &= outside
            for view, own in zip(views[part], reached, strict=True):
                yield view, own.nonzero()[0]

    def _thresholds(self, view: View) -> tuple[float, float]:
        """The least u of a support, and twice what an insertion must gain to be better than all
        that is kept; inf if there is nothing to exchange, or no place for one more."""
        k = len(view.S)
        u = np.sqrt((view.coef**2 / view.diagonal).min(initial=np.inf))
        if k >= self.levels.top:
            return u, np.inf
        larger = self.levels.kept[k + 1]
        return u, 2 * (view.held.value - larger[0].value) if larger else 0.0

    def _basis(self, supports: list[Support]) -> Matrix:
        """Combinations of the features of these supports that are orthonormal and span them."""
        U = np.unique(np.concatenate(supports))
        rank = 0
        if len(U):
            C = self.moments[np.ix_(U, U)]
            factor, order, rank, _ = lapack.dpstrf(C, tol=DEPENDENT, lower=1)
        basis = np.zeros((rank, len(self.moments)))
        if rank:
            onto, _ = lapack.dtrtri(factor[:rank, :rank], lower=1)
            basis[:, U[order[:rank] - 1]] = np.tril(onto)
        return basis

    def _products(self, A: Matrix) -> Iterator[tuple[slice, tuple[Matrix, Vector]]]:
        """A · M for the moments M of the working set with all features, some rows at a time, and by
        how much each of these may be off."""
        used = np.flatnonzero(A.any(axis=0))
        rows = np.append(self.W, self.f.n_features)[used]
        for part in at_once(len(A), self.f.n_features):
            yield part, self.f.rough_moment_products(rows, A[part][:, used])

    def _offer_columns(self, view: View, columns: Support, block: Matrix) -> None:
        """Offer the best insertions of, and the best exchange for, features outside W."""
        x, S = view.held, view.held.support
        Z = view.root @ block[:-1]
        residual = block[-1] - view.target @ Z
        left = self._diagonal[columns] - np.einsum("ij,ij->j", Z, Z)
        changes = -0.5 * residual**2 / np.where(left > DEPENDENT, left, np.inf)
        for c in changes.argsort()[:INSERTED]:
            value = float(x.value + changes[c])
            if not value < self.levels.limit(len(S) + 1):
                break
            self.levels.offer(np.sort(np.append(S, columns[c])), value)
        if not len(S):
            return
        changes = joint_changes(view.root.T @ Z, -view.diagonal, view.coef, left, residual)
        j, c = divmod(int(changes.argmin()), len(columns))
        value = float(x.value + changes[j, c])
        if value < self.levels.limit(len(S)):
            self.levels.offer(np.sort(np.append(np.delete(S, j), columns[c])), value)

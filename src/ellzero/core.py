"""Three nouns: `Objective`, `Iterate` and `Solution`. The verb that joins them is in `driver`."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.supports import NONE, Matrix, Support, Vector, dense, magnitudes, smallest

if TYPE_CHECKING:
    from typing import Self


class Status(Enum):
    """How a run ended; the value is the message."""

    COMPLETE = "the support reached the size asked for"
    FIXED_POINT = "a further step changes nothing"
    LOCAL_OPTIMUM = "no step of this method lowers the value"
    TARGET_REACHED = "the target value was reached"
    SEARCH_ENDED = "the search has ended; a better model was not found, which does not exclude one"
    OPTIMAL = "proven best: every support of this size was considered"
    FEWER_FEATURES = "no penalty gives exactly this many non-zeros; the nearest below is returned"
    MAX_ITER = "the iteration limit was reached before the method ended"
    STOPPED = "stopped by the callback"
    NO_MINIMISER = "no minimiser exists on this support: the value is approached, never attained"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Iterate:
    """One step of an algorithm: a sparse point, its value, and a note such as ``+3 -17``.

    `minimizer` says that the point minimises the objective over its support. `nuisance` is the
    objective's own memory of the intercept and forced coefficients that go with the point, `memory`
    that of how it was found.
    """

    support: Support
    coef: NDArray[np.float64]
    value: float
    n_features: int
    note: str = ""
    minimizer: bool = True
    nuisance: Vector | None = field(default=None, repr=False)
    memory: Any = field(default=None, repr=False)

    @property
    def x(self) -> NDArray[np.float64]:
        return dense(self.support, self.coef, self.n_features)

    def noted(self, note: str) -> Iterate:
        x = object.__new__(Iterate)  # runs note thousands; `replace` takes four times as long
        x.__dict__.update(self.__dict__, note=note)
        return x

    @property
    def smallest(self) -> int:
        """The member of the support with the least |x_j|."""
        return int(self.support[np.argmin(magnitudes(self.coef))])

    def __repr__(self) -> str:
        note = f", {self.note}" if self.note else ""
        return f"Iterate({self.support.tolist()}, value={self.value:.6g}{note})"


@dataclass(frozen=True, eq=False)
class Iterates:
    """Many iterates, a row each; smaller supports are filled up with −1, coefficients with 0."""

    support: Support
    coef: NDArray[np.float64]
    value: Vector
    n_features: int
    nuisance: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, x: Iterate) -> Iterates:
        """One of them."""
        nuisance = None if x.nuisance is None else x.nuisance[None]
        value = np.array([x.value])
        return cls(x.support[None], x.coef[None], value, x.n_features, nuisance)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Iterate]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Iterate:
        s = np.count_nonzero(self.support[k] >= 0)
        nuisance = None if self.nuisance is None else self.nuisance[k]
        return Iterate(
            self.support[k, :s],
            self.coef[k, :s],
            float(self.value[k]),
            self.n_features,
            nuisance=nuisance,
        )


Point: TypeAlias = Iterate | ArrayLike


class Model(NamedTuple):
    """What an objective reports of an iterate: as accurate as the data allow."""

    features: Support  # the forced ones, then the chosen ones
    coef: NDArray[np.float64]
    intercept: Any
    value: float
    attained: bool = True
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """What every solver returns.

    Attributes
    ----------
    support : the chosen features, sorted; forced features and the intercept are not among them.
    features, coef : the forced features, then the chosen ones, and their coefficients.
    x : coefficients of all features; an array of this length is made anew whenever it is asked for.
    value : f(x), to at least ten digits where the data allow that.
    feature_names : of all features, where the data came with names.
    """

    support: Support
    features: Support
    coef: NDArray[np.float64]
    n_features: int
    value: float
    status: Status
    n_iter: int
    intercept: Any = 0.0
    method: str = ""
    trace: tuple[Iterate, ...] = field(default=(), repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def x(self) -> NDArray[np.float64]:
        x = dense(self.features, self.coef, self.n_features)
        x.flags.writeable = False
        return x

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of x."""
        return self.n_features, *self.coef.shape[1:]

    def __repr__(self) -> str:
        names = self.feature_names or range(self.n_features)
        first = self.support[:10]
        shown = [
            f"{names[j]}: {np.array2string(c, precision=4, threshold=6)}"
            for j, c in zip(first.tolist(), self.x[first], strict=True)
        ]
        if len(self.support) > 10:
            shown.append(f"... {len(self.support) - 10} more")
        return (
            f"Solution of {self.method or 'f'} with {len(self.support)} features\n"
            f"  value     {self.value:.8g}\n"
            f"  features  {', '.join(shown) or 'none'}\n"
            f"  intercept {np.array2string(np.asarray(self.intercept), precision=6)}\n"
            f"  status    {self.status.name}: {self.status} ({self.n_iter} iterations)"
        )


class Objective(ABC):
    """A convex function of `n_features` coefficients: everything an algorithm may ask of it.

    The intercept and the `forced` features are not coordinates an algorithm chooses: f(x) is the
    minimum over them for the given x, so they are in every model, are never dropped, and their
    entries of the gradient are zero.

    A subclass implements `_value`, `_gradient` and `minimize` for a point given by its support and
    the coefficients there, and treats ``self.ridge`` (one non-negative number per feature) as
    ½ Σ ridge_j x_j² added to f.
    """

    n_features: int
    ridge: Vector
    forced: tuple[int, ...] = ()
    per_feature: tuple[int, ...] = ()
    """What a feature owns: (), one coefficient, or (C,), a row of C of them."""
    feature_names: tuple[str, ...] | None = None
    n_rows: float = np.inf
    """Of the data, where f is made of data."""
    resolution: float = 0.0
    """Differences of values below this are rounding, not progress."""
    floor: float = -np.inf
    """f is never less than this; what comes as close as rounding allows needs no improvement."""
    breadth: int = 1
    """How many supports of each size a search can afford to pursue."""
    is_sparse: bool = False
    """Do few rows speak for a feature? A quadratic model may then be far off."""
    keeps_moments: bool = True
    """Are rows of the moments held once they were asked for? If not, ask for what they are for."""
    blocks_are_cheap: bool = True
    """Does a block of the moments take less time than the rows it is part of?"""
    blas_threads: int | None = None
    """How many BLAS threads help; None leaves that to the user's settings."""
    digits_lost: float = 1.0
    """By how much cancellation has made rounding larger before f came to be."""
    total_weight: float = np.nan
    """How many observations f sums over, a weight of two counting as two of them."""

    # what a subclass says

    @abstractmethod
    def _value(self, S: Support, coef: NDArray[np.float64]) -> float: ...

    @abstractmethod
    def _gradient(self, point: Iterate) -> NDArray[np.float64]: ...

    @abstractmethod
    def minimize(self, support: ArrayLike, x0: Iterate | None = None) -> Iterate:
        """argmin of f over supp(x) ⊆ `support`, warm-started at `x0`."""

    def minimize_below(
        self, support: ArrayLike, x0: Iterate, limit: float, expected: float = -np.inf
    ) -> Iterate | None:
        """The minimiser over `support`, or None where its value seems not to be less than `limit`.

        For a search: an objective may judge by what the first steps of its method promise, and by
        how far f(x0) is from what was `expected`.
        """
        if expected > -np.inf:
            reached = self._value(x0.support, x0.coef)
            if reached - abs(reached - expected) >= limit:
                return None
        x = self.minimize(support, x0)
        return x if x.value < limit else None

    @abstractmethod
    def smoothness(self, k: int) -> float:
        """A certified upper bound on ρₖ⁺, the restricted smoothness at sparsity k."""

    # what follows

    def value(self, x: Point) -> float:
        point = self.point(x)
        return self._value(point.support, point.coef)

    def gradient(self, x: Point) -> NDArray[np.float64]:
        return self._gradient(self.point(x))

    def steepest_finder(self) -> Callable[[Iterate], int]:
        """For an x, and then others, the feature outside its support with the largest |∇ᵢf(x)|."""
        return lambda x: self.largest_outside(x.support, magnitudes(self._gradient(x)))

    # many points at once

    def steepest(self, xs: Iterates) -> Support:
        """For each x, the feature outside its support with the largest |∇ᵢf(x)|."""
        return np.array(list(map(self.steepest_finder(), xs)), dtype=np.intp)

    def successive_steepest(self) -> Callable[[Iterates], Support]:
        """`steepest`, for points of which the next have much in common with those before."""
        return self.steepest

    def minimize_each(self, supports: Support, ridges: Matrix, starts: Iterates) -> Iterates:
        """argmin over each row of `supports` of f + ½ Σ dⱼ xⱼ², d being its row of `ridges`.

        Each support is sorted; smaller ones are filled up with −1.
        """
        coef = np.zeros((*supports.shape, *self.per_feature))
        values, nuisances = np.empty(len(supports)), []
        for k, (row, ridge, x0) in enumerate(zip(supports, ridges, starts, strict=True)):
            S = row[row >= 0]
            d = np.zeros(self.n_features)
            d[S] = ridge[: len(S)]
            x = (self.ridged(d) if d.any() else self).minimize(S, x0)
            coef[k, : len(S)], values[k] = x.coef, x.value
            nuisances.append(x.nuisance)
        nuisance = None if nuisances[0] is None else np.array(nuisances)
        return Iterates(supports, coef, values, self.n_features, nuisance)

    def at_hand(self, supports: Support) -> NDArray[np.bool_]:
        """Which of these supports to ask `steepest` about now, the others being dearer.

        Where an answer costs a pass over the data, one pass may answer for many supports.
        """
        return np.ones(len(supports), dtype=bool)

    # f and points made of it

    def ridged(self, d: ArrayLike) -> Self:
        """f(x) + ½ Σ dⱼ xⱼ²; forced features are left as they are."""
        other = copy.copy(self)
        extra = np.broadcast_to(np.asarray(d, dtype=float), (self.n_features,)).copy()
        extra[list(self.forced)] = 0.0
        other.ridge = self.ridge + extra
        return other

    def apart(self) -> Self:
        """The same f with a memory of its own, which is for one thread at a time."""
        return copy.copy(self)

    def point(self, x: Point) -> Iterate:
        """`x` as an iterate whose value is not computed (it is NaN) and which minimises nothing."""
        if isinstance(x, Iterate):
            return x
        x = np.asarray(x, dtype=float)
        if x.shape != self.shape:
            wanted = " × ".join(map(str, self.shape))
            raise ValueError(f"x: expected {wanted} coefficients, got shape {x.shape}.")
        mask = magnitudes(x) != 0
        mask[list(self.forced)] = False
        S = np.flatnonzero(mask)
        return Iterate(S, x[S], np.nan, self.n_features, minimizer=False)

    def at(self, x: ArrayLike, note: str = "") -> Iterate:
        """`x` as an iterate with its value."""
        point = self.point(x)
        return replace(point, value=self._value(point.support, point.coef), note=note)

    # which features

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of x."""
        return self.n_features, *self.per_feature

    @property
    def choosable(self) -> Support:
        """The features a support may be drawn from: all but the forced ones."""
        return np.flatnonzero(self.outside(NONE))

    @property
    def n_choosable(self) -> int:
        """How many features a support may be drawn from."""
        return self.n_features - len(self.forced)

    def outside(self, S: Support) -> NDArray[np.bool_]:
        """The features that may still enter: neither in S nor forced."""
        mask = np.ones(self.n_features, dtype=bool)
        mask[S] = False
        mask[list(self.forced)] = False
        return mask

    def largest_outside(self, S: Support, scores: Vector) -> int:
        """The feature outside S with the largest score; the first of equals."""
        scores = scores.copy()
        scores[S] = -np.inf
        scores[list(self.forced)] = -np.inf
        return int(np.argmax(scores))

    # the neighbours of a support

    def insertion_values(
        self, S: Support, x0: Iterate | None = None, below: float = np.inf
    ) -> Vector:
        """min f over S ∪ {i} for every i; inf where i may not enter.

        The smallest entry is exact whenever it is less than `below`; an objective may give a valid
        lower bound instead of the value for an i which that bound rules out.
        """
        values = np.full(self.n_features, np.inf)
        for i in np.flatnonzero(self.outside(S)):
            values[i] = self.minimize(np.append(S, i), x0).value
        return values

    def successive_insertion_values(self) -> Callable[..., Vector]:
        """`insertion_values` for supports each of which differs little from the one before."""
        return self.insertion_values

    def promising_insertions(self, S: Support, count: int) -> Support:
        """So many features that lower f most when they enter S, as far as that is cheap to tell."""
        return smallest(self.insertion_values(S), count)

    def removal_values(self, S: Support, x0: Iterate | None = None) -> Vector:
        """min f over S ∖ {S[j]} for every j."""
        return np.array([self.minimize(np.delete(S, j), x0).value for j in range(len(S))])

    def exchange_values(self, S: Support, x0: Iterate | None = None) -> NDArray[np.float64]:
        """Row j, column i: min f over S ∖ {S[j]} ∪ {i}; exact where the smallest."""
        best, rows = np.inf, []
        for j in range(len(S)):
            rest = np.delete(S, j)
            rows.append(self.insertion_values(rest, self.minimize(rest, x0), best))
            best = min(best, rows[-1].min())
        return np.array(rows).reshape(len(S), self.n_features)

    def best_exchange(self, S: Support, x0: Iterate | None = None) -> tuple[int, int, float]:
        """The best swap: (out, in, value). The value is inf where no swap can lower f."""
        values = self.exchange_values(S, x0)
        values[:, S] = np.inf
        j, i = divmod(int(np.argmin(values)), self.n_features)
        return int(S[j]), i, float(values[j, i])

    # bounds and proofs

    def rounding(self, x: Iterate) -> float:
        """How far the value of a minimiser x may be from the minimum over its support."""
        return self.resolution

    def reaches_floor(self, x: Iterate) -> bool:
        """Say whether f is at its floor at x, or gets there over the support of x as far as it is
        asked to go: rounding of the data aside."""
        return x.value <= self.floor

    def removal_bounds(self, x: Iterate, asked: Support | None = None) -> tuple[float, Vector]:
        """Lower bounds on min f over the support S of a minimiser x, and over it without S[j].

        With `asked`, the bounds matter only for these j.
        """
        here = x.value - self.rounding(x)
        return here, np.full(len(x.support), here)

    def lower_bound(self) -> float:
        """A number below which f never goes: its minimum, where that can be had."""
        return self.minimize(self.choosable).value

    def best_subset(self, k: int) -> tuple[Iterate, bool] | None:
        """The best support of size k, where there are few enough to look at all, and whether that
        is proven: rounding may leave a doubt."""
        return None

    def from_rows(self, deadline: float = np.inf) -> Objective | None:
        """The same f from the rows it is made of, where these tell more than f does; or None."""
        return None

    # a quadratic's moments

    @property
    def moment_diagonal(self) -> Vector | None:
        """The diagonal of the moments (see `moment_rows`), or None if f is not quadratic."""
        return None

    def moment_rows(self, rows: Support) -> NDArray[np.float64]:
        """Rows of [[C, c], [cᵀ, 2v]] where f(x) = ½ xᵀCx − cᵀx + v; row n is that of c.

        Features are scaled so that C has a unit diagonal, plus the ridge.
        """
        raise NotImplementedError

    def moment_block(self, rows: Support, columns: Support) -> NDArray[np.float64]:
        """Some columns of some rows of the moments."""
        return self.moment_rows(rows)[:, columns]

    def moment_products(
        self, rows: Support, A: NDArray[np.float64], ahead: Support = NONE
    ) -> NDArray[np.float64]:
        """A · M[rows], without its last column, for the moments M; no row is named twice.

        ahead : rows that may be wanted soon; where rows cost a pass over the data and some are
            missing, some of these are made along with them
        """
        return A @ self.moment_rows(rows)[:, :-1]

    def rough_moment_products(
        self, rows: Support, A: NDArray[np.float64], ahead: Support = NONE
    ) -> tuple[NDArray[np.float64], Vector]:
        """`moment_products`, as near as is quickly told, and by how much each row may be off."""
        return self.moment_products(rows, A, ahead), np.zeros(len(A))

    def least_squares_form(self, S: Support) -> tuple[NDArray[np.float64], Vector]:
        """A, t with f(x) = ½‖Ax_S − t‖² + constant for x that is zero outside S; f is quadratic."""
        raise NotImplementedError

    def quadratic_model(self, x: Iterate) -> Objective | None:
        """The second-order Taylor model of f at x (f itself if it is quadratic), or None."""
        return None

    # what is reported

    def deviance(self, loss: float) -> float:
        """−2 log-likelihood, up to a constant, of a model whose loss (f without ridge) is this."""
        raise ValueError(
            f"{type(self).__name__}: this loss has no likelihood, hence no information criterion; "
            "choose the size by cross-validation."
        )

    def complete(self, x: Iterate) -> Model:
        """The whole model behind an iterate, as accurate as the data allow."""
        return Model(x.support, x.coef, 0.0, self._value(x.support, x.coef))

"""The nouns: `Features`, `Objective`, `Neighbourhood`, `Iterate`, `Solution`, `Status`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellzero.supports import NONE, Mask, Support, Vector, dense

if TYPE_CHECKING:
    from typing import Self

    from ellzero.objectives.quadratic import Quadratic


class Status(Enum):
    """How a run ended; the value is the message."""

    COMPLETE = "the support reached the size asked for"
    FIXED_POINT = "a further step changes nothing"
    LOCAL_OPTIMUM = "no step of this method lowers the value"
    TARGET_REACHED = "the target value was reached"
    SEARCH_ENDED = "search finished; probably the best, not proven: certify() checks"
    OPTIMAL = "proven best: every support of this size was considered"
    FEWER_FEATURES = "no penalty gives exactly this many non-zeros; the nearest below is returned"
    MAX_ITER = "the iteration limit was reached before the method ended"
    STOPPED = "stopped by the callback"
    NO_MINIMISER = "no minimiser exists on this support: the value is approached, never attained"

    def __str__(self) -> str:
        return self.value


class Features:
    """What may be chosen. Feature j owns `sizes[j]` coordinates of x: its block.

    Parameters
    ----------
    sizes : int or array of int
        How many coordinates each feature owns. A whole number n means n features of one each.
    forced : array of int
        Features that are in every model and do not count towards its size.
    names : sequence of str, optional
        One name for each feature.
    """

    def __init__(
        self,
        sizes: int | ArrayLike,
        forced: ArrayLike = (),
        names: Sequence[str] | None = None,
    ):
        each = np.asarray(sizes, dtype=np.intp)
        self.sizes: Support = np.ones(int(each), dtype=np.intp) if each.ndim == 0 else each
        self.starts: Support = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self.n_coordinates = int(self.starts[-1])
        self.all_single = self.n_coordinates == len(self.sizes)
        self.forced: Support = np.sort(np.asarray(forced, dtype=np.intp))
        self.free: Mask = np.ones(len(self.sizes), dtype=bool)
        self.free[self.forced] = False
        self.names = None if names is None else tuple(names)

    def __len__(self) -> int:
        return len(self.sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the features were made of: solutions carry them, and n may be large."""
        sizes: Any = len(self) if self.all_single else self.sizes
        return Features, (sizes, self.forced, self.names)

    @cached_property
    def choosable(self) -> Support:
        """The features that a support may be drawn from: all but the forced ones."""
        return np.flatnonzero(self.free)

    @cached_property
    def groups(self) -> list[tuple[Support, Support]]:
        """For every block size, the features of that size, and a row of coordinates for each."""
        members = [np.flatnonzero(self.sizes == size) for size in np.unique(self.sizes)]
        return [(m, self.starts[m][:, None] + np.arange(self.sizes[m[0]])) for m in members]

    def coordinates(self, S: Support) -> Support:
        """Return the coordinates that the features of S own, one block after the other."""
        if self.all_single or not len(S):
            return S
        return np.concatenate([np.arange(self.starts[j], self.starts[j + 1]) for j in S])

    def per_coordinate(self, each: Vector, S: Support | None = None) -> Vector:
        """Repeat one number for each feature (of S, by default all) over its coordinates."""
        if self.all_single:
            return each
        return np.repeat(each, self.sizes if S is None else self.sizes[S])

    def norms(self, v: NDArray[np.float64], S: Support | None = None) -> NDArray[np.float64]:
        """Return the norm of each feature's block along the last axis of v.

        v holds the blocks of S, by default those of all features.
        """
        if self.all_single:
            return np.abs(v)
        sizes = self.sizes if S is None else self.sizes[S]
        if not len(sizes):
            return np.empty((*v.shape[:-1], 0))
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        largest = np.maximum.reduceat(np.abs(v), first, axis=-1)
        unit = np.where(largest > 0, largest, 1.0)  # squares would overflow, or vanish
        scaled = v / np.repeat(unit, sizes, axis=-1)
        return largest * np.sqrt(np.add.reduceat(scaled * scaled, first, axis=-1))

    def outside(self, S: Support) -> Mask:
        """Mark the features that may still enter: those neither in S nor forced."""
        mask = self.free.copy()
        mask[S] = False
        return mask


@dataclass(frozen=True, eq=False)
class Iterate:
    """One step of a method: a sparse point, its value, and a note such as ``+3 -17``.

    Attributes
    ----------
    support : array of int
        The chosen features, sorted.
    coef : array of float
        The coordinates of the support, block after block.
    value : float
        f at this point, minimised over the intercept and the forced features.
    minimizer : bool
        Whether the point minimises f over its support.
    nuisance : array of float, optional
        The intercept and the forced coefficients that go with the point. f starts from them.
    """

    features: Features = field(repr=False)
    support: Support
    coef: Vector
    value: float
    note: str = ""
    minimizer: bool = True
    nuisance: Vector | None = field(default=None, repr=False)

    def noted(self, note: str) -> Iterate:
        return replace(self, note=note)

    @property
    def x(self) -> Vector:
        """All coordinates, zero outside the support."""
        full = np.zeros(self.features.n_coordinates)
        full[self.features.coordinates(self.support)] = self.coef
        return full

    @property
    def smallest(self) -> int:
        """The feature of the support whose block has the smallest norm."""
        return int(self.support[np.argmin(self.features.norms(self.coef, self.support))])

    def __repr__(self) -> str:
        note = f", {self.note}" if self.note else ""
        return f"Iterate({self.support.tolist()}, value={self.value:.6g}{note})"


Point: TypeAlias = Iterate | ArrayLike


class Move(NamedTuple):
    """A change of a support: which feature enters, which one leaves (−1 for none).

    `value` is the minimum of f over the support after the move.
    """

    enters: int = -1
    leaves: int = -1
    value: float = nan

    def of(self, S: Support) -> Support:
        """Return S after the move, sorted."""
        S = S[self.leaves != S]
        return S if self.enters < 0 else np.insert(S, S.searchsorted(self.enters), self.enters)

    def __str__(self) -> str:
        signs = (("+", self.enters), ("-", self.leaves))
        return " ".join(f"{sign}{j}" for sign, j in signs if j >= 0)


class Model(NamedTuple):
    """The model behind an iterate, refitted as accurately as the data allow, in their units."""

    features: Support  # the forced ones, then the chosen ones
    coef: NDArray[np.float64]
    intercept: Any
    value: float
    attained: bool = True
    """Whether f has a minimiser over these features."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What every solver returns.

    Attributes
    ----------
    support : array of int
        The chosen features, sorted. Forced features and the intercept are not among them.
    features, coef : arrays
        The forced features, then the chosen ones, and their coefficients.
    value : float
        f at the coefficients, to at least ten digits where the data allow that.
    status : Status
        How the run ended.
    n_iter : int
        How many steps were taken.
    feature_names : tuple of str, optional
        The names of all features, where the data came with names.
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
        """The coefficients of all features, in a new read-only array."""
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
    """A convex function of the coordinates of some features: all that a solver may ask of f.

    The intercept and the forced features are no coordinates to choose. f(x) is the minimum over
    them for the given x, and their entries of the gradient are zero.

    A subclass writes `at`, `gradient` and `minimize`. Everything else follows from these three,
    slowly; an objective that knows a faster way overrides it.
    """

    features: Features
    size: float = nan
    """Numbers in the data. It tells what one pass costs, hence how widely to search."""
    resolution: float = 0.0
    """Differences of values below this are rounding, not progress."""
    floor: float = -inf
    """f is never below this number."""

    @abstractmethod
    def at(self, x: Point) -> Iterate:
        """Return a point, given by all coordinates or as an iterate, with its value."""

    @abstractmethod
    def gradient(self, x: Point) -> Vector:
        """Return the derivatives of f with respect to all coordinates."""

    @abstractmethod
    def minimize(self, S: ArrayLike, start: Iterate | None = None, below: float = inf) -> Iterate:
        """Return the minimiser over x that are zero outside the features S.

        The method may stop early, at a point above the minimum, once the minimum seems not to be
        less than `below`. The value returned is never a lower bound.
        """

    def value(self, x: Point) -> float:
        """Return f(x)."""
        return self.at(x).value

    def ridged(self, d: ArrayLike) -> Self:
        """Return f(x) + ½ Σ d_j ‖x_j‖², with one number d_j for each feature.

        Forced features are left as they are.
        """
        raise TypeError(
            f"{type(self).__name__} takes no ridge, which this method needs; write its `ridged`."
        )

    def steepest(self, xs: Sequence[Iterate]) -> list[int]:
        """Return, for each x, the feature outside its support with the steepest slope."""
        found = []
        for x in xs:
            slopes = self.features.norms(self.gradient(x))
            found.append(int(np.argmax(np.where(self.features.outside(x.support), slopes, -1.0))))
        return found

    def smoothness(self, k: int) -> float:
        """Return an upper bound on ρₖ⁺, the restricted smoothness at sparsity k; inf if unknown."""
        return inf

    def quadratic(self, x: Iterate) -> Quadratic | None:
        """Return the second-order model of f at x, or None if f has no second derivatives."""
        return None

    def neighbourhood(self, x: Iterate) -> Neighbourhood:
        """Return f as seen from its minimiser x over a support."""
        return Refits(self, x)

    def refit(self, x: Iterate) -> Model:
        """Return the model behind an iterate, as accurate as the data allow."""
        x = self.at(x)
        return Model(x.support, x.coef, 0.0, x.value)

    def point(self, x: Point) -> Iterate:
        """Return x as an iterate whose value is not known (NaN)."""
        if isinstance(x, Iterate):
            return x
        x = np.asarray(x, dtype=float)
        if x.shape != (self.features.n_coordinates,):
            raise ValueError(
                f"x: expected {self.features.n_coordinates} coefficients, got shape {x.shape}."
            )
        S = np.flatnonzero((self.features.norms(x) != 0) & self.features.free)
        coef = x[self.features.coordinates(S)]
        return Iterate(self.features, S, coef, nan, minimizer=False)


class Likelihood(Protocol):
    """What an information criterion asks of an f that sums losses over observations."""

    n_rows: int
    observations: float
    """How many observations there are; a weight of two counts as two of them."""

    def deviance(self, loss: float) -> float:
        """Return −2 log-likelihood, up to a constant, of a model whose loss is this."""


class Neighbourhood(ABC):
    """f as seen from its minimiser x over S: one feature enters, leaves, or is exchanged."""

    x: Iterate

    @abstractmethod
    def insertions(self, below: float = inf) -> Vector:
        """Return min f over S ∪ {i} for every feature i; inf for those that may not enter.

        The least entry is exact if it is less than `below`. Larger entries may be upper bounds.
        """

    @abstractmethod
    def removals(self) -> Vector:
        """Return min f over S ∖ {j} for every j in S."""

    @abstractmethod
    def best_exchange(self) -> Move:
        """Return the best exchange. Its value is inf where none lowers f."""

    @abstractmethod
    def moved(self, move: Move) -> Neighbourhood:
        """Return the neighbourhood of the minimiser after a move, or half a move."""


MODEL_HOPE = 4.0
"""What an insertion gains is at most this many times what the model says: where a loss runs out
like e^−u, it is twice; and the model is one of second derivatives that fall."""


class Refits(Neighbourhood):
    """The neighbourhood of any f: its quadratic model, if there is one, ranks; refits decide."""

    def __init__(self, f: Objective, x: Iterate):
        self.f, self.x = f, x

    def insertions(self, below: float = inf) -> Vector:
        """Return what `Neighbourhood.insertions` says.

        A feature is not refitted where its model gains too little: what f can gain is at most
        `MODEL_HOPE` times as much. The value of x stands in its place.
        """
        outside = self.f.features.outside(self.x.support)
        values = np.where(outside, self.x.value, inf)
        gains = self._model_gains()
        for i in np.flatnonzero(outside)[np.argsort(-gains[outside], kind="stable")].tolist():
            if self.x.value - MODEL_HOPE * gains[i] >= below:
                break
            values[i] = self.f.minimize(Move(i).of(self.x.support), self.x, below).value
            below = min(below, values[i])
        return values

    def _model_gains(self) -> Vector:
        """Return by how much each feature lowers the model of f; inf if f has no model."""
        model = self.f.quadratic(self.x)
        if model is None:
            return np.full(len(self.f.features), inf)
        near = model.neighbourhood(self.x)
        return near.x.value - near.insertions()

    def removals(self) -> Vector:
        return np.array([self.moved(Move(leaves=j)).x.value for j in self.x.support.tolist()])

    def best_exchange(self) -> Move:
        best = Move(value=self.x.value)
        for j in self.x.support.tolist():
            values = self.moved(Move(leaves=j)).insertions(best.value)
            values[j] = inf
            i = int(np.argmin(values))
            best = min(best, Move(i, j, float(values[i])), key=lambda move: move.value)
        return best if best.enters >= 0 else best._replace(value=inf)

    def moved(self, move: Move) -> Neighbourhood:
        return self.f.neighbourhood(self.f.minimize(move.of(self.x.support), self.x))


def as_features(S: ArrayLike) -> Support:
    """Return a support as a sorted array of feature indices."""
    found = np.asarray(S, dtype=np.intp)
    return np.sort(found) if len(found) else NONE

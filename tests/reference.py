"""Every algorithm of the paper once more: literal, slow and independent of ellzero.

This is the twin that the fast code is tested against, and it is meant to be read beside the
paper's pseudo-code (same letters; comments name its lines). It has no updates, no caches and no
closed forms: whenever the paper says argmin, a fit starts from scratch.
Comparisons are exact, as on paper, and every tie goes to the lowest index.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations, product
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit, logsumexp

Vector = NDArray[np.float64]
by_value = attrgetter("value")


class Step(NamedTuple):
    """One state of an algorithm: a support and the value of f there."""

    support: frozenset[int]
    value: float


class Fit(NamedTuple):
    """A minimiser: all n coefficients (or rows of them), the intercept, and the value reached."""

    x: Vector
    intercept: Any
    value: float


@dataclass(eq=False)
class Problem:
    """f(x) = sum_k w_k loss_k(Xx + a) + ridge/2 ||x||^2, to be minimised over sparse x.

    The intercept a and the coefficients of the forced features are profiled out: f is the minimum
    over them, so they are in every model, in no support, and never counted in s. The ridge acts
    on every coefficient, forced ones too, and never on the intercept.

    With the multinomial loss Xx + a has a column for every class, and x a row for every feature.
    """

    X: Any  # dense or scipy.sparse
    y: ArrayLike  # for the logistic loss in {0, 1} or {-1, 1}; kept as the paper's b in {0, 1}
    # and for the multinomial one in {0, 1, ...}
    loss: Literal["squares", "logistic", "multinomial"] = "squares"
    sample_weight: ArrayLike | None = None
    fit_intercept: bool = False
    forced: Iterable[int] = ()
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"unknown loss {self.loss!r}")
        self.X = np.asarray(self.X.toarray() if issparse(self.X) else self.X, dtype=float)
        self.y = np.asarray(self.y, dtype=float)
        if self.loss == "logistic":
            self.y = np.where(self.y > 0, 1.0, 0.0)
        self.m, self.n = self.X.shape
        self.row = (int(self.y.max()) + 1,) if self.loss == "multinomial" else ()
        self.zero = np.zeros((self.n, *self.row))
        weight = 1.0 if self.sample_weight is None else self.sample_weight
        self.sample_weight = np.ones(self.m) * weight
        self.forced = frozenset(int(j) for j in self.forced)

    def outside(self, S: Iterable[int] = ()) -> list[int]:
        """[n] without S, ascending; forced features are not part of [n]."""
        return sorted(set(range(self.n)) - self.forced - set(S))

    def step(self, S: Iterable[int]) -> Step:
        """The support S with the minimum of f over it."""
        return Step(frozenset(S), self.fit(S).value)

    def value(self, x: Vector, intercept: Any, extra_ridge: ArrayLike | None = None) -> float:
        """The loss, ridge included, at given coefficients and intercept: nothing is minimised."""
        t = self.X @ x + intercept
        losses = LOSSES[self.loss].value(t, self.y)
        penalty = np.sum(self._ridges(extra_ridge) * (x**2).T)
        return float(self.sample_weight @ losses + 0.5 * penalty)

    def gradient(self, x: Vector, intercept: Any, extra_ridge: ArrayLike | None = None) -> Vector:
        """Derivatives of `value` in x, 0 on forced features.

        Where intercept and forced coefficients are optimal, as after `fit` and `profile`, this is
        the gradient of the profiled f, by the envelope theorem.
        """
        t = self.X @ x + intercept
        slopes = LOSSES[self.loss].slope(t, self.y)
        g = self.X.T @ (self.sample_weight * slopes.T).T + (self._ridges(extra_ridge) * x.T).T
        g[sorted(self.forced)] = 0
        return g

    def fit(self, S: Iterable[int], extra_ridge: ArrayLike | None = None) -> Fit:
        """argmin over supp(x) in S of f, or of g(x) = f(x) + 1/2 sum_j d_j x_j^2, d = extra_ridge.

        The value is that of the function minimised, the extra ridge included.
        """
        return self._minimise(sorted(self.forced | set(S)), self.zero, extra_ridge)

    def profile(self, x: Vector) -> Fit:
        """The point x with the intercept and the forced coefficients at their best for it."""
        fixed = x.copy()
        fixed[sorted(self.forced)] = 0
        return self._minimise(sorted(self.forced), fixed, None)

    def _ridges(self, extra_ridge: ArrayLike | None) -> Vector:
        extra = np.zeros(self.n) if extra_ridge is None else np.array(extra_ridge, dtype=float)
        extra[sorted(self.forced)] = 0
        return self.ridge + extra

    def _minimise(self, free: list[int], fixed: Vector, extra_ridge: ArrayLike | None) -> Fit:
        """Minimise over the intercept and the free coefficients; `fixed` holds all the others."""
        ones = np.ones((self.m, int(self.fit_intercept)))  # no column at all without intercept
        A = np.hstack([ones, self.X[:, free]])
        d = np.concatenate([np.zeros(ones.shape[1]), self._ridges(extra_ridge)[free]])
        z = LOSSES[self.loss].solve(A, self.y, self.sample_weight, self.X @ fixed, d)
        intercept = z[0] if self.fit_intercept else 0.0
        x = fixed.copy()
        x[free] = z[ones.shape[1] :]
        return Fit(x, intercept, self.value(x, intercept, extra_ridge))


def least_squares(A: Vector, y: Vector, w: Vector, offset: Vector, d: Vector) -> Vector:
    """argmin_z 1/2 sum_k w_k (Az + offset - y)_k^2 + 1/2 sum_j d_j z_j^2, the ridge as rows."""
    root = np.sqrt(w)
    rows = np.vstack([root[:, None] * A, np.diag(np.sqrt(d))])
    target = np.concatenate([root * (y - offset), np.zeros(len(d))])
    norms = np.linalg.norm(rows, axis=0)
    norms[norms == 0] = 1
    return np.linalg.lstsq(rows / norms, target, rcond=None)[0] / norms


def logistic(t: Vector, b: Vector) -> Vector:
    """-b log sigma(t) - (1 - b) log(1 - sigma(t)) for b in {0, 1}, without cancellation."""
    return np.logaddexp(0, (1 - 2 * b) * t)


def logistic_slope(t: Vector, b: Vector) -> Vector:
    """Its derivative sigma(t) - b."""
    return (1 - 2 * b) * expit((1 - 2 * b) * t)


def newton_logistic(A: Vector, y: Vector, w: Vector, offset: Vector, d: Vector) -> Vector:
    """argmin_z of the weighted logistic loss + 1/2 sum_j d_j z_j^2, by damped Newton from 0."""

    def loss(z: Vector) -> float:
        return float(w @ logistic(A @ z + offset, y) + 0.5 * d @ z**2)

    z = np.zeros(A.shape[1])
    scale = w @ np.abs(A)  # no |gradient_j| of the loss proper can be larger
    for _ in range(200):
        t = A @ z + offset
        slopes = logistic_slope(t, y)
        g = A.T @ (w * slopes) + d * z
        if np.all(np.abs(g) <= 1e-12 * scale):
            return z
        # the Newton step minimises the quadratic model at z, itself a least squares problem
        h = np.maximum(expit(t) * expit(-t), 1e-20)
        direction = least_squares(A, t - slopes / h, w * h, offset, d) - z
        now, slope, step = loss(z), g @ direction, 1.0
        if abs(slope) > 1e-10 * now:  # else so near that values are rounding: take it whole
            while loss(z + step * direction) > now + 1e-4 * step * slope:
                step /= 2
        z = z + step * direction
    raise ArithmeticError("Newton did not converge")


def softmax(t: Vector) -> Vector:
    """The probabilities of the classes, row by row."""
    e = np.exp(t - t.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def multinomial(t: Vector, y: Vector) -> Vector:
    """-log of the probability of each row's class."""
    return logsumexp(t, axis=1) - t[np.arange(len(y)), y.astype(int)]


def multinomial_slope(t: Vector, y: Vector) -> Vector:
    return softmax(t) - np.eye(t.shape[1])[y.astype(int)]


def multinomial_curvature(t: Vector, w: Vector, A: Vector, B: Vector) -> Vector:
    """Second derivatives in entries (i, c) of a z_A and (j, d) of a z_B, as one matrix."""
    p = softmax(t)
    D = p[:, :, None] * np.eye(t.shape[1]) - p[:, :, None] * p[:, None, :]
    H = np.einsum("k,ki,kcd,kj->icjd", w, A, D, B, optimize=True)
    return H.reshape(A.shape[1] * t.shape[1], B.shape[1] * t.shape[1])


def newton_multinomial(A: Vector, y: Vector, w: Vector, offset: Vector, d: Vector) -> Vector:
    """argmin_z of the weighted multinomial loss + ridge, by damped Newton from 0.

    Steps have least norm: rows of z sum to zero, as adding a constant to all classes is no change.
    """

    norms = np.abs(A).max(axis=0, initial=0.0)
    norms[norms == 0] = 1
    with np.errstate(over="ignore"):
        A, d = A / norms, np.minimum(d / norms / norms, 1e30)

    def loss(z: Vector) -> float:
        return float(w @ multinomial(A @ z + offset, y) + 0.5 * np.sum(d * (z**2).T))

    C = offset.shape[1]
    z = np.zeros((A.shape[1], C))
    scale = w @ np.abs(A)
    for _ in range(200):
        t = A @ z + offset
        g = A.T @ (w[:, None] * multinomial_slope(t, y)) + d[:, None] * z
        if np.all(np.abs(g) <= 1e-12 * scale[:, None]):
            return z / norms[:, None]
        H = multinomial_curvature(t, w, A, A) + np.diag(np.repeat(d, C))
        unit = np.sqrt(np.maximum(1, d)).repeat(C)
        direction = -np.linalg.lstsq(H / unit / unit[:, None], g.ravel() / unit, rcond=1e-13)[0]
        direction = (direction / unit).reshape(z.shape)
        now, slope, step = loss(z), np.vdot(g, direction), 1.0
        if abs(slope) > 1e-10 * now:
            while loss(z + step * direction) > now + 1e-4 * step * slope:
                step /= 2
        z = z + step * direction
    raise ArithmeticError("Newton did not converge")


class Loss(NamedTuple):
    value: Callable[[Vector, Vector], Vector]
    slope: Callable[[Vector, Vector], Vector]
    solve: Callable[[Vector, Vector, Vector, Vector, Vector], Vector]


LOSSES = {
    "squares": Loss(lambda t, y: 0.5 * (t - y) ** 2, lambda t, y: t - y, least_squares),
    "logistic": Loss(logistic, logistic_slope, newton_logistic),
    "multinomial": Loss(multinomial, multinomial_slope, newton_multinomial),
}


def size(entry: Any) -> float:
    """|x_i|, or the norm of a row."""
    return abs(entry) if np.ndim(entry) == 0 else float(np.linalg.norm(entry))


def largest_gradient(problem: Problem, S: frozenset[int], g: Vector) -> int:
    """i <- argmax |g_i| over i in [n] \\ S."""
    return max(problem.outside(S), key=lambda i: size(g[i]))  # max and min keep the first of equals


def smallest_entry(S: frozenset[int], x: Vector) -> int:
    """j <- argmin |x_j| over j in S."""
    return min(sorted(S), key=lambda j: size(x[j]))


def support_of_size(problem: Problem, s: int, start: Iterable[int]) -> frozenset[int]:
    S = frozenset(int(j) for j in start)
    if len(S) != s or S - set(problem.outside()):
        raise ValueError(f"start must be {s} features of the problem, none of them forced")
    return S


def hard_threshold(problem: Problem, s: int, x: Vector) -> Vector:
    """H_s(x): the s entries of largest magnitude, 0 elsewhere."""
    kept = sorted(problem.outside(), key=lambda i: -size(x[i]))[:s]  # a stable sort
    H = np.zeros_like(x)
    H[kept] = x[kept]
    return H


def iht(problem: Problem, s: int, step: float, iterations: int) -> list[Step]:
    """Algorithm 1, Iterative Hard Thresholding; ends early once x stands still."""
    x = problem.zero  # 0 on forced features; full and a are their best companions
    full, a, value = problem.profile(x)
    steps = [Step(frozenset(), value)]
    for _ in range(iterations):
        x_new = hard_threshold(problem, s, full - step * problem.gradient(full, a))
        if np.linalg.norm(x_new - x) <= 1e-12 * np.linalg.norm(x_new):
            break
        x = x_new
        full, a, value = problem.profile(x)
        steps.append(Step(frozenset(np.nonzero(x)[0].tolist()), value))
    return steps


def omp(problem: Problem, s: int) -> list[Step]:
    """Algorithm 2, Orthogonal Matching Pursuit, from the empty support."""
    S: frozenset[int] = frozenset()
    x, a, value = problem.fit(S)
    steps = [Step(S, value)]
    while len(S) < s and problem.outside(S):
        i = largest_gradient(problem, S, problem.gradient(x, a))
        S = S | {i}
        x, a, value = problem.fit(S)
        steps.append(Step(S, value))
    return steps


def ompr(problem: Problem, s: int, start: Iterable[int]) -> list[Step]:
    """Algorithm 3, Orthogonal Matching Pursuit with Replacement."""
    S = support_of_size(problem, s, start)
    x, a, value = problem.fit(S)
    steps = [Step(S, value)]
    while S and problem.outside(S):
        i = largest_gradient(problem, S, problem.gradient(x, a))
        j = smallest_entry(S, x)
        S = (S | {i}) - {j}
        x, a, value = problem.fit(S)
        if value >= steps[-1].value:
            break
        steps.append(Step(S, value))
    return steps


def els(problem: Problem, s: int, start: Iterable[int]) -> list[Step]:
    """Algorithm 4, Exhaustive Local Search."""
    S = support_of_size(problem, s, start)
    x, _, value = problem.fit(S)
    steps = [Step(S, value)]
    while S and problem.outside(S):
        j = smallest_entry(S, x)
        i = min(problem.outside(S), key=lambda i: problem.fit((S | {i}) - {j}).value)
        S = (S | {i}) - {j}
        x, _, value = problem.fit(S)
        if value >= steps[-1].value:
            break
        steps.append(Step(S, value))
    return steps


def exchange(problem: Problem, s: int, start: Iterable[int]) -> list[Step]:
    """The best of all swaps (j out, i in), again and again until none improves."""
    S = support_of_size(problem, s, start)
    steps = [problem.step(S)]
    while S and problem.outside(S):
        swaps = [(S | {i}) - {j} for j, i in product(sorted(S), problem.outside(S))]
        best = min(map(problem.step, swaps), key=by_value)
        if best.value >= steps[-1].value:
            break
        S = best.support
        steps.append(best)
    return steps


def arht_core(
    problem: Problem,
    s: int,
    opt: float,
    rho: float,
    start: Iterable[int],
    rng: np.random.Generator,
    factor: float = 1e-3,
    half_stop: bool = True,
    max_iter: int = 10_000,
) -> list[Step]:
    """Algorithm 5, ARHT_core, with the practical changes under the paper's "Overall Algorithm".

    A step for the start, for each swap and for each unregularisation; its value is line 12's,
    the minimum of f (not of g_R) over the support.
    """

    def ridge(R: frozenset[int]) -> Vector:  # g_R(x) = f(x) + rho/2 ||x_R||^2
        return np.array([rho if i in R else 0.0 for i in range(problem.n)])

    R = frozenset(problem.outside())
    S = support_of_size(problem, s, start)
    x, a, g = problem.fit(S, ridge(R))
    steps = [problem.step(S)]
    for _ in range(max_iter):
        if steps[-1].value <= opt or not S or not problem.outside(S):  # line 12, or no swap at all
            break
        i = largest_gradient(problem, S, problem.gradient(x, a, ridge(R)))
        j = smallest_entry(S, x)
        S_new = (S | {i}) - {j}
        g_new = problem.fit(S_new, ridge(R)).value
        if g - g_new >= factor / s * (g - opt):  # line 19, as (prog_cond)
            S = S_new
        elif half_stop and len(S - R) >= len(S) / 2:
            break
        else:  # lines 21 and 22: sample i in R proportional to x_i^2, and unregularise it
            members = sorted(R & S)
            sums = np.cumsum([size(x[i]) ** 2 for i in members])
            if not members or sums[-1] == 0:
                break
            drawn = np.searchsorted(sums, rng.random() * sums[-1], side="right")
            R = R - {members[min(drawn, len(members) - 1)]}
        x, a, g = problem.fit(S, ridge(R))
        steps.append(problem.step(S))
    return steps


def arht_robust(
    problem: Problem,
    s: int,
    opt: float,
    rho: float,
    start: Iterable[int],
    seed: int,
    n_runs: int = 20,
    **options: Any,
) -> Step:
    """Algorithm 6, ARHT_robust: the best of all that n_runs runs of the core visit.

    Run z draws from its own stream; the runs end once one reaches opt. The options are the core's.
    """
    S = support_of_size(problem, s, start)
    best = problem.step(S)
    for z in range(n_runs):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(z,)))
        visited = arht_core(problem, s, opt, rho, S, rng, **options)
        best = min([best, *visited], key=by_value)
        if best.value <= opt:
            break
    return best


def arht(
    problem: Problem,
    s: int,
    rho: float,
    epsilon: float,
    start: Iterable[int],
    seed: int,
    lower: float,
    n_runs: int = 20,
    **options: Any,
) -> list[Step]:
    """Algorithm 6, ARHT: binary search for opt in [lower, f(start)].

    A step for the start and for each better support b; the last one is the answer. Unlike on
    paper, a better support is kept even where its guess m failed.
    """
    S = support_of_size(problem, s, start)
    b = problem.step(S)
    steps = [b]
    l, r = lower, b.value  # noqa: E741
    while r - l > epsilon:
        m = (l + r) / 2
        if not l < m < r:  # nothing left between two neighbouring floats
            break
        found = arht_robust(problem, s, m, rho, S, seed, n_runs, **options)
        if found.value < b.value:
            b, r = found, found.value
            steps.append(b)
        if found.value > m + epsilon / 3:
            l = m  # noqa: E741
    return steps


def best_subset(problem: Problem, s: int) -> Step:
    """The optimum, by trying every support of size s."""
    return min(map(problem.step, combinations(problem.outside(), s)), key=by_value)


def random_problem(
    seed: int, loss: str = "squares", kind: str = "gaussian", weighted: bool = False, **options: Any
) -> Problem:
    """A small problem with a planted sparse signal and noise: n in 6..15, m in 20..60.

    Kinds: "gaussian", "correlated" (neighbours in pairs at 0.999), "equicorrelated" (all pairs at
    0.8), "scaled" (columns from 0.1 to 10). Logistic and multinomial problems (of three classes, on
    four times as many rows) are drawn until they are clearly not separable. The options
    (fit_intercept, forced, ridge) are those of Problem.
    """
    rng = np.random.default_rng(seed)
    while True:
        n, m = int(rng.integers(6, 16)), int(rng.integers(20, 61))
        if loss == "multinomial":
            m *= 4
        X = rng.normal(size=(m, n))
        if kind == "correlated":
            X[:, 1::2] = 0.999 * X[:, : n - 1 : 2] + np.sqrt(1 - 0.999**2) * X[:, 1::2]
        elif kind == "equicorrelated":
            X = np.sqrt(0.8) * rng.normal(size=(m, 1)) + np.sqrt(0.2) * X
        elif kind == "scaled":
            X *= 10 ** rng.uniform(-1, 1, n)
        elif kind != "gaussian":
            raise ValueError(f"unknown kind {kind!r}")
        k = rng.integers(2, 6)
        coefficients = rng.choice([-1, 1], k) * rng.uniform(1, 2, k)
        signal = X[:, rng.choice(n, k, replace=False)] @ coefficients
        signal /= signal.std()
        if options.get("fit_intercept"):  # make it matter
            X, signal = X + X.std(axis=0) * rng.normal(size=n), signal + 0.5
        w = rng.uniform(0.3, 3, m) if weighted else None
        if loss == "squares":
            return Problem(X, signal + 0.5 * rng.normal(size=m), loss, w, **options)
        if loss == "multinomial":
            t = 1.5 * np.outer(signal, [1, -1, 0]) + X[:, [0, 2, 4]] / X[:, [0, 2, 4]].std(axis=0)
            y = (softmax(t).cumsum(axis=1) < rng.random((m, 1))).sum(axis=1)
        else:
            y = rng.random(m) < expit(1.5 * signal)
        problem = Problem(X, y, loss, w, **options)
        x, a, _ = Problem(X, problem.y, loss, w, problem.fit_intercept).fit(range(n))
        if np.abs(X @ x + a).max() < 10:
            return problem

"""Which few facts about a patient predict how diabetes will progress?

scikit-learn's diabetes data: 442 patients, 10 measurements, one score a year later. With squares
and pairwise products there are 64 candidate features. For s = 1..15 we look for the best s of
them, and compare with two usual answers: orthogonal matching pursuit and the LASSO. All three
models are least-squares fits on the features they chose, so only the choice differs.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import ellzero as lz

BASE = ["age", "sex", "bmi", "bp", "chol", "ldl", "hdl", "chol/hdl", "trig", "glucose"]
SIZES = range(1, 16)


def quadratic_features():
    """10 measurements, 45 products and 9 squares (sex has two values: its square says nothing)."""
    data, y = load_diabetes(return_X_y=True)
    Z = scale(data)
    columns, names = list(Z.T), list(BASE)
    for i, a in enumerate(BASE):
        for j, b in enumerate(BASE[i:], start=i):
            if not a == b == "sex":
                columns.append(Z[:, i] * Z[:, j])
                names.append(f"{a}²" if a == b else f"{a}·{b}")
    return scale(np.column_stack(columns)), y, names


def print_table(best, omp, lasso, total, names):
    print(" s     R²     loss      OMP    LASSO   features that came (+) and went (-)")
    before = set()
    for s in SIZES:
        now = {names[j] for j in best[s].support}
        changes = [f"+{name}" for name in sorted(now - before)]
        changes += [f"-{name}" for name in sorted(before - now)]
        loss, r2 = best[s].value, 1 - best[s].value / total
        print(f"{s:2} {r2:6.3f} {loss:8.0f} {omp[s]:8.0f} {lasso[s]:8.0f}  ", *changes)
        before = now


def draw(best, omp, lasso, filename):
    fig = Figure(figsize=(7, 6), dpi=150, layout="constrained")
    top, bottom = fig.subplots(2, sharex=True, height_ratios=[3, 2])
    loss = np.array([best[s].value for s in SIZES])
    for name, values, style in (("LASSO", lasso, "C2^:"), ("OMP", omp, "C1s--")):
        other = np.array([values[s] for s in SIZES])
        top.plot(SIZES, other, style, label=name)
        bottom.plot(SIZES, 100 * (other / loss - 1), style)
    top.plot(SIZES, loss, "C0o-", label="ellzero")
    bottom.axhline(0, color="C0")
    top.set(title="Diabetes progression, 64 candidate features", ylabel="loss  ½‖Xx − y‖²")
    bottom.set(xlabel="features in the model, s", ylabel="% above ellzero", xticks=SIZES)
    top.yaxis.set_major_formatter("{x:,.0f}")
    top.legend(frameon=False, reverse=True)
    for ax in (top, bottom):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
    fig.savefig(filename)


def main():
    X, y, names = quadratic_features()
    f = lz.LeastSquares(X, y, fit_intercept=True)

    best = lz.path(f, SIZES)
    omp = {s: lz.omp(f, s).value for s in SIZES}
    lasso = {s: lz.lasso(f, s).value for s in SIZES}  # refitted on the features it chose

    print_table(best, omp, lasso, total=f.value(np.zeros(len(names))), names=names)
    draw(best, omp, lasso, "demo.png")
    print("\nThe picture is in demo.png.")


if __name__ == "__main__":
    main()

"""A report on the diabetes data: `python examples/report.py` writes report.json and report.html.

With `--picture FILE.png` Chromium also takes the picture that stands in docs/report.md.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures

from ellzero.report import render, study

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def diabetes() -> dict:
    """The best of 64 features: ten measurements and their products."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    products = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
    return study(
        products.fit_transform(X).drop(columns="sex^2"),
        y,
        sizes=range(1, 16),
        methods=("auto", "omp", "lasso"),
        cv=KFold(10, shuffle=True, random_state=0),
        title="Diabetes: which measurements tell its progress?",
        target="progression",
    )


def photograph(page: Path, picture: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("examples/report.py: a picture needs chromium, which is not installed.")
    with tempfile.TemporaryDirectory() as profile:
        options = (f"--user-data-dir={profile}", "--window-size=860,1430")
        subprocess.run(
            [browser, *FLAGS, *options, f"--screenshot={picture}", page.resolve().as_uri()],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE.png")
    args = parser.parse_args()
    found = diabetes()
    Path("report.json").write_text(json.dumps(found), encoding="utf-8")
    page = Path("report.html")
    page.write_text(render(found), encoding="utf-8")
    print(f"wrote report.json and {page}")
    if args.picture:
        photograph(page, args.picture)
        print(f"wrote {args.picture}")

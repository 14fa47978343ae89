"""`python -m benchmarks.streaming`: least squares from a Parquet file that need not fit in memory.

For every number of rows: write a file, then, each in a process of its own, (a) read it and compute
the matrix product of every batch, the least that any method must do, and (b) make statistics of it
and a whole path of models. Peak memory should not depend on the number of rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import facts

RESULTS = Path(__file__).resolve().parent / "results" / "streaming.json"
BATCH = 40_000
LARGEST = 20  # the largest model of the path


def write(file: Path, m: int, n: int, group: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    names = [*(f"x{j}" for j in range(n)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with parquet.ParquetWriter(file, schema, compression="none", use_dictionary=False) as out:
        for begin in range(0, m, group):
            X = rng.standard_normal((min(group, m - begin), n))
            y = X[:, :10].sum(axis=1) + rng.standard_normal(len(X))
            out.write_table(pa.table([*X.T.copy(), y], schema=schema))


def yardstick(file: Path) -> None:
    from pyarrow import parquet
    from scipy.linalg.blas import dsyrk

    total: Any = 0.0
    with parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as table:
        for batch in table.iter_batches(BATCH):
            X = np.empty((batch.num_rows, batch.num_columns), order="F")
            for j, column in enumerate(batch.columns):
                X[:, j] = column.to_numpy()
            total = total + dsyrk(1.0, X, trans=1)


def ellzero(file: Path) -> None:
    import ellzero as lz

    stats = lz.Statistics.from_parquet(file, None, "y")
    found = lz.path(
        lz.LeastSquares.from_statistics(stats, fit_intercept=True), range(1, LARGEST + 1)
    )
    assert found[10].support.tolist() == list(range(10))


WORK: dict[str, Callable[[Path], None]] = {"read + syrk": yardstick, "ellzero": ellzero}


def work(name: str, file: Path) -> None:
    """What a process of its own does: the work, and a report of what it took without imports."""
    for module in ("ellzero", "pyarrow.parquet", "scipy.linalg.blas"):
        import_module(module)
    clock, cpu = time.perf_counter(), time.process_time()
    WORK[name](file)
    report = {
        "seconds": time.perf_counter() - clock,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(report))


def measured(name: str, file: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.streaming", "--work", name, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.streaming", description=__doc__)
    parser.add_argument("--rows", default="100000,300000,1000000", help="comma-separated")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--group", type=int, default=250_000, help="rows of a row group")
    parser.add_argument("--folder", type=Path, help="where the files go, which are deleted again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = parse()
    if args.work:
        work(args.work[0], Path(args.work[1]))
        return
    records = []
    print(f"{'rows':>12} {'GB':>6}  {'work':12} {'seconds':>9} {'CPU s':>9} {'peak MB':>9}")
    for m in map(int, args.rows.split(",")):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            file = Path(folder) / "rows.parquet"
            write(file, m, args.columns, args.group)
            size = file.stat().st_size
            for name in WORK:
                took = measured(name, file)
                records.append(
                    {"rows": m, "columns": args.columns, "bytes": size, "work": name, **took}
                )
                print(
                    f"{m:>12} {size / 1e9:>6.2f}  {name:12} {took['seconds']:>9.2f} "
                    f"{took['cpu_seconds']:>9.2f} {took['peak_mb']:>9.0f}",
                    flush=True,
                )
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(
        json.dumps({"machine": facts.machine(), "records": records}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()

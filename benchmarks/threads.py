"""Threads: processes of scikit-learn (n_jobs) and threads of BLAS, in one search.

    python -m benchmarks.threads [--quick] [--write]

MKFDACV with five folds on made-up data of three classes and ten kernels, with `n_jobs` processes
and a number of BLAS threads in each (OPENBLAS_NUM_THREADS). Fits of at most 1000 rows limit BLAS
to one thread; "2, not limited" switches that off. Every combination is timed in its own process,
after a fit on few rows to start the workers, the combinations in turn, three times. Seconds are
medians: of the clock, and of all processors together. The load is the number of processes that
wanted a processor, the mean of the last minute: far above two, the machine was busy with other
work, and times of the clock depend on that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import joblib
import numpy as np

from benchmarks._command import command_line, report
from benchmarks._tables import environments, markdown

SIZES = {"300": 300, "1500": 1500}
#: Values of n_jobs and numbers of BLAS threads.
COMBINATIONS = [(1, "1"), (1, "2"), (1, "2, not limited"), (2, "1"), (2, "2")]
N_REPEATS = 3
_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_CODE = "from benchmarks import threads; threads.run({n_jobs}, {n_rows}, {limited})"


def run(n_jobs: int, n_rows: int, limited: bool) -> None:
    """Print seconds of the clock for one search, as JSON."""
    from manykernels import MKFDACV, KernelUnion
    from manykernels.estimators import base
    from manykernels.kernels import RBF, Linear

    if not limited:
        base._FEW_ROWS = 0
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 3
    X = rng.normal(size=(n_rows, 9)) + 0.8 * np.eye(9)[y]
    kernels = [("linear", Linear()), *((f"{j}", RBF(0.5).on([j])) for j in range(9))]
    stack = KernelUnion(kernels).fit(X)(X)
    model = MKFDACV("precomputed", ps=[1, 2], regs=[0.1, 1.0, 10.0], n_jobs=n_jobs)
    few = np.arange(90)
    model.fit(stack[np.ix_(few, few)], y[few])
    begin = time.perf_counter()
    model.fit(stack, y)
    print(json.dumps({"clock": time.perf_counter() - begin}))


def measured(n_jobs: int, threads: str, n_rows: int) -> dict[str, float]:
    """Return seconds of the clock, and of the processors in the whole process and its children."""
    n_threads, *unlimited = threads.split(", ")
    environment = {**os.environ, **dict.fromkeys(_VARIABLES, n_threads)}
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", _CODE.format(n_jobs=n_jobs, n_rows=n_rows, limited=not unlimited)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    after = os.times()
    total = after.children_user + after.children_system
    total -= before.children_user + before.children_system
    return {"clock": json.loads(done.stdout.splitlines()[-1])["clock"], "processors": total}


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of the documentation, made of the results by number of rows."""
    paragraphs = (__doc__ or "").strip().split("\n\n")[2:]
    parts = [
        "# Threads",
        "Written by `python -m benchmarks.threads --write`. "
        + " ".join(paragraphs).replace("\n", " "),
        environments(results),
    ]
    for name, part in results.items():
        rows = [
            [
                *combination.split(" x "),
                f"{np.median(one['clock']):.2f}",
                f"{np.median(one['processors']):.2f}",
            ]
            for combination, one in part["seconds"].items()
        ]
        header = ["n_jobs", "BLAS threads", "clock, s", "processors with start, s"]
        parts += [f"## {name} rows", markdown(header, rows), f"Load: {part['load']:.1f}."]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("threads", "Processes and threads.", list(SIZES))
    options = parser.parse_args(arguments)
    results = {}
    for name in options.sets:
        n_rows = 120 if options.quick else SIZES[name]
        seconds: dict[str, dict[str, list[float]]] = {}
        for _ in range(1 if options.quick else N_REPEATS):
            for n_jobs, n_threads in COMBINATIONS:
                found = measured(n_jobs, n_threads, n_rows)
                one = seconds.setdefault(f"{n_jobs} x {n_threads}", {})
                for kind, value in found.items():
                    one.setdefault(kind, []).append(value)
        results[name] = {
            "seconds": seconds,
            "load": os.getloadavg()[0],
            "n_cores": joblib.cpu_count(),
        }
    report("threads", results, page, options.write, SIZES)
    return 0


if __name__ == "__main__":
    sys.exit(main())

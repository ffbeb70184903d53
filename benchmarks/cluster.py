"""MKFDA on a cluster of dask: the same result, and how time falls with workers.

    python -m benchmarks.cluster [--quick] [--rows 200000] [--write]

Ten Gaussian kernels of 200 landmarks each, as in ``benchmarks.scale``; rows are drawn on the
workers. Clusters are on this machine, with one and two workers of one thread each. Strong scaling:
the same rows for both. Weak scaling: as many rows for each worker. From the times of the parts of
a fit, the time with up to a hundred workers is estimated.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from benchmarks._command import Results, command_line, report
from benchmarks._scale_problems import ROWS_DRAWN, simulated, simulated_kernels
from benchmarks._scale_runner import N_LANDMARKS, REG
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKFDA, Nystrom
from manykernels.scale.moments import Moments, PartMoments

# Relative difference of moments, and of weights, that was allowed before anything was measured.
MOST_DIFFERENCE = 1e-12
ROWS_QUICK = 4000
WORKERS_MODELLED = (1, 2, 10, 30, 100)
ROWS_MODELLED = (10**7, 10**9)
# Bytes a second between workers of a cluster, for the estimate: 10 Gbit/s Ethernet.
BANDWIDTH = 1.25e9


def fitted(n_rows: int, n_workers: int) -> tuple[float, MKFDA]:
    """Seconds of learning on a cluster, or on rows in memory for no workers; and the model."""
    model = MKFDA(simulated_kernels(), p=1, reg=REG, approximation=Nystrom(N_LANDMARKS))
    if n_workers == 0:
        X, y = simulated(n_rows).whole()
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start, model
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
        start = time.perf_counter()
        model.fit(*simulated(n_rows).lazy())
        seconds = time.perf_counter() - start
    return seconds, model


def measure(n_rows: int) -> dict[str, Any]:
    """Fits to the same rows in memory and by workers, and to as many rows for each worker."""
    seconds, memory = fitted(n_rows, 0)
    reference = _moments(memory)
    same = [_row(n_rows, 0, seconds)]
    for workers in (1, 2):
        seconds, model = fitted(n_rows, workers)
        apart = np.abs(_moments(model) - reference).max() / np.abs(reference).max()
        weights = np.abs(model.weights_ - memory.weights_).max()
        same.append(_row(n_rows, workers, seconds) | {"moments": apart, "weights": weights})
    half = n_rows // 2
    each = [
        _row(half * workers, workers, fitted(half * workers, workers)[0]) for workers in (1, 2)
    ]
    return {
        "same_rows": same,
        "rows_per_worker": each,
        "n_bytes": reference.nbytes,
        "merging_seconds": merging_seconds(memory._stream.moments.total.n_features),
    }


def _row(n_rows: int, n_workers: int, seconds: float) -> dict[str, Any]:
    """One fit; `moments` and `weights` are how far its own are from those in memory."""
    return {
        "n_rows": n_rows,
        "n_workers": n_workers,
        "seconds": seconds,
        "moments": 0.0,
        "weights": 0.0,
    }


def _moments(model: MKFDA) -> np.ndarray:
    """The moments that were summed."""
    stream: PartMoments = model._stream.moments
    return stream.total.matrix


def merging_seconds(n_features: int) -> float:
    """Time to add two moments of so many features."""
    one, other = Moments.none(n_features, 3), Moments.none(n_features, 3)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        one + other
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def modelled(per_row: float, fixed: float, merge: float, size: float) -> list[list[str]]:
    """Estimated seconds by workers: rows divided, a tree of merges, and what one machine does."""
    rows = []
    for n_rows in ROWS_MODELLED:
        for workers in WORKERS_MODELLED:
            chunks = n_rows / 10**6
            # Each worker adds up its chunks; the tree merges those of the workers by eights.
            levels = int(np.ceil(np.log(max(workers, 2)) / np.log(8)))
            tree = chunks / workers * merge + levels * 8 * (size / BANDWIDTH + merge)
            work = n_rows * per_row / workers
            total = fixed + tree + work
            rows.append(
                [
                    f"{n_rows:.0e}".replace("e+0", "e"),
                    str(workers),
                    f"{total:.0f}",
                    f"{100 * work / total:.0f} %",
                    f"{tree:.1f}",
                ]
            )
    return rows


def page(results: Results) -> str:
    """The page of the documentation."""
    part = results["cluster"]
    rows = [
        [
            ("rows in memory, two threads", "1 worker", "2 workers")[fit["n_workers"]],
            f"{fit['seconds']:.1f}",
            f"{fit['moments']:.0e}",
            f"{fit['weights']:.0e}",
        ]
        for fit in part["same_rows"]
    ]
    same = markdown(["", "seconds", "moments differ by", "weights differ by"], rows)
    worst = max(fit["moments"] for fit in part["same_rows"])
    strong, weak = part["same_rows"][1:], part["rows_per_worker"]
    faster = strong[0]["seconds"] / strong[1]["seconds"]
    efficiency = weak[0]["seconds"] / weak[1]["seconds"]
    scaling = markdown(
        ["", "rows", "seconds", "ratio"],
        [
            ["strong, 1 worker", *_cells(strong[0]), ""],
            ["strong, 2 workers", *_cells(strong[1]), f"{faster:.2f} times faster"],
            ["weak, 1 worker", *_cells(weak[0]), ""],
            ["weak, 2 workers", *_cells(weak[1]), f"{efficiency:.0%} of the efficiency"],
        ],
    )
    # Two sizes on one worker tell the time of a row and what does not depend on rows.
    large, small = strong[0], weak[0]
    per_row = (large["seconds"] - small["seconds"]) / (large["n_rows"] - small["n_rows"])
    fixed = max(small["seconds"] - small["n_rows"] * per_row, 0.0)
    merge, n_bytes = part["merging_seconds"], part["n_bytes"]
    estimate = markdown(
        ["rows", "workers", "seconds", "of which rows", "merging s"],
        modelled(per_row, fixed, merge, n_bytes),
    )
    parts = [
        "# On a cluster",
        "Written by `python -m benchmarks.cluster --write`. Ten Gaussian kernels of 200 "
        "landmarks, 2000 features; rows are drawn on the workers, chunks of "
        f"{ROWS_DRAWN} rows, one thread for each worker, all on one machine.",
        environments(results),
        f"{large['n_rows']} rows:",
        same,
        "Differences of moments are relative to the largest; the bound of "
        f"{MOST_DIFFERENCE:.0e} is {verdict(worst <= MOST_DIFFERENCE)}.",
        scaling,
        f"A row takes {1e6 * per_row:.0f} µs of a worker (kernels, features and products, in both "
        f"passes), everything that does not depend on rows {fixed:.1f} s, adding two moments of "
        f"{n_bytes / 2**20:.0f} MiB {1e3 * merge:.0f} ms. From these, with chunks of a million "
        f"rows and {BANDWIDTH / 1.25e8:.0f} Gbit/s between workers (an estimate, not measured):",
        estimate,
    ]
    return "\n\n".join(parts) + "\n"


def _cells(fit: dict[str, Any]) -> list[str]:
    return [str(fit["n_rows"]), f"{fit['seconds']:.1f}"]


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("cluster", (__doc__ or "").split("\n", 1)[0], ["cluster"])
    parser.add_argument("--rows", type=int, default=200_000, help="rows of strong scaling")
    options = parser.parse_args(arguments)
    part = measure(ROWS_QUICK if options.quick else options.rows)
    report("cluster", {"cluster": part}, page, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""MKFDA on a cluster of dask: the same result, and how time falls with workers.

    python -m benchmarks.cluster [--rows 200000] [--write]

Ten Gaussian kernels of 200 landmarks each, as in ``benchmarks.scale``; rows are drawn on the
workers. Clusters are on this machine, with one and two workers of one thread each. Strong scaling:
the same rows for both. Weak scaling: as many rows for each worker. From the times of the parts of
a fit, the time with up to a hundred workers is estimated.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from benchmarks._command import write_page
from benchmarks._scale_problems import ROWS_DRAWN, simulated, simulated_kernels
from benchmarks._scale_runner import N_LANDMARKS, REG
from benchmarks._tables import environment, markdown, verdict
from manykernels import MKFDA, Nystrom
from manykernels.scale.moments import Moments, PartMoments

# Relative difference of moments, and of weights, that was allowed before anything was measured.
MOST_DIFFERENCE = 1e-12
WORKERS_MODELLED = (1, 2, 10, 30, 100)
ROWS_MODELLED = (10**7, 10**9)
# Bytes a second between workers of a cluster, for the estimate: 10 Gbit/s Ethernet.
BANDWIDTH = 1.25e9


@dataclass(frozen=True)
class Fit:
    """One fit, and how long it took."""

    n_rows: int
    n_workers: int
    seconds: float
    model: Any

    @property
    def moments(self) -> np.ndarray:
        """The moments that were summed."""
        stream: PartMoments = self.model._stream.moments
        return stream.total.matrix


def fitted(n_rows: int, n_workers: int) -> Fit:
    """Learn on a cluster, or on rows in memory for no workers."""
    model = MKFDA(simulated_kernels(), p=1, reg=REG, approximation=Nystrom(N_LANDMARKS))
    if n_workers == 0:
        X, y = simulated(n_rows).whole()
        start = time.perf_counter()
        model.fit(X, y)
        return Fit(n_rows, 0, time.perf_counter() - start, model)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
        start = time.perf_counter()
        model.fit(*simulated(n_rows).lazy())
        seconds = time.perf_counter() - start
    return Fit(n_rows, n_workers, seconds, model)


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


def report(strong: list[Fit], weak: list[Fit], memory: Fit, merge: float) -> str:
    """The page."""
    reference = memory.moments
    size = np.abs(reference).max()
    rows = []
    for fit in (memory, *strong):
        difference = float(np.abs(fit.moments - reference).max() / size)
        apart = float(np.abs(fit.model.weights_ - memory.model.weights_).max())
        name = f"{fit.n_workers} workers" if fit.n_workers else "rows in memory, two threads"
        rows.append([name, f"{fit.seconds:.1f}", f"{difference:.0e}", f"{apart:.0e}"])
    same = markdown(["", "seconds", "moments differ by", "weights differ by"], rows)
    worst = max(float(np.abs(fit.moments - reference).max() / size) for fit in strong)
    scaling = markdown(
        ["", "rows", "seconds", "ratio"],
        [
            ["strong, 1 worker", str(strong[0].n_rows), f"{strong[0].seconds:.1f}", ""],
            [
                "strong, 2 workers",
                str(strong[1].n_rows),
                f"{strong[1].seconds:.1f}",
                f"{strong[0].seconds / strong[1].seconds:.2f} times faster",
            ],
            ["weak, 1 worker", str(weak[0].n_rows), f"{weak[0].seconds:.1f}", ""],
            [
                "weak, 2 workers",
                str(weak[1].n_rows),
                f"{weak[1].seconds:.1f}",
                f"{100 * weak[0].seconds / weak[1].seconds:.0f} % of the efficiency",
            ],
        ],
    )
    # Two sizes on one worker tell the time of a row and what does not depend on rows.
    large, small = strong[0], weak[0]
    per_row = (large.seconds - small.seconds) / (large.n_rows - small.n_rows)
    fixed = max(small.seconds - small.n_rows * per_row, 0.0)
    n_bytes = float(memory.moments.nbytes)
    estimate = markdown(
        ["rows", "workers", "seconds", "of which rows", "merging s"],
        modelled(per_row, fixed, merge, n_bytes),
    )
    return (
        "# On a cluster\n\n`python -m benchmarks.cluster --write`. Ten Gaussian kernels of 200 "
        "landmarks, 2000 features; rows are drawn on the workers, chunks of "
        f"{ROWS_DRAWN} rows, one thread for each worker, all on one machine. {environment()}\n\n"
        f"{strong[0].n_rows} rows:\n\n{same}\n\nDifferences of moments are relative to the "
        f"largest; the bound of {MOST_DIFFERENCE:.0e} is {verdict(worst <= MOST_DIFFERENCE)}.\n\n"
        f"{scaling}\n\n"
        f"A row takes {1e6 * per_row:.0f} µs of a worker (kernels, features and products, in both "
        f"passes), everything that does not depend on rows {fixed:.1f} s, adding two moments of "
        f"{n_bytes / 2**20:.0f} MiB {1e3 * merge:.0f} ms. From these, with chunks of a million "
        f"rows and {BANDWIDTH / 1.25e8:.0f} Gbit/s between workers (an estimate, not measured):"
        f"\n\n{estimate}\n"
    )


def main(arguments: list[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("--rows", type=int, default=200_000, help="rows of strong scaling")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/cluster.md")
    options = parser.parse_args(arguments)
    half = options.rows // 2
    memory = fitted(options.rows, 0)
    strong = [fitted(options.rows, workers) for workers in (1, 2)]
    weak = [fitted(half * workers, workers) for workers in (1, 2)]
    page = report(
        strong, weak, memory, merging_seconds(memory.model._stream.moments.total.n_features)
    )
    print(page)
    if options.write:
        write_page("cluster", page)
    return 0


if __name__ == "__main__":
    sys.exit(main())

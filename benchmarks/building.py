"""What it costs to compute kernels from a table, beside what is done with them.

    python -m benchmarks.building [--quick] [--sets fits,laplacian,wide,after]
                                 [--threads 1 2] [--write]

Each row compares two ways to the same numbers, run in turn in one process:

- *fits*: MKFDA on a table (6 kernels of 4000 rows) with MKFDA on the ready stack of the same
  kernels. Kernels of the same columns share their distances, those of six views do not.
- *laplacian*: the Gram matrix of a Laplacian kernel with SciPy's L1 distances alone.
- *wide*: a data frame of 200 rows and 60 000 named columns in three views with the same numbers
  as an array.
- *after*: eight kernels, four after each of two transformers, with the same kernels of tables
  transformed beforehand. Both fit the transformers and the kernels.

Seconds are medians: of the processor with one thread, of the clock with more.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import Results, command_line, load, report
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKFDA, KernelUnion
from manykernels.kernels import RBF, Laplacian, Linear

SETS = ["fits", "laplacian", "wide", "after"]
ROWS = 4000
REPETITIONS = 5
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


Way = Callable[[], Any]


# -- measurements --------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two ways to the same numbers: the first may take `bound` times as long as the second.

    `prepare` returns both, before each time that they are measured.
    """

    what: str
    prepare: Callable[[], Sequence[Way]]
    bound: float


@dataclass(frozen=True)
class Row:
    """A measured pair."""

    what: str
    threads: int
    seconds: float
    reference: float
    bound: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.reference

    @property
    def held(self) -> bool:
        return self.ratio <= self.bound


def measure(pair: Pair, threads: int, repetitions: int) -> Row:
    """Medians of both ways, run in turn."""
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds: tuple[list[float], list[float]] = ([], [])
    with threadpool_limits(threads):
        for _ in range(repetitions):
            for way, times in zip(pair.prepare(), seconds, strict=True):
                begin = clock()
                way()
                times.append(clock() - begin)
    taken, reference = (float(np.median(some)) for some in seconds)
    return Row(pair.what, threads, taken, reference, pair.bound)


def fits(X: np.ndarray, y: np.ndarray) -> Iterator[Pair]:
    """A table and the ready stack of its kernels."""
    places = np.array_split(np.arange(X.shape[1]), 6)
    shared = {f"rbf({width:g})": RBF("median", width) for width in WIDTHS}
    kinds = {
        "linear + 5 Gaussian kernels of all columns": {"linear": Linear(), **shared},
        "6 Gaussian kernels of a sixth of the columns": {
            f"view{j}": RBF("median").on(slice(some[0], some[-1] + 1))
            for j, some in enumerate(places)
        },
    }
    for what, kernels in kinds.items():
        stack = KernelUnion(kernels).fit(X)(X)
        ways = (partial(MKFDA(kernels).fit, X, y), partial(MKFDA("precomputed").fit, stack, y))
        yield Pair(f"MKFDA, {len(X)} rows, {what}: table / stack", partial(tuple, ways), 1.6)


def laplacian(shapes: list[tuple[int, int]]) -> Iterator[Pair]:
    """A Gram matrix and SciPy's distances."""
    for shape in shapes:
        X = np.random.default_rng(0).standard_normal(shape)
        ways = (partial(Laplacian().fit(X), X), partial(cdist, X, X, "cityblock"))
        what = f"Laplacian, {shape[0]} × {shape[1]}: Gram matrix / L1 distances of SciPy"
        yield Pair(what, partial(tuple, ways), 1.0)


def wide(n_rows: int, n_columns: int) -> Iterator[Pair]:
    """Named columns and the same numbers without names."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X, X_new = (rng.standard_normal((n_rows, n_columns)) + 0.01 * y[:, None] for _ in range(2))
    names = [f"column{j}" for j in range(n_columns)]
    frame, frame_new = (pd.DataFrame(table, columns=names) for table in (X, X_new))
    parts = [slice(part[0], part[-1] + 1) for part in np.array_split(np.arange(n_columns), 3)]
    named = MKFDA({f"view{j}": RBF().on(names[part]) for j, part in enumerate(parts)})
    plain = MKFDA({f"view{j}": RBF().on(part) for j, part in enumerate(parts)})
    what = f"{n_rows} × {n_columns} in 3 views: frame / array"
    fitting = (partial(named.fit, frame, y), partial(plain.fit, X, y))
    yield Pair(f"fit, {what}", partial(tuple, fitting), 1.5)

    def predicting() -> tuple[Way, Way]:
        # Fitted anew, so that nothing is left of an earlier prediction.
        for fit in fitting:
            fit()
        return partial(named.predict, frame_new), partial(plain.predict, X_new)

    yield Pair(f"first predict, {what}", predicting, 1.5)


def after(n_rows: int) -> Iterator[Pair]:
    """Kernels with transformers of their own and kernels of transformed tables."""
    X = np.random.default_rng(0).gamma(1.0, size=(n_rows, 36))
    transformers = [
        StandardScaler(),
        QuantileTransformer(n_quantiles=100, output_distribution="normal", random_state=0),
    ]
    union = KernelUnion(
        {
            f"{type(one).__name__}({width:g})": RBF("median", width).after(one)
            for one in transformers
            for width in WIDTHS[:4]
        }
    )
    plain = KernelUnion(
        {
            f"{start}({width:g})": RBF("median", width).on(slice(start, start + X.shape[1]))
            for start in (0, X.shape[1])
            for width in WIDTHS[:4]
        }
    )

    def beforehand() -> Any:
        table = np.hstack([one.fit_transform(X) for one in transformers])
        return plain.fit(table)(table)

    ways = (lambda: union.fit(X)(X), beforehand)
    what = f"union, {n_rows} rows, 4 kernels after each of 2 transformers: after / beforehand"
    yield Pair(what, partial(tuple, ways), 1.2)


def pairs(name: str, quick: bool) -> Iterator[Pair]:
    """All pairs of a set."""
    if name == "fits" and (data := load("satimage", _data.satimage)) is not None:
        X, y = data
        n_rows = 400 if quick else ROWS
        yield from fits(X[:n_rows], y[:n_rows])
    if name == "laplacian":
        yield from laplacian([(400, 36)] if quick else [(ROWS, 36), (2000, 500)])
    if name == "wide":
        yield from wide(50, 3000) if quick else wide(200, 60000)
    if name == "after":
        yield from after(400 if quick else ROWS)


def run(name: str, quick: bool, threads: list[int]) -> list[Row]:
    """All rows of a set, with each of these numbers of threads."""
    rows = []
    for pair in pairs(name, quick):
        for n_threads in threads[:1] if quick else threads:
            rows.append(measure(pair, n_threads, 2 if quick else REPETITIONS))
            print(_cells(rows[-1]), file=sys.stderr, flush=True)
    return rows


# -- reports -------------------------------------------------------------------------------

HEADER = ["what", "threads", "seconds", "reference", "ratio", "at most", ""]


def _cells(row: Row) -> list[str]:
    return [
        row.what,
        str(row.threads),
        f"{row.seconds:.3g}",
        f"{row.reference:.3g}",
        f"{row.ratio:.2f}",
        f"{row.bound:g}",
        verdict(row.held),
    ]


def page(results: Results) -> str:
    """The page of the documentation."""
    rows = [Row(**row) for part in results.values() for row in part["rows"]]
    parts = [
        "# Building kernels",
        "Written by `python -m benchmarks.building --write`. Two ways to the same numbers, run in "
        f"turn; medians of {REPETITIONS}. Seconds of the processor with one thread, of the clock "
        "with more.",
        environments(results),
        markdown(HEADER, [_cells(row) for row in rows], n_left=1),
    ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("building", "Kernels from a table, beside learning.", SETS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options = parser.parse_args(arguments)
    results = {}
    for name in options.sets:
        if rows := run(name, options.quick, options.threads):
            results[name] = {"rows": rows}
    if results:
        report("building", results, page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())

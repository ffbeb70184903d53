"""MKFDA on kernels that do not fit into memory, exactly: single precision, on disk.

    python -m benchmarks.medium [--quick] [--sets memory,disk] [--samples 10000]
        [--folder .] [--write]

Fifty Gaussian kernels of 16 features in ten classes: ten widths on all features, and ten on each
of four groups of four features. The stack is written to disk in single precision, and MKFDA learns
from it there, with a certificate for the kernels as they are stored. Beside it the same fit of a
fifth of the samples, from disk in single precision and from memory in double precision.

Shown are times, wall clock and processor, of building the stack and of fitting; the peak of the
memory that the process itself holds during each (``RssAnon``: the page cache, which the system
takes back when it needs it, is not part of it), in GiB and in matrices of m × m float64; relative
gap, factorisations, and the accuracy on fresh rows.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks._command import Results, command_line, report
from benchmarks._meter import Meter
from benchmarks._tables import environments, markdown
from manykernels import MKFDA, KernelStack, KernelUnion
from manykernels.kernels import RBF

N_CLASSES, N_FEATURES = 10, 16
N_CENTRES = 5  # of each class, so that classes are not convex
N_FRESH = 500
WIDTHS = np.logspace(-0.6, 1.2, 10)
REG = 1.0
# The fits beside have this part of the samples.
SHARE = 5
SETS = ["memory", "disk", "large"]
SAMPLES_QUICK = 600

_GIB = 2**30


def make_data(n_samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten classes of several clusters each, like the digits of different hands."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((N_CLASSES, N_CENTRES, N_FEATURES))
    y, cluster = rng.integers(N_CLASSES, size=n_samples), rng.integers(N_CENTRES, size=n_samples)
    return centres[y, cluster] + 0.9 * rng.standard_normal((n_samples, N_FEATURES)), y


def make_kernels() -> KernelUnion:
    """Fifty kernels: ten widths on all features and on each of four groups."""
    groups = {"all": None} | {f"part{k}": list(range(4 * k, 4 * k + 4)) for k in range(4)}
    return KernelUnion(
        [
            (f"{group}({width:.2f})", RBF("scale", float(width), columns=columns))
            for group, columns in groups.items()
            for width in WIDTHS
        ]
    )


@dataclass(frozen=True)
class Result:
    """One stack built and learnt from, measured.

    Threads and weights are None in figures of earlier runs.
    """

    n_samples: int
    n_kernels: int
    storage: str
    stack_bytes: int
    build_seconds: float
    build_processor: float
    fit_seconds: float
    fit_processor: float
    peak_bytes: float
    rel_gap: float
    rel_rounding: float
    n_inner_solves: int
    accuracy: float
    n_threads: int | None = None
    weights: list[float] | None = None


def run(n_samples: int, dtype: str, folder: Path | None) -> Result:
    """Build a stack, in a file of `folder` or in memory, learn from it, and predict fresh rows."""
    X, y = make_data(n_samples + N_FRESH)
    train, fresh = X[:n_samples], X[n_samples:]
    path = None if folder is None else folder / f"{n_samples}-{dtype}.npy"
    with Meter() as building:
        union = make_kernels().fit(train)
        stack: KernelStack = union(train, dtype=dtype, memmap=path)
    with Meter() as fitting:
        model = MKFDA("precomputed", reg=REG).fit(stack, y[:n_samples])
    accuracy = model.score(union(fresh, train, dtype=dtype), y[n_samples:])
    result = Result(
        n_samples=n_samples,
        n_kernels=stack.n_kernels,
        storage=f"{dtype}, {'memory' if path is None else 'disk'}",
        stack_bytes=stack.data.nbytes,
        build_seconds=building.seconds,
        build_processor=building.processor,
        fit_seconds=fitting.seconds,
        fit_processor=fitting.processor,
        peak_bytes=fitting.peak_bytes,
        rel_gap=model.certificate_.rel_gap,
        rel_rounding=model.certificate_.rel_rounding,
        n_inner_solves=model.n_inner_solves_,
        accuracy=accuracy,
        n_threads=max(pool["num_threads"] for pool in threadpool_info()),
        weights=model.weights_.tolist(),
    )
    if path is not None:
        path.unlink()
    return result


def table(results: list[Result]) -> str:
    """One row per fit."""
    header = [
        "m",
        "stack",
        "threads",
        "GiB",
        "build, s",
        "cpu, s",
        "fit, s",
        "cpu, s",
        "peak, GiB",
    ]
    header += ["in m × m", "gap", "rounding", "factorisations", "accuracy"]
    rows = [
        [
            str(one.n_samples),
            one.storage,
            "" if one.n_threads is None else str(one.n_threads),
            f"{one.stack_bytes / _GIB:.2f}",
            *(f"{seconds:.1f}" for seconds in (one.build_seconds, one.build_processor)),
            *(f"{seconds:.1f}" for seconds in (one.fit_seconds, one.fit_processor)),
            f"{one.peak_bytes / _GIB:.2f}",
            f"{one.peak_bytes / (8 * one.n_samples**2):.1f}",
            f"{one.rel_gap:.1e}",
            f"{one.rel_rounding:.1e}",
            str(one.n_inner_solves),
            f"{one.accuracy:.3f}",
        ]
        for one in results
    ]
    return markdown(header, rows)


def findings(results: dict[str, Result]) -> list[str]:
    """What single precision changes, and how the time grows with the samples."""
    double, single, large = (results.get(name) for name in SETS)
    lines = []
    if double and double.weights and single and single.weights:
        apart = np.abs(np.subtract(single.weights, double.weights)).max()
        lines.append(
            f"Weights learnt from {double.n_samples} samples in single and in double precision "
            f"differ by {apart:.1e} at most."
        )
    # The number of threads changes the processor time.
    if double and large and double.n_threads == large.n_threads:
        times = large.fit_processor / double.fit_processor
        growth = large.n_samples / double.n_samples
        lines.append(
            f"A fit of {large.n_samples} samples from disk takes {times:.0f} times the processor "
            f"time of one of {double.n_samples} in memory; factorisations alone grow by "
            f"{growth**3:.0f}, kernels by {growth**2:.0f}."
        )
    return lines


def page(results: Results) -> str:
    """The page of the documentation."""
    fits = {name: Result(**part) for name, part in _without_environments(results).items()}
    largest = max(fits.values(), key=lambda fit: fit.n_samples)
    memory = 8 * largest.n_kernels * largest.n_samples**2 / _GIB
    parts = [
        "# Kernels on disk",
        f"Written by `python -m benchmarks.medium --write`. {largest.n_kernels} Gaussian "
        f"kernels, {N_CLASSES} classes, λ = {REG:g}, p = 2. The stack is in memory in double "
        "precision, or on disk in single precision; sums are those of double precision. Peak "
        "memory is that of the process while it fits, without the page cache, also in matrices "
        f"of m × m float64. The stack of {largest.n_samples} samples would take {memory:.1f} GiB "
        "in double precision. Beside the wall-clock time is the processor time of the process, "
        "the better measure where a machine does other work.",
        environments(results),
        table(list(fits.values())),
        " ".join(findings(fits)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _without_environments(results: Results) -> Results:
    return {
        name: {key: value for key, value in part.items() if key != "environment"}
        for name, part in results.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("medium", "Fits from kernels on disk.", SETS)
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--folder", type=Path, default=Path(), help="where the stack is written")
    options = parser.parse_args(arguments)
    n_samples = SAMPLES_QUICK if options.quick else options.samples
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="medium-", dir=options.folder) as name:
        for part, rows, dtype, folder in [
            (SETS[0], n_samples // SHARE, "float64", None),
            (SETS[1], n_samples // SHARE, "float32", Path(name)),
            (SETS[2], n_samples, "float32", Path(name)),
        ]:
            if part in options.sets:
                fit = run(rows, dtype, folder)
                results[part] = vars(fit)
                print(table([fit]), flush=True)
    report("medium", results, page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())

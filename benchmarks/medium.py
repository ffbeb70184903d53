"""MKFDA on kernels that do not fit into memory, exactly: single precision, on disk.

    python -m benchmarks.medium [--samples 10000] [--folder .] [--write]

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

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._command import write_page
from benchmarks._meter import Meter
from benchmarks._tables import environment, markdown
from manykernels import MKFDA, KernelStack, KernelUnion
from manykernels.kernels import RBF

N_CLASSES, N_FEATURES = 10, 16
N_CENTRES = 5  # of each class, so that classes are not convex
N_FRESH = 500
WIDTHS = np.logspace(-0.6, 1.2, 10)
REG = 1.0
# The fits beside have this part of the samples.
SHARE = 5

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
    """One stack built and learnt from, measured."""

    n_samples: int
    storage: str
    stack_bytes: int
    building: Meter
    fitting: Meter
    model: Any
    accuracy: float


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
    storage = f"{dtype}, {'memory' if path is None else 'disk'}"
    accuracy = model.score(union(fresh, train, dtype=dtype), y[n_samples:])
    result = Result(n_samples, storage, stack.data.nbytes, building, fitting, model, accuracy)
    if path is not None:
        path.unlink()
    return result


def table(results: list[Result]) -> str:
    """One row per fit."""
    header = [
        "m",
        "stack",
        "GiB",
        "build, s",
        "cpu, s",
        "fit, s",
        "cpu, s",
        "peak, GiB",
        "in m × m",
    ]
    header += ["gap", "rounding", "factorisations", "accuracy"]
    rows = []
    for one in results:
        peak, square = one.fitting.peak_bytes, 8 * one.n_samples**2
        certificate = one.model.certificate_
        rows.append(
            [
                str(one.n_samples),
                one.storage,
                f"{one.stack_bytes / _GIB:.2f}",
                *(f"{seconds:.1f}" for seconds in (one.building.seconds, one.building.processor)),
                *(f"{seconds:.1f}" for seconds in (one.fitting.seconds, one.fitting.processor)),
                f"{peak / _GIB:.2f}",
                f"{peak / square:.1f}",
                f"{certificate.rel_gap:.1e}",
                f"{certificate.rel_rounding:.1e}",
                str(one.model.n_inner_solves_),
                f"{one.accuracy:.3f}",
            ]
        )
    return markdown(header, rows)


def difference(results: list[Result]) -> str:
    """What single precision changes, and how the time grows with the samples."""
    double, single, large = results
    weights = np.abs(single.model.weights_ - double.model.weights_).max()
    times = [one.fitting.processor for one in results]
    return (
        f"Weights learnt from {double.n_samples} samples in single and in double precision differ "
        f"by {weights:.1e} at most. A fit of {large.n_samples} samples from disk takes "
        f"{times[2] / times[0]:.0f} times the processor time of one of {double.n_samples} in "
        f"memory; factorisations alone grow by {SHARE**3}, kernels by {SHARE**2}."
    )


def report(results: list[Result]) -> str:
    """The page for the documentation."""
    large = results[-1]
    n_kernels = len(large.model.weights_)
    parts = [
        "# Kernels on disk",
        f"Written by `python -m benchmarks.medium --samples {large.n_samples} --write`. "
        f"{n_kernels} Gaussian kernels, {N_CLASSES} classes, λ = {REG:g}, p = 2. The stack is in "
        "memory in double precision, or on disk in single precision; sums are those of double "
        "precision. Peak memory is that of the process while it fits, without the page cache, "
        "also in matrices of m × m float64. The stack of the last row would take "
        f"{8 * n_kernels * large.n_samples**2 / _GIB:.1f} GiB in double precision. Beside the "
        "wall-clock time is the processor time of the process, the better measure where a "
        "machine does other work.",
        environment(),
        table(results),
        difference(results),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.medium", description="Fits from kernels on disk."
    )
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--folder", type=Path, default=Path(), help="where the stack is written")
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args(arguments)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="medium-", dir=options.folder) as name:
        for n_samples, dtype, folder in [
            (options.samples // SHARE, "float64", None),
            (options.samples // SHARE, "float32", Path(name)),
            (options.samples, "float32", Path(name)),
        ]:
            results.append(run(n_samples, dtype, folder))
            print(table(results), flush=True)
    print(difference(results))
    if options.write:
        write_page("medium", report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Side by side with EasyMKL of MKLpy 0.6, a library for multiple kernel learning.

    python -m benchmarks.easymkl [--quick] [--sets binary] [--contenders mkfda-2,mksvc-2] [--write]

The digits of scikit-learn (1797 samples) with ten Gaussian kernels of log-spaced widths: odd or
even, and all ten classes. Every contender runs in a process of its own, with one thread, after
a fit on 100 rows to warm up:

- time: the fit on all rows, ready kernels given; the best of ten, fewer of those that take long.
  What happens to the kernels before (ours are checked to be positive semi-definite, once per
  stack) is timed apart, and so is what only the first fit of a process costs (compiling);
- memory: how far the peak of the process during that fit lies above what it held before, the
  kernels included;
- accuracy: learnt from two thirds of the rows, judged on the others. Nobody is tuned.

MKLpy gets an environment of its own, torch first:

    python -m venv X
    X/bin/pip install torch==2.13.0
    X/bin/pip install MKLpy==0.6 scikit-learn
    export MANYKERNELS_MKLPY=X/bin/python

Without that variable only ours are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._command import Results, add_names, command_line, report
from benchmarks._tables import environments, markdown, verdict

VARIABLE = "MANYKERNELS_MKLPY"
RUNNER = Path(__file__).with_name("_easymkl_runner.py")
PROBLEMS = {"binary": "odd or even", "ten": "ten classes"}
CONTENDERS = {
    "easymkl-svc": "EasyMKL, SVC",
    "easymkl-komd": "EasyMKL, KOMD",
    "oureasymkl-svc": "our EasyMKL",
    "mksvc-2": "MKSVC p=2",
    "mksvc-1": "MKSVC p=1",
    "mkfda-2": "MKFDA p=2",
    "mkfda-1": "MKFDA p=1",
}
REFERENCE = "easymkl-svc"  # the faster and better of the two
ROWS, ROWS_QUICK = 1797, 240

MOST_TIME, AIM_TIME = 2.0, 1.0  # odd or even, times EasyMKL
LEAST_FASTER = LEAST_LEANER = 5.0  # ten classes
SAME = "oureasymkl-svc"  # the same method as the reference, in this library
MOST_DIFFERENT = 1e-4  # any weight of the one and of the other

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
_MB = 1e6


@dataclass(frozen=True)
class Measured:
    """The line of one runner."""

    contender: str
    problem: str
    n_rows: int
    n_kernels: int
    seconds: float
    median_seconds: float
    wall_seconds: float
    n_fits: int
    prepare_seconds: float
    first_seconds: float
    kernel_bytes: int
    fit_bytes: int
    accuracy: float
    n_test: int
    versions: dict[str, str]
    #: None for figures of earlier runs.
    weights: list[float] | None = None
    rel_gap: float | None = None

    @property
    def name(self) -> str:
        return CONTENDERS[self.contender]

    @property
    def whole_seconds(self) -> float:
        """What a user waits for who fits a stack once."""
        return self.prepare_seconds + self.seconds


# -- running -------------------------------------------------------------------------------


def python_of(contender: str) -> str | None:
    """The Python that has the contender's library, None if it was not named."""
    return os.environ.get(VARIABLE) if contender.startswith("easymkl") else sys.executable


def instructions() -> str:
    """How to have EasyMKL measured too."""
    steps = (__doc__ or "").split("torch first:\n\n")[1].split("\n\nWithout")[0]
    return f"EasyMKL is left out: {VARIABLE} does not name a Python that has MKLpy.\n{steps}"


def parse(output: str) -> Measured:
    """What a runner measured: its last line; libraries may have printed others before."""
    return Measured(**json.loads(output.strip().splitlines()[-1]))


def run(contender: str, problem: str, n_rows: int) -> Measured | None:
    """Measure in a new process; None, and a message, if that failed."""
    python = python_of(contender)
    assert python is not None
    # Compiled code is not taken from earlier runs, so that the first fit is a first fit.
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [python, str(RUNNER), contender, problem, str(n_rows)],
            env={**os.environ, **_ONE_THREAD, "NUMBA_CACHE_DIR": cache},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{CONTENDERS[contender]}, {PROBLEMS[problem]}: failed. {reason}", file=sys.stderr)
        return None
    return parse(done.stdout)


# -- reports -------------------------------------------------------------------------------


def table(results: list[Measured]) -> str:
    """Markdown table of one problem, a row per contender."""
    header = [
        "",
        "fit, s",
        "median, s",
        "on the clock, s",
        "checks before, s",
        "only first fit, s",
        "memory of the fit, MB",
        "relative gap",
        "accuracy",
    ]
    rows = [
        [
            result.name,
            f"{result.seconds:.2f}",
            f"{result.median_seconds:.2f}",
            f"{result.wall_seconds:.2f}",
            f"{result.prepare_seconds:.2f}",
            f"{max(result.first_seconds, 0.0):.1f}",
            f"{result.fit_bytes / _MB:.0f}",
            "none" if result.rel_gap is None else f"{max(result.rel_gap, 0.0):.0e}",
            f"{result.accuracy:.4f}",
        ]
        for result in results
    ]
    return markdown(header, rows)


def binary_verdict(ours: Measured, reference: Measured) -> str:
    ratio = ours.seconds / reference.seconds
    return (
        f"odd or even: {ours.name} takes {ratio:.2g} times EasyMKL "
        f"(bound {MOST_TIME:g}: {verdict(ratio <= MOST_TIME)}; "
        f"aim {AIM_TIME:g}: {verdict(ratio <= AIM_TIME)}), "
        f"{ours.median_seconds / reference.median_seconds:.2g} times by medians, "
        f"{ours.whole_seconds / reference.whole_seconds:.2g} times with the checks"
    )


def ten_verdict(ours: Measured, reference: Measured) -> str:
    faster = reference.seconds / ours.seconds
    # A fit may find room for everything in pages that the process holds anyway.
    leaner = reference.fit_bytes / max(ours.fit_bytes, _MB)
    return (
        f"ten classes: {ours.name} is {faster:.2g} times faster than EasyMKL "
        f"(bound {LEAST_FASTER:g}: {verdict(faster >= LEAST_FASTER)}), "
        f"{reference.whole_seconds / ours.whole_seconds:.2g} times with the checks, and "
        f"{leaner:.2g} times leaner (bound {LEAST_LEANER:g}: {verdict(leaner >= LEAST_LEANER)})"
    )


def weights_verdict(ours: Measured, reference: Measured) -> str:
    """How the same method differs in the two libraries."""
    assert ours.weights is not None
    assert reference.weights is not None
    difference = float(np.abs(np.subtract(ours.weights, reference.weights)).max())
    return (
        f"{PROBLEMS[ours.problem]}: weights of {ours.name} differ from MKLpy's by at most "
        f"{difference:.0e} (bound {MOST_DIFFERENT:g}: {verdict(difference <= MOST_DIFFERENT)}), "
        f"accuracy {ours.accuracy:.4f} against {reference.accuracy:.4f}"
    )


def verdicts(results: list[Measured]) -> list[str]:
    """Lines for each of ours on each problem where EasyMKL was measured."""
    judge = {"binary": binary_verdict, "ten": ten_verdict}
    references = {r.problem: r for r in results if r.contender == REFERENCE}
    lines = []
    for result in results:
        if result.contender.startswith("easymkl") or result.problem not in references:
            continue
        lines.append(judge[result.problem](result, references[result.problem]))
        if result.contender == SAME and references[result.problem].weights is not None:
            lines.append(weights_verdict(result, references[result.problem]))
    return lines


def page(results: Results) -> str:
    """The page of the documentation; contenders that are missing are named on it."""
    measured = [Measured(**row) for part in results.values() for row in part["contenders"]]
    one = measured[0]
    error = np.sqrt(one.accuracy * (1 - one.accuracy) / one.n_test)
    parts = [
        "# Beside EasyMKL",
        f"Written by `python -m benchmarks.easymkl --write`. Digits, {one.n_rows} samples × "
        f"{one.n_kernels} Gaussian kernels ({one.kernel_bytes / _MB:.0f} MB). Each contender in "
        "a process of its own, one thread. Time (of the processor) and memory (peak beyond the "
        "kernels) are those of a fit to all rows, ready kernels given: the best of up to ten "
        "fits, by which bounds are judged, and their median, since the fits of EasyMKL to two "
        "classes differ by a factor of two and more within one process. Accuracy is that on "
        f"{one.n_test} rows after learning from the others, with one standard error of about "
        f"{error:.3f}. Ours check a stack once when it is made, which is not in the time of the "
        "fit; MKLpy checks shapes only.",
        "The contenders do not solve the same problem, and nobody is tuned: EasyMKL with λ = 0.1, "
        "its default, and on its combined kernel either scikit-learn's SVC (C = 1) or KOMD, its "
        "default; MKSVC with C = 1, MKFDA with λ = 0.1. For ten classes EasyMKL learns weights "
        "for each class against the rest and keeps a copy of all kernels for each; MKSVC and "
        "MKFDA learn one set of weights. EasyMKL takes tensors and labels that are numbers (here "
        "−1 and 1, or the digits), and its scores are used: one-vs-one, its `predict` gives "
        "positions of "
        "classes in place of their labels. Our EasyMKL is the same method with the same λ and "
        "machine, on kernels as they are; weights of ten classes are compared by their mean over "
        "the classes.",
        environments(results),
    ]
    if theirs := next((r for r in measured if r.contender.startswith("easymkl")), None):
        named = ", ".join(f"{package} {number}" for package, number in theirs.versions.items())
        parts.append(f"EasyMKL: {named}.")
    parts.append("\n".join(f"- {line}" for line in verdicts(measured)) or instructions())
    for problem, title in PROBLEMS.items():
        if chosen := [r for r in measured if r.problem == problem]:
            parts += [f"## {title[0].upper()}{title[1:]}", table(chosen)]
            known = {result.contender for result in chosen}
            if missing := [name for key, name in CONTENDERS.items() if key not in known]:
                parts.append(f"Not measured: {'; '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if a contender failed."""
    parser = command_line("easymkl", "Beside EasyMKL of MKLpy.", list(PROBLEMS))
    add_names(parser, "contenders", CONTENDERS)
    options = parser.parse_args(arguments)
    chosen = [name for name in options.contenders if python_of(name) is not None]
    if len(chosen) < len(options.contenders):
        print(f"{instructions()}\n", flush=True)
    results: Results = {}
    n_failed = 0
    for problem in options.sets:
        for name in chosen:
            result = run(name, problem, ROWS_QUICK if options.quick else ROWS)
            if result is None:
                n_failed += 1
                continue
            print(f"{PROBLEMS[problem]}, {result.name}: {result.seconds:.2f} s", flush=True)
            results.setdefault(problem, {"contenders": []})["contenders"].append(result)
    if results:
        report("easymkl", results, page, options.write, PROBLEMS)
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())

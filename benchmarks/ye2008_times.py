"""Seconds against samples and kernels, beside table 1 of Ye, Ji and Chen (2008).

    python -m benchmarks.ye2008_times [--quick] [--write]

Table 1 has the complexity of the programs for several classes in the number n of training samples,
p of kernels and k of classes. Here the seconds of one fit are measured while n or p is doubled, on
the waveform data, three classes. Seconds are those of the processor, with one thread, the median
of three where that is less than a second. An exponent is the slope between the last two sizes that
were run; QCQP is not run where it would take more than half a minute.

What is asked for is the order of the paper, at the largest size that all programs have: SILP is
faster than QCQP, and QCQP faster than SDP. (That the second is missed was known before.)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._command import command_line, write_page
from benchmarks._tables import environment, markdown, verdict
from benchmarks._ye2008_protocol import EPS, REG, fda, fitted
from benchmarks._ye2008_sets import gaussian_kernels, waveform
from manykernels import KernelStack
from manykernels.solvers import SILP

SOLVERS: dict[str, Any] = {
    "SDP": "sdp-approx",
    "exact SDP": "sdp",
    "QCQP": "qcqp",
    "SILP": SILP(eps=EPS),
    "Newton": "newton",
}
#: Complexity of the paper, and its exponents in the samples and the kernels.
PRINTED = {
    "SDP": ("O((p + n)²(k + n)^2.5)", "4.5", "≤ 2"),
    "QCQP": ("O(pk²n² + k³n³)", "≤ 3", "≤ 1"),
    "SILP": ("O(n³ Ite)", "3", "–"),
}
SAMPLES = (60, 120, 240, 480, 960)
KERNELS = (5, 10, 20, 40)
FIXED_SAMPLES = 120
FIXED_KERNELS = 10
# Largest product of kernels and cubed samples for QCQP.
_MOST_FOR_QCQP = 10 * 240**3
_N_TEST = 60
_QUICK = 2


@dataclass(frozen=True)
class Growth:
    """Seconds by solver, as long as a size was run, and the sizes."""

    what: str
    sizes: tuple[int, ...]
    seconds: dict[str, list[float]]

    def exponent(self, solver: str) -> float:
        """Slope of the logarithms between the last two sizes."""
        seconds = self.seconds[solver]
        sizes = self.sizes[: len(seconds)]
        return float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))


# -- measurements --------------------------------------------------------------------------


def measured(n_samples: int, n_kernels: int, solver: str) -> float | None:
    """Seconds of one fit, or None if it would take too long."""
    if solver == "QCQP" and n_kernels * n_samples**3 > _MOST_FOR_QCQP:
        return None
    X, y = waveform(0, (n_samples + _N_TEST) // 3)
    order = np.random.default_rng(0).permutation(len(y))
    stack: KernelStack = gaussian_kernels(X, n_kernels)
    seconds: list[float] = []
    while len(seconds) < 3 and (not seconds or seconds[0] < 1):
        model = fda(REG, SOLVERS[solver])
        fit = fitted(model, stack, y, order[:n_samples], order[n_samples:])
        seconds.append(fit.seconds)
    return float(np.median(seconds))


def growth(what: str, sizes: tuple[int, ...]) -> Growth:
    """Seconds of every solver while samples or kernels grow."""
    seconds: dict[str, list[float]] = {solver: [] for solver in SOLVERS}
    for one in sizes:
        n_samples, n_kernels = (one, FIXED_KERNELS) if what == "samples" else (FIXED_SAMPLES, one)
        for solver, done in seconds.items():
            value = measured(n_samples, n_kernels, solver)
            if value is not None:
                done.append(value)
        print(f"{what}: {one}", file=sys.stderr, flush=True)
    return Growth(what, sizes, seconds)


# -- reports -------------------------------------------------------------------------------


def table(result: Growth) -> str:
    """Markdown table, a row per solver."""
    column = 1 if result.what == "samples" else 2
    rows = []
    for solver, seconds in result.seconds.items():
        cells = [f"{value:.2g}" for value in seconds]
        cells += ["–"] * (len(result.sizes) - len(cells))
        complexity = PRINTED.get(solver, ("–", "–", "–"))
        rows.append(
            [solver, *cells, f"{result.exponent(solver):.1f}", complexity[column], complexity[0]]
        )
    header = ["program", *map(str, result.sizes), "exponent", "paper's", "paper"]
    return markdown(header, rows)


def summary(result: Growth) -> str:
    """Whether the order is the paper's, one line."""
    size = min(len(seconds) for seconds in result.seconds.values()) - 1
    sdp, qcqp, silp = (result.seconds[name][size] for name in ("SDP", "QCQP", "SILP"))
    newton = result.seconds["Newton"][size]
    return (
        f"- {result.sizes[size]} {result.what}: SILP faster than QCQP {verdict(silp < qcqp)} "
        f"({qcqp / silp:.2g} times), QCQP faster than SDP {verdict(qcqp < sdp)} ({sdp / qcqp:.2g} "
        f"times); Newton's method {silp / newton:.2g} times as fast as SILP"
    )


def report(results: list[Growth]) -> str:
    """The page for the documentation."""
    parts = [
        "# Seconds against samples and kernels, beside Ye, Ji and Chen (2008)",
        "Written by `python -m benchmarks.ye2008_times --write`. Table 1; the seconds of table 16 "
        "are on [the page of several classes](ye2008_multiclass.md). Waveform data (seed 0, 40 "
        "columns), three classes, kernels exp(−d²/σ) of unit trace with σ from 0.1 to 100, p = 1, "
        f"λ = {REG:g}. Seconds of one fit with all that belongs to it, of the processor, one "
        "thread; exponents are slopes between the last two sizes, at which costs that grow more "
        "slowly still count.",
        "Where we differ: the paper gave its SDP to SeDuMi, a general solver, whose time is that "
        "of its table. Here an interior-point method made for this program factorises one matrix "
        "of n rows per step, so the slowest program of the paper is among the fast ones, and "
        "QCQP, given to Clarabel as second-order cones, is the slowest.",
        environment(),
        "## Summary",
        "\n".join(summary(result) for result in results),
        f"## Samples, {FIXED_KERNELS} kernels",
        table(results[0]),
        f"## Kernels, {FIXED_SAMPLES} samples",
        table(results[1]),
    ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("ye2008_times", "Table 1 of Ye et al. (2008).", ["waveform(3)"])
    options = parser.parse_args(arguments)
    n_sizes = _QUICK if options.quick else None
    results = [
        growth("samples", SAMPLES[:n_sizes]),
        growth("kernels", KERNELS[:n_sizes]),
    ]
    for result in results:
        print(f"{table(result)}\n\n{summary(result)}\n")
    if options.write:
        write_page("ye2008_times", report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The studies beside the tables of Ye, Ji and Chen (2008): λ, times and Gabor pictures.

    python -m benchmarks.ye2008_studies [--quick] [--sets sonar,samples,olivetti] [--write]

Section 5.5, Figures 3 and 4: accuracy for 30 values of λ. Table 1: how the time of the programs
grows with the samples and the kernels. Section 5.3: kernels of Gabor pictures, with faces in the
place of fruit fly embryos.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import Results, command_line, load, with_environment, write_results
from benchmarks._tables import (
    PaperRow,
    counted,
    environments,
    markdown,
    paper_table,
    verdict,
)
from benchmarks._ye2008 import PAPER
from benchmarks._ye2008_protocol import (
    EPS,
    REG,
    SETS,
    Fit,
    fda,
    fitted,
    gaussian_kernels,
    shown,
    size,
    waveform,
)
from manykernels import MKFDACV, KernelStack
from manykernels.baselines import Average
from manykernels.solvers import SILP

SOLVERS: dict[str, Any] = {
    "Newton": "newton",
    "SDP": "sdp",
    "approximate SDP": "sdp-approx",
    "QCQP": "qcqp",
    "SILP": SILP(eps=EPS),
}

# -- Figures 3 and 4: λ --------------------------------------------------------------------

REGS = np.logspace(-10, 2, 30)
QUICK_REGS = REGS[::10]
LARGEST_REG = 1.0
MOST_POINTS_FALLEN = 5.0
#: Splits of each solver, by data set.
LAMBDA = {
    "sonar": {"Newton": 30, "SDP": 3, "SILP": 8},
    "heart": {"Newton": 30, "SDP": 3, "SILP": 8},
    "satimage(6)": {"Newton": 30, "approximate SDP": 1, "SILP": 1},
    "waveform(3)": {"Newton": 30, "SDP": 3, "approximate SDP": 3, "SILP": 8},
}
FIGURES = {"sonar": 3, "heart": 3, "satimage(6)": 4, "waveform(3)": 4}


def measured_lambda(name: str, quick: bool) -> dict[str, Any]:
    """Accuracies of every solver at every λ, and the differences to Newton's method."""
    regs = QUICK_REGS if quick else REGS
    n_splits = {solver: 1 if quick else n for solver, n in LAMBDA[name].items()}
    fits: dict[str, list[list[Fit]]] = {solver: [] for solver in n_splits}
    for seed in shown(range(max(n_splits.values())), name, max(n_splits.values())):
        X, y, train, test = SETS[name].split(seed)
        stack = gaussian_kernels(X)
        for solver, rows in fits.items():
            if seed < n_splits[solver]:
                model = partial(fda, solver=SOLVERS[solver])
                rows.append([fitted(model(reg), stack, y, train, test) for reg in regs])
    accuracies = {
        solver: np.array([[fit.accuracy for fit in row] for row in rows])
        for solver, rows in fits.items()
    }
    one_row = 100 / SETS[name].n_test
    return {
        "regs": regs,
        "n_splits": n_splits,
        "accuracy": {solver: values.mean(axis=0) for solver, values in accuracies.items()},
        "rows_apart": {
            solver: round(
                float(np.abs(values - accuracies["Newton"][: len(values)]).max() / one_row)
            )
            for solver, values in accuracies.items()
        },
        "rel_gap": {
            solver: max(fit.rel_gap for row in rows for fit in row)
            for solver, rows in fits.items()
        },
    }


def fallen(part: dict[str, Any], solver: str) -> float:
    """Points between the best and the worst mean accuracy, λ up to 1."""
    means = np.array(part["accuracy"][solver])[np.array(part["regs"]) <= LARGEST_REG]
    return float(means.max() - means.min())


def lambda_section(name: str, part: dict[str, Any]) -> str:
    """What the solvers reach, and their curves."""
    rows = []
    for solver, values in part["accuracy"].items():
        best, worst = int(np.argmax(values)), int(np.argmin(values))
        rows.append(
            [
                solver,
                str(part["n_splits"][solver]),
                f"{values[best]:.2f} at {size(part['regs'][best])}",
                f"{values[worst]:.2f} at {size(part['regs'][worst])}",
                f"{fallen(part, solver):.2f}",
                str(part["rows_apart"][solver]),
                size(part["rel_gap"][solver]),
            ]
        )
    header = ["program", "splits", "best", "worst", "range, λ ≤ 1"]
    table = markdown([*header, "test rows from Newton", "worst gap"], rows)
    n_splits = part["n_splits"]
    means = {
        solver: values
        for solver, values in part["accuracy"].items()
        if n_splits[solver] == n_splits["Newton"]
    }
    step = 3 if len(part["regs"]) > 10 else 1
    curve = [
        [size(part["regs"][i]), *(f"{values[i]:.2f}" for values in means.values())]
        for i in range(0, len(part["regs"]), step)
    ]
    return f"## Figure {FIGURES[name]}: {name}\n\n{table}\n\n{markdown(['λ', *means], curve)}"


def lambda_summary(name: str, part: dict[str, Any]) -> str:
    """What was held, one line."""
    exact = [solver for solver in part["accuracy"] if solver not in ("Newton", "approximate SDP")]
    apart = [solver for solver in exact if part["rows_apart"][solver] > 1]
    fell = [solver for solver in part["accuracy"] if fallen(part, solver) > MOST_POINTS_FALLEN]
    return (
        f"Figure {FIGURES[name]}, {name}: exact programs within one test row of Newton's method "
        f"at every λ and on every split: {_named(apart)}; at most {MOST_POINTS_FALLEN:g} points "
        f"lost at any λ up to 1: {_named(fell)}."
    )


def _named(missed: list[str]) -> str:
    return f"MISSED by {', '.join(missed)}" if missed else "held"


# -- Table 1: growth of times --------------------------------------------------------------

#: Complexity in the paper, and its exponents in the samples and the kernels.
COMPLEXITY = {
    "approximate SDP": ("O((p + n)²(k + n)^2.5)", {"samples": "4.5", "kernels": "≤ 2"}),
    "QCQP": ("O(pk²n² + k³n³)", {"samples": "≤ 3", "kernels": "≤ 1"}),
    "SILP": ("O(n³ Ite)", {"samples": "3", "kernels": "–"}),
}
GROWING = {"samples": (60, 120, 240, 480, 960), "kernels": (5, 10, 20, 40)}
FIXED_SAMPLES, FIXED_KERNELS = 120, 10
# Largest product of kernels and cubed samples for QCQP.
_MOST_FOR_QCQP = 10 * 240**3
_N_TEST = 60


def seconds_of(n_samples: int, n_kernels: int, solver: str) -> float | None:
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


def measured_growth(what: str, quick: bool) -> dict[str, Any]:
    """Seconds of every solver while samples or kernels grow."""
    sizes = GROWING[what][: 2 if quick else None]
    seconds: dict[str, list[float | None]] = {solver: [] for solver in SOLVERS}
    for one in shown(sizes, what, len(sizes)):
        n_samples, n_kernels = (one, FIXED_KERNELS) if what == "samples" else (FIXED_SAMPLES, one)
        for solver, done in seconds.items():
            done.append(seconds_of(n_samples, n_kernels, solver))
    return {"sizes": sizes, "seconds": seconds}


def exponent(part: dict[str, Any], solver: str) -> float:
    """Slope of the logarithms between the last two sizes that were measured."""
    seconds = [value for value in part["seconds"][solver] if value is not None]
    sizes = part["sizes"][: len(seconds)]
    return float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))


def growth_section(what: str, part: dict[str, Any]) -> str:
    """A row per solver."""
    rows = []
    for solver, seconds in part["seconds"].items():
        cells = ["–" if value is None else f"{value:.2g}" for value in seconds]
        complexity, exponents = COMPLEXITY.get(solver, ("–", {}))
        theirs = exponents.get(what, "–")
        rows.append([solver, *cells, f"{exponent(part, solver):.1f}", theirs, complexity])
    header = ["program", *map(str, part["sizes"]), "exponent", "paper's", "paper"]
    fixed = f"{FIXED_KERNELS} kernels" if what == "samples" else f"{FIXED_SAMPLES} samples"
    return f"## Table 1: seconds by number of {what}, {fixed}\n\n{markdown(header, rows)}"


def growth_summary(what: str, part: dict[str, Any]) -> str:
    """Whether the order is the paper's, one line."""
    place = min(sum(v is not None for v in values) for values in part["seconds"].values()) - 1
    seconds = {solver: values[place] for solver, values in part["seconds"].items()}
    sdp, qcqp, silp = (seconds[name] for name in ("approximate SDP", "QCQP", "SILP"))
    return (
        f"Table 1, {part['sizes'][place]} {what}: SILP faster than QCQP: {verdict(silp < qcqp)} "
        f"({qcqp / silp:.2g} times); QCQP faster than SDP: {verdict(qcqp < sdp)} "
        f"({qcqp / sdp:.2g} times its seconds)."
    )


# -- section 5.3: Gabor pictures -----------------------------------------------------------

WAVELENGTHS = (3.0, 6.0, 12.0, 24.0)
N_ORIENTATIONS = 6
# Widths σ of exp(−d²/σ) as multiples of the mean squared distance; the paper has 50 and 100.
WIDTHS = (0.5, 1.0)
GABOR_REGS = np.logspace(-8, 2, 6)
GABOR_FOLDS = 3
GABOR_SPLITS = 5
TRAIN_SHARE = 0.3
# Widths of the filters, in octaves (as the standard deviation of the logarithm) and radians.
_BANDWIDTH = np.log(1 / 0.65)
_ANGULAR_WIDTH = np.pi / N_ORIENTATIONS / 1.5
#: Accuracies of the paper in per cent.
GABOR = {
    "SILP θ": 88.28,
    "uniform": 72.65,
    "best kernel": 72.03,
    "worst kernel": 54.37,
    "mean of the kernels": 61.88,
}


def _chosen() -> MKFDACV:
    return MKFDACV(ps=[1], regs=GABOR_REGS, cv=GABOR_FOLDS)


GABOR_METHODS: dict[str, Callable[[], Any]] = {
    "SILP θ": lambda: fda(REG, SILP(eps=EPS)),
    "SILP θ,λ": lambda: fda("joint", SILP(eps=EPS)),
    "Newton θ": lambda: fda(REG, "newton"),
    "uniform": lambda: Average("precomputed", estimator=_chosen(), normalize="trace"),
}


def log_gabor_filters(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Frequency responses, a Gaussian of log frequency times one of the angle (Field 1987).

    They let through one side of the plane of frequencies only, so that the magnitude of the
    filtered picture is its local energy.

    Examples
    --------
    >>> filters = log_gabor_filters((64, 64))
    >>> len(filters), float(filters["3 px, 0°"][0, 0])
    (24, 0.0)
    """
    rows, columns = np.meshgrid(*(np.fft.fftfreq(n) for n in shape), indexing="ij")
    radius = np.hypot(rows, columns)
    radius[0, 0] = 1.0  # of the mean, which no filter lets through
    filters = {}
    for wavelength in WAVELENGTHS:
        band = np.exp(-(np.log(radius * wavelength) ** 2) / (2 * _BANDWIDTH**2))
        band[0, 0] = 0.0
        for k in range(N_ORIENTATIONS):
            angle = k * np.pi / N_ORIENTATIONS
            along = columns * np.cos(angle) + rows * np.sin(angle)
            across = rows * np.cos(angle) - columns * np.sin(angle)
            apart = np.arctan2(across, along)
            name = f"{wavelength:g} px, {180 // N_ORIENTATIONS * k}°"
            filters[name] = band * np.exp(-(apart**2) / (2 * _ANGULAR_WIDTH**2))
    return filters


def gabor_kernels(pictures: np.ndarray) -> KernelStack:
    """Two Gaussian kernels for each of the 24 filters, between all pictures."""
    spectra = np.fft.fft2(pictures)
    kernels = {}
    for name, response in log_gabor_filters(pictures.shape[1:]).items():
        energy = np.abs(np.fft.ifft2(spectra * response)).reshape(len(pictures), -1)
        squared = euclidean_distances(energy, squared=True)
        for width in WIDTHS:
            kernels[f"{name}, σ × {width:g}"] = np.exp(-squared / (width * squared.mean()))
    return KernelStack.from_arrays(list(kernels.values()), names=list(kernels))


def measured_gabor(quick: bool) -> dict[str, Any]:
    """Every method, and every kernel alone, on faces."""
    pictures, y = _data.olivetti()
    stack = gabor_kernels(pictures)
    n_splits = 1 if quick else GABOR_SPLITS
    splits = StratifiedShuffleSplit(n_splits, train_size=TRAIN_SHARE, random_state=0)
    fits: dict[str, list[Fit]] = {method: [] for method in GABOR_METHODS}
    single = []
    for train, test in shown(splits.split(pictures, y), "olivetti", n_splits):
        for method, make in GABOR_METHODS.items():
            fits[method].append(fitted(make(), stack, y, train, test))
        alone = _chosen().set_params(kernels="precomputed", normalize="trace")
        single.append(
            [
                fitted(alone, stack.select([j]), y, train, test).accuracy
                for j in range(stack.n_kernels)
            ]
        )
    mean = np.mean([fit.weights for fit in fits["SILP θ"]], axis=0)
    return {
        "n_splits": n_splits,
        "accuracy": {method: [fit.accuracy for fit in some] for method, some in fits.items()},
        "n_used": {
            method: np.mean([np.count_nonzero(fit.weights > 1e-6) for fit in some])
            for method, some in fits.items()
        },
        "seconds": {
            method: np.mean([fit.seconds for fit in some]) for method, some in fits.items()
        },
        "alone": np.round(single, 3),
        "weights": mean.reshape(len(WAVELENGTHS), N_ORIENTATIONS, len(WIDTHS)).sum(axis=2),
    }


def gabor_accuracies(part: dict[str, Any]) -> dict[str, list[float]]:
    """Accuracies by split: those of the methods, and of the best, worst and mean kernel."""
    alone = np.array(part["alone"])
    means = alone.mean(axis=0)
    return {
        **part["accuracy"],
        "best kernel": alone[:, means.argmax()].tolist(),
        "worst kernel": alone[:, means.argmin()].tolist(),
        "mean of the kernels": alone.mean(axis=1).tolist(),
    }


def gabor_rows(part: dict[str, Any]) -> list[PaperRow]:
    """How much learnt weights gain, on other data."""
    values = {name: np.array(one) for name, one in gabor_accuracies(part).items()}
    rows = []
    for other in ("uniform", "best kernel"):
        gains = values["SILP θ"] - values[other]
        error = float(gains.std(ddof=1) / len(gains) ** 0.5) if len(gains) > 1 else float("nan")
        theirs, ours = GABOR["SILP θ"] - GABOR[other], float(gains.mean())
        label = f"gain of SILP θ over {other}"
        row = PaperRow(PAPER, "section 5.3", "faces", label, theirs, ours, error, same_data=False)
        rows.append(row)
    return rows


def gabor_section(part: dict[str, Any]) -> str:
    """Accuracies, gains and weights."""
    rows = []
    for name, values in gabor_accuracies(part).items():
        used = f"{part['n_used'][name]:.0f}" if name in part["n_used"] else "1"
        seconds = f"{part['seconds'][name]:.2g}" if name in part["seconds"] else "–"
        paper = f"{GABOR[name]:.2f}" if name in GABOR else "–"
        spread = f"{np.mean(values):.2f} ± {np.std(values):.2f}"
        rows.append([name, spread, used, seconds, paper])
    header = ["method", "accuracy", "kernels used", "seconds", "paper, other data"]
    angles = [f"{180 // N_ORIENTATIONS * k}°" for k in range(N_ORIENTATIONS)]
    weights = [
        [f"{wavelength:g} px", *(f"{value:.3f}" for value in row)]
        for wavelength, row in zip(WAVELENGTHS, part["weights"], strict=True)
    ]
    parts = [
        "## Section 5.3: Gabor pictures",
        "The paper tells stages of fruit fly embryos apart (FlyExpress, not available). Here the "
        f"400 Olivetti faces take their place: 40 persons, {part['n_splits']} random splits with "
        "three photographs of each person for training and seven for testing (the paper: three "
        "classes, 1:9). 24 log-Gabor filters, of wavelengths "
        f"{', '.join(f'{one:g}' for one in WAVELENGTHS)} pixels and six orientations; two kernels "
        "exp(−d²/σ) of the magnitude of each, σ half and once the mean squared distance. "
        f"*Uniform* and single kernels choose one of {len(GABOR_REGS)} λ by {GABOR_FOLDS} folds. "
        "The best single kernel is the one with the best test accuracy, as in the paper, which "
        "favours it. What can be compared is what learning the weights gains.",
        markdown(header, rows),
        paper_table(gabor_rows(part)),
        "Mean weights of SILP θ, summed over both widths:",
        markdown(["wavelength", *angles], weights),
    ]
    return "\n\n".join(parts)


# -- the page ------------------------------------------------------------------------------

PARTS = [*LAMBDA, *GROWING, "olivetti"]


def paper_rows(results: Results) -> list[PaperRow]:
    """Figures of the paper beside ours; its pictures have no numbers."""
    return gabor_rows(results["olivetti"]) if "olivetti" in results else []


def page(results: Results) -> str:
    """The page of the documentation."""
    curves = {name: results[name] for name in LAMBDA if name in results}
    growths = {what: results[what] for what in GROWING if what in results}
    lines = [lambda_summary(name, part) for name, part in curves.items()]
    lines += [growth_summary(what, part) for what, part in growths.items()]
    if "olivetti" in results:
        lines.append(f"Section 5.3, on faces: {counted(paper_rows(results))}.")
    parts = [
        "# λ, times and Gabor pictures, beside Ye, Ji and Chen (2008)",
        "Written by `python -m benchmarks.ye2008_studies --write`. The tables of the paper are on "
        "[another page](ye2008.md), with the data sets and their splits; kernels are those there.",
        environments(results),
        "## Summary",
        "\n".join(f"- {line}" for line in lines),
    ]
    if curves:
        parts += [
            "## The effect of λ (section 5.5)",
            "In the paper's pictures, which have no numbers, accuracies jump from one λ to the "
            "next, those of its SDP most, because of numerical problems as it says. All exact "
            "programs have the same solution, so they should differ by one test row at most; and "
            "here the curves are smooth. QCQP, the slowest, is compared with Newton's method on "
            "[the page of the tables](ye2008.md). Curves are those of the solvers that were run "
            "on all splits; the others are judged by the test rows in which they differ from "
            "Newton's method. With kernels of unit trace λ = 1 is large.",
            *(lambda_section(name, part) for name, part in curves.items()),
        ]
    if growths:
        parts += [
            "## Growth of times",
            "Waveform data, three classes. Seconds of one fit, of the processor, one thread; "
            "exponents are slopes between the last two sizes. The paper gave its SDP to SeDuMi, a "
            "general solver. Here an interior-point method made for this program factorises one "
            "matrix of n rows per step, so the slowest program of the paper is among the fast "
            "ones, and QCQP, given to Clarabel as second-order cones, is the slowest.",
            *(growth_section(what, part) for what, part in growths.items()),
        ]
    if "olivetti" in results:
        parts.append(gabor_section(results["olivetti"]))
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def measured(name: str, quick: bool) -> dict[str, Any]:
    """One part of the page."""
    if name in LAMBDA:
        return measured_lambda(name, quick)
    return measured_growth(name, quick) if name in GROWING else measured_gabor(quick)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a part were missing."""
    parser = command_line("ye2008_studies", "Studies of Ye et al. (2008).", PARTS)
    options = parser.parse_args(arguments)
    results: Results = {}
    with threadpool_limits(1):
        for name in options.sets:
            found = load(name, lambda name=name: measured(name, options.quick))  # type: ignore[misc]
            if found is None:
                continue
            results[name] = found
            if options.write:
                write_results("ye2008_studies", {name: found}, page, PARTS)
    if results and not options.write:
        print(page(with_environment(results)))
    return int(len(results) < len(options.sets))


if __name__ == "__main__":
    sys.exit(main())

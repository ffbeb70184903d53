"""The simulation of Yan et al. (2012), section 3.1 and Fig. 1: ℓ1 against ℓ2 MK-FDA.

    python -m benchmarks.simulation [--repeats 100] [--quick] [--write]
    python -m benchmarks.simulation --calibrate

A view is a pair of Gaussians in the plane, one per class: 50 + 50 training points and as many
test points, compared by a Gaussian kernel. Means are uniform in [1, 2]². n views, drawn
independently, make one problem with n kernels, and 100 problems are drawn for every n.

The paper does not print three things. Here they are chosen as follows:

- covariances: axes in a random direction, variances uniform in scale · [0.5, 1.5], independent
  for the two classes. The scale is solved for, such that one kernel alone errs as in the paper,
  0.43 (``--calibrate``). The shapes are kept this close because very different ones would tell
  the classes apart by themselves, at any scale.
- width of the kernels: the median distance of training points.
- λ: for each norm and problem the one of ten values from 4⁻⁵ to 4⁴ (those of section 3.3) that
  errs least on 50 + 50 further points; the largest of several. What every λ gives when it is
  held fixed is shown as well.

Kernels of unit diagonal are spherically normalised already; they are centred and otherwise left
as they are, as in the paper.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from benchmarks import _command
from benchmarks._command import Results, report
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKFDA, KernelUnion
from manykernels.datasets.views import YAN_SCALE, GaussianPair
from manykernels.kernels import RBF
from manykernels.reporting.sparsity import effective_number

NORMS = {"ℓ1": 1.0, "ℓ2": 2.0, "ℓ∞": np.inf}
REGS = 4.0 ** np.arange(-5, 5)
N_KERNELS = list(range(5, 51, 5))
QUICK_N_KERNELS = [5, 20, 50]
REPEATS = 100
TOL = 1e-6
QUICK_REPEATS = 5

CLASS_SIZE = 50
SINGLE_ERROR = 0.43
SCALE = YAN_SCALE
CALIBRATION_VIEWS = 400

# One kernel alone is quick to fit, so it is repeated more often.
_SINGLE_REPEATS = 4
# Norms that differ by less than two standard errors are level.
_STANDARD_ERRORS = 2.0
# Weights below are zero up to the tolerance of the fit.
_ZERO = 1e-4


# -- problems ------------------------------------------------------------------------------


LABELS = np.repeat([0, 1], CLASS_SIZE)


@dataclass(frozen=True)
class Outcome:
    """All norms and regularisations on one problem of n kernels.

    `validation` and `test` are error rates and `rel_gaps` what the fits prove of themselves,
    (n_norms, n_regs); `weights` are the learnt ones, (n_norms, n_regs, n).
    """

    validation: np.ndarray
    test: np.ndarray
    rel_gaps: np.ndarray
    weights: np.ndarray

    @property
    def chosen(self) -> np.ndarray:
        """Index of the λ of each norm: least error on the validation points, then largest."""
        n_regs = self.validation.shape[1]
        return n_regs - 1 - np.argmin(self.validation[:, ::-1], axis=1)

    @property
    def errors(self) -> np.ndarray:
        """Error rate of each norm on the test points, at its λ."""
        return np.take_along_axis(self.test, self.chosen[:, None], axis=1)[:, 0]

    @property
    def chosen_weights(self) -> np.ndarray:
        """Weights of each norm at its λ, (n_norms, n)."""
        return self.weights[np.arange(len(self.chosen)), self.chosen]


def play(
    n_kernels: int, seed: int, scale: float = SCALE, norms: list[float] | None = None
) -> Outcome:
    """Draw a problem and fit every norm with every λ."""
    rng = np.random.default_rng([n_kernels, seed])
    views = [GaussianPair.draw(rng, scale) for _ in range(n_kernels)]
    train, validation, test = (
        np.hstack([view.points(rng, CLASS_SIZE) for view in views]) for _ in range(3)
    )
    kernel = RBF(gamma="median")
    columns = {f"view{j}": slice(2 * j, 2 * j + 2) for j in range(n_kernels)}
    union = KernelUnion({name: kernel.on(some) for name, some in columns.items()})
    kernels = union.fit(train)(train)
    new_kernels = union(np.vstack([validation, test]), train)
    truth = np.tile(LABELS, 2)
    norms = list(NORMS.values()) if norms is None else norms
    wrong, gaps, weights = [], [], []
    for p in norms:
        for reg in REGS:
            model = MKFDA("precomputed", p=p, reg=reg, normalize=None, tol=TOL)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the page counts them
                model.fit(kernels, LABELS)
            wrong.append(model.predict(new_kernels) != truth)
            gaps.append(model.certificate_.rel_gap)
            weights.append(model.weights_)
    shape = len(norms), len(REGS)
    rates = np.reshape(wrong, (*shape, 2, 2 * CLASS_SIZE)).mean(axis=-1)
    return Outcome(
        validation=rates[..., 0],
        test=rates[..., 1],
        rel_gaps=np.reshape(gaps, shape),
        weights=np.reshape(weights, (*shape, n_kernels)),
    )


def single_kernel_error(scale: float, n_views: int) -> float:
    """Mean error rate of one kernel alone. The same views for every scale, up to the scale."""
    return float(np.mean([play(1, seed, scale, [1.0]).errors[0] for seed in range(n_views)]))


def calibrated_scale(n_views: int = CALIBRATION_VIEWS, target: float = SINGLE_ERROR) -> float:
    """The scale of covariances at which one kernel alone errs as in the paper."""

    def excess(log_scale: float) -> float:
        return single_kernel_error(float(np.exp(log_scale)), n_views) - target

    return float(np.exp(brentq(excess, np.log(0.1), np.log(20.0), xtol=0.02)))


# -- results -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """The outcomes of all repeats, by number of kernels; 1 for a single kernel."""

    outcomes: dict[int, list[Outcome]]

    @property
    def n_kernels(self) -> list[int]:
        return [n for n in self.outcomes if n > 1]

    def errors(self, n: int) -> np.ndarray:
        """Error rates at the chosen λ, (n_repeats, n_norms)."""
        return np.array([outcome.errors for outcome in self.outcomes[n]])

    def example(self, n: int) -> np.ndarray:
        """Learnt weights of the first problem of n kernels, (n_norms, n)."""
        return self.outcomes[n][0].chosen_weights

    def plain(self) -> Results:
        """What the page tells, by number of kernels."""
        return {str(n): self._plain(n) for n in self.outcomes}

    def _plain(self, n: int) -> dict[str, Any]:
        outcomes = self.outcomes[n]
        test = np.array([outcome.test for outcome in outcomes])
        gaps = np.concatenate([outcome.rel_gaps.ravel() for outcome in outcomes])
        part = {
            "errors": self.errors(n),
            "n_fits": gaps.size,
            "n_short": np.count_nonzero(gaps > TOL),
            "worst_gap": gaps.max(),
        }
        if n == 1:
            return part
        weights = np.array([outcome.chosen_weights[:2] for outcome in outcomes])
        used = np.count_nonzero(weights > _ZERO * weights.max(axis=-1, keepdims=True), axis=-1)
        return {
            **part,
            "fixed": {
                "mean": test.mean(axis=0),
                "difference": [_difference(test[:, :, reg]) for reg in range(test.shape[2])],
            },
            "used": used.mean(axis=0),
            "effective": effective_number(weights).mean(axis=0),
        }


def _difference(errors: np.ndarray) -> tuple[float, float]:
    """Mean of the error of ℓ1 less that of ℓ2 on the same problems, and its standard error."""
    differences = errors[:, 0] - errors[:, 1]
    return float(differences.mean()), float(differences.std(ddof=1) / len(differences) ** 0.5)


def difference(part: dict[str, Any], reg: int | None = None) -> tuple[float, float]:
    """The same, at the chosen λ or at one of this index."""
    if reg is None:
        return _difference(np.array(part["errors"]))
    mean, error = part["fixed"]["difference"][reg]
    return mean, error


def ahead(part: dict[str, Any], reg: int | None = None) -> str:
    """The norm that errs less by more than two standard errors, or "level"."""
    mean, error = difference(part, reg)
    if abs(mean) <= _STANDARD_ERRORS * error:
        return "level"
    return "ℓ2" if mean > 0 else "ℓ1"


def several(results: Results) -> dict[int, dict[str, Any]]:
    """The parts of more than one kernel, by their number."""
    return {int(n): part for n, part in results.items() if n != "1"}


def run(n_kernels: list[int], repeats: int) -> Result:
    """Play every number of kernels, and one kernel alone, `repeats` times."""
    outcomes = {}
    begin = time.perf_counter()
    for n in [1, *n_kernels]:
        # One kernel alone is measured on other views than the scale was solved for.
        first, last = (CALIBRATION_VIEWS, _SINGLE_REPEATS * repeats) if n == 1 else (0, repeats)
        outcomes[n] = [play(n, first + seed) for seed in range(last)]
        seconds = time.perf_counter() - begin
        print(f"{n} kernels, {last} repeats: {seconds:.0f} s", file=sys.stderr, flush=True)
    return Result(outcomes)


# -- tables --------------------------------------------------------------------------------


def error_table(results: Results) -> str:
    """Error rates, a row per number of kernels."""
    rows = []
    for n, part in several(results).items():
        mean, error = difference(part)
        errors = 100 * np.array(part["errors"])
        spread = [f"{e.mean():.1f} ± {e.std():.1f}" for e in errors.T]
        rows.append([str(n), *spread, f"{100 * mean:+.2f} ± {100 * error:.2f}", ahead(part)])
    return markdown(["kernels", *NORMS, "ℓ1 − ℓ2", "ahead"], rows)


def weight_table(results: Results) -> str:
    """How many kernels the norms use, a row per number of kernels."""
    header = ["kernels", "not zero, ℓ1", "not zero, ℓ2", "effective, ℓ1", "effective, ℓ2"]
    rows = [
        [str(n), *(f"{number:.1f}" for number in (*part["used"], *part["effective"]))]
        for n, part in several(results).items()
    ]
    return markdown(header, rows)


def reg_table(results: Results) -> str:
    """Mean error rates with λ held fixed, a row per λ."""
    parts = several(results)
    some = {n: parts[n]["fixed"]["mean"] for n in (5, 20, 50) if n in parts}
    header = ["λ", *(f"{norm}, {n}" for n in some for norm in list(NORMS)[:2])]
    rows = [
        [
            f"{reg:.4g}",
            *(f"{100 * mean[norm][i]:.1f}" for mean in some.values() for norm in (0, 1)),
        ]
        for i, reg in enumerate(REGS)
    ]
    return markdown(header, rows)


def difference_table(results: Results) -> str:
    """ℓ1 − ℓ2 with λ held fixed, a row per λ; in brackets where they are level."""

    def cell(part: dict[str, Any], reg: int) -> str:
        text = f"{100 * difference(part, reg)[0]:+.1f}"
        return f"({text})" if ahead(part, reg) == "level" else text

    parts = several(results)
    rows = [
        [f"{value:.4g}", *(cell(part, reg) for part in parts.values())]
        for reg, value in enumerate(REGS)
    ]
    return markdown(["λ", *map(str, parts)], rows)


def summary(results: Results) -> str:
    """What the paper says, beside what came out, line by line."""
    single = np.array(results["1"]["errors"])[:, 0]
    lines = [
        f"One kernel alone errs {single.mean():.3f} ± {single.std():.3f} here (mean and standard "
        f'deviation); paper: "around {SINGLE_ERROR}".'
    ]
    claims = {5: "ℓ1 slightly ahead", 10: "ℓ2 slightly ahead", 15: "ℓ2 slightly ahead"}
    for n, part in several(results).items():
        claim = claims.get(n, "ℓ2 clearly ahead")
        mean, error = difference(part)
        level = ahead(part) == "level"
        found = "level" if level else f"{ahead(part)} ahead"
        held = "undecided" if level else verdict(claim.startswith(ahead(part)))
        lines.append(
            f"{n} kernels: {found}, ℓ1 − ℓ2 = {100 * mean:+.2f} ± {100 * error:.2f} points "
            f"(mean and standard error); paper: {claim} ({held})."
        )
    lines += [_fixed_reg_line(n, part) for n, part in several(results).items() if n in (5, 20)]
    return "\n".join(f"- {line}" for line in lines)


def _fixed_reg_line(n: int, part: dict[str, Any]) -> str:
    """For which λ, the same for both norms, which norm is ahead."""
    verdicts = [ahead(part, reg) for reg in range(len(REGS))]
    parts = []
    for name, words in (("ℓ1", "ℓ1 ahead"), ("level", "level"), ("ℓ2", "ℓ2 ahead")):
        regs = [f"{reg:.3g}" for reg, found in zip(REGS, verdicts, strict=True) if found == name]
        parts.append(f"{words} at {', '.join(regs) if regs else 'none'}")
    return f"{n} kernels, one λ held fixed for both norms: {'; '.join(parts)}."


def certificates(results: Results) -> str:
    """How many fits fell short of the gap asked for, one line."""
    n_fits, n_short = (
        sum(part[key] for part in results.values()) for key in ("n_fits", "n_short")
    )
    worst = max(part["worst_gap"] for part in results.values())
    return (
        f"{n_fits} fits were asked for a relative duality gap of {TOL:g}; {n_short} fell short "
        f"of it. The worst gap is {worst:.1e}."
    )


def page(results: Results) -> str:
    """The page of the documentation."""
    repeats = len(next(iter(several(results).values()))["errors"])
    parts = [
        "# The simulation of Yan et al. (2012)",
        f"Written by `python -m benchmarks.simulation --write`. Section 3.1 there: n views of two "
        f"overlapping classes, each a pair of Gaussians in the plane and a Gaussian kernel, "
        f"{CLASS_SIZE} + {CLASS_SIZE} points to train and to test, {repeats} problems for each n. "
        "The paper prints neither its covariances nor the width of its kernels nor λ. Here: "
        f"variances uniform in {SCALE:g} · [0.5, 1.5] along axes in a random direction, with the "
        f"factor solved for such that one kernel alone errs {SINGLE_ERROR} "
        "(`--calibrate`); the median distance; and for each norm the best of ten λ, "
        "4⁻⁵ … 4⁴, on as many validation points.",
        environments(results),
        "![Error rates and weights](../images/simulation.png)",
        "## Beside the paper",
        summary(results),
        "## Error rates, per cent",
        "Mean and standard deviation over problems; the difference of ℓ1 and ℓ2 on the same "
        f"problems with its standard error. Ahead: by more than {_STANDARD_ERRORS:g} of those.",
        error_table(results),
        "## Weights",
        f"Mean number of weights above {_ZERO:g} of the largest, and the effective number "
        "(Σw)²/Σw².",
        weight_table(results),
        "## With λ held fixed",
        "Error rates, per cent, for each λ and some numbers of kernels.",
        reg_table(results),
        "The same λ regularises ℓ1 more: its weights have sum 1, those of ℓ2 up to √n. ℓ1 − ℓ2 in "
        "points, for each λ and number of kernels; in brackets where the norms are level.",
        difference_table(results),
        certificates(results),
    ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def write_picture(result: Result) -> None:
    """Write the picture beside the pages."""
    # Only here: the tables do without matplotlib.
    from benchmarks._simulation_picture import draw

    path = _command.PAGES.parent / "images" / "simulation.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(result, [_example_points(seed) for seed in range(3)]).savefig(path, dpi=130)
    print(f"Written: {path}")


def _example_points(seed: int) -> np.ndarray:
    rng = np.random.default_rng([1, seed])
    return GaussianPair.draw(rng, SCALE).points(rng, CLASS_SIZE).reshape(2, CLASS_SIZE, 2)


def main(arguments: list[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulation",
        description="ℓ1 against ℓ2 on simulated views, after Yan et al. (2012).",
    )
    parser.add_argument("--quick", action="store_true", help="a part of it, to see it work")
    parser.add_argument("--repeats", type=int, help=f"problems for each n (default: {REPEATS})")
    parser.add_argument("--calibrate", action="store_true", help="solve for the covariances")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/simulation.md")
    options = parser.parse_args(arguments)
    if options.calibrate:
        print(f"scale {calibrated_scale():.3f}: one kernel alone errs {SINGLE_ERROR}")
        return 0
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    result = run(QUICK_N_KERNELS if options.quick else N_KERNELS, repeats)
    found = result.plain()
    if options.write:
        write_picture(result)
    report("simulation", found, page, options.write, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Whether "converged" can be believed: random fits, judged by an oracle of their own.

    python -m benchmarks.certificates [--sets kernels,features] [--fits 10000] [--first 0]
        [--seed K] [--quick] [--write]

Of kernels, each seed draws an estimator, a stack of hard kernels (low rank, near duplicates,
scales 1e12 apart, offsets in the data, zero and constant kernels, slightly indefinite ones), its
parameters (tiny and huge regularisation, p from 1 to ∞, several solvers and tolerances) and fits
it. The oracle (:mod:`benchmarks._certificate_oracle`) computes the duality gap again from the
kernels and the returned model, in extended precision. A fit that claims to have converged and
whose gap is above twice its tolerance is listed, as is one that crashed or that did not warn and
should have; ``--seed`` runs that one alone. Fits on explicit features, of
:mod:`._certificate_features`, are judged by the same oracle.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import _certificate_features
from benchmarks._certificate_oracle import (
    Bounds,
    Machine,
    Wide,
    centred,
    fisher_bounds,
    machine_bounds,
)
from benchmarks._command import command_line, write_sections
from benchmarks._tables import environment, markdown
from manykernels import MKFDA, MKSVC, MKSVR, KernelStack, MKOneClassSVM
from manykernels.kernels.transforms import preparation

FITS, FITS_QUICK = 10_000, 200
TITLES = {"kernels": "Kernel matrices", "features": "Explicit features"}
HEAD = """# Certificates against an oracle

`python -m benchmarks.certificates --write`. Random fits of hard problems. Of those that claim a
gap within their tolerance, an oracle computes the gap again from the data and the model, in
extended precision."""
MOST = 2.0
NORMS = (1.0, 1.0, 1.01, 1.1, 1.5, 2.0, 2.0, 4.0, 8.0, np.inf)
SOLVERS = ("newton", "newton", "newton", "sip", "analytic")
FDA_SOLVERS = (*SOLVERS, "coordinate")
SVM_SOLVERS = (*SOLVERS, "interleaved", "interleaved")
SMOOTH_NORM_SOLVERS = {"fda": "dual", "svc": "smo-mkl", "svr": "smo-mkl", "one": "smo-mkl"}
MOST_ITERATIONS = 300


# -- problems --------------------------------------------------------------------------------


def _gram(X: Any, kind: str, rng: np.random.Generator) -> Any:
    n_features = X.shape[1]
    columns = rng.choice(n_features, rng.integers(1, n_features + 1), replace=False)
    Z = X[:, columns]
    if kind == "linear":
        return Z @ Z.T
    distances = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    width = distances.mean() + 1e-300
    if kind == "wide":
        width *= 10.0 ** rng.uniform(4, 11)
    return np.exp(-distances / width)


def draw_kernels(X: Any, rng: np.random.Generator) -> list[Any]:
    """Gram matrices of one to six kernels, as hard as it gets."""
    kinds = ["linear", "linear", "rbf", "rbf", "wide", "zero", "constant", "copy", "indefinite"]
    chances = np.array([4, 4, 4, 4, 1, 0.5, 0.5, 2, 1])
    kernels: list[Any] = []
    spread = rng.choice([0.0, 0.0, 2.0, 6.0])
    for _ in range(rng.integers(1, 7)):
        kind = rng.choice(kinds, p=chances / chances.sum())
        if kind == "zero":
            kernel = np.zeros((len(X), len(X)))
        elif kind == "constant":
            kernel = np.full((len(X), len(X)), 3.7)
        elif kind == "copy" and kernels:
            bump = rng.standard_normal((len(X), 1))
            size = np.trace(kernels[-1]) / len(X)
            kernel = kernels[-1] + size * 10.0 ** rng.uniform(-14, -3) * (bump @ bump.T)
        elif kind == "indefinite":
            kernel = _gram(X, "rbf", rng)
            hole = rng.standard_normal((len(X), 1))
            hole -= hole.mean()
            top = np.linalg.eigvalsh(kernel)[-1]
            kernel = (
                kernel - 10.0 ** rng.uniform(-8, -4.5) * top * (hole @ hole.T) / (hole**2).sum()
            )
        else:
            kernel = _gram(X, "linear" if kind == "copy" else kind, rng)
        kernels.append(kernel * 10.0 ** rng.uniform(-spread, spread))
    return [(kernel + kernel.T) / 2 for kernel in kernels]


@dataclass(frozen=True)
class Fit:
    """One random fit: what to fit, and how the oracle judges it."""

    model: Any
    kernels: list[Any]
    y: Any
    mass: Any

    @property
    def title(self) -> str:
        shown = {
            name: getattr(self.model, name)
            for name in ("p", "reg", "C", "loss", "nu")
            if hasattr(self.model, name)
        }
        parameters = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in shown.items()
        )
        return (
            f"{type(self.model).__name__}({parameters}, solver={self.model.solver}, "
            f"normalize={self.model.normalize}, tol={self.model.tol:g})"
        )

    def run(self) -> tuple[Any, bool]:
        """The fitted model, and whether it warned that it did not converge."""
        stack = KernelStack.from_arrays(self.kernels)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self.model.fit(stack, self.y, sample_weight=self.mass)
        return model, any(issubclass(w.category, ConvergenceWarning) for w in caught)

    def judge(self, model: Any) -> Bounds:
        """What the oracle says of the fitted model."""
        return _judged(self, model)


def draw(seed: int) -> Fit:
    """The random fit of this number."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(10, 36))
    X = rng.standard_normal((m, int(rng.integers(1, 6))))
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(1, 6) * rng.choice([-1, 1], X.shape[1])
    if rng.random() < 0.2:
        X[: m // 3] = X[-(m // 3) :]
    kernels = draw_kernels(X, rng)
    mass = rng.choice([0.5, 1.0, 2.0, 3.0], m) if rng.random() < 0.3 else None
    common = {
        "kernels": "precomputed",
        "p": float(rng.choice(NORMS)),
        "tol": float(10.0 ** rng.integers(-8, -1)),
        "normalize": rng.choice(["multiplicative", "trace", "spherical", None]),
    }
    kind = rng.choice(["fda", "svc", "svr", "one"], p=[0.35, 0.3, 0.2, 0.15])
    usual = FDA_SOLVERS if kind == "fda" else SVM_SOLVERS
    fitting = ("reduced-gradient", "qcqp") if common["p"] == 1.0 else (SMOOTH_NORM_SOLVERS[kind],)
    solver = str(rng.choice([*usual, *fitting]))
    common["solver"] = solver
    if solver not in ("newton", "dual"):
        common["max_iter"] = MOST_ITERATIONS
    penalty = float(10.0 ** rng.uniform(-5, 6))
    target = np.sin(np.arange(m)) + (X - X.mean(axis=0))[:, 0]
    if kind == "svr":
        epsilon = float(rng.choice([0.0, 0.01, 0.1, 1.0]))
        scale = float(10.0 ** rng.choice([0, 0, -3, 3]))
        model: Any = MKSVR(C=penalty, epsilon=epsilon * scale, **common)
        return Fit(model, kernels, scale * target, mass)
    if kind == "one":
        return Fit(MKOneClassSVM(nu=float(rng.uniform(0.05, 1.0)), **common), kernels, None, mass)
    n_classes = int(rng.choice([2, 2, 3, 4]))
    labels = np.argsort(np.argsort(target)) * n_classes // m
    flip = rng.random(m) < 0.1
    labels = np.where(flip, rng.integers(0, n_classes, m), labels)
    labels[:n_classes] = np.arange(n_classes)
    if kind == "fda":
        reg = float(10.0 ** rng.uniform(-10, 5))
        return Fit(MKFDA(reg=reg, **common), kernels, labels, mass)
    loss = str(rng.choice(["hinge", "hinge", "squared_hinge"]))
    return Fit(MKSVC(C=penalty, loss=loss, **common), kernels, labels, mass)


# -- verdicts --------------------------------------------------------------------------------


def _judged(fit: Fit, model: Any) -> Bounds:
    witness = getattr(model.certificate_, "dual_point", None)
    mass = np.ones(len(fit.kernels[0])) if fit.mass is None else fit.mass
    kernels = _normalized(fit, mass)
    if isinstance(model, MKFDA):
        reg, weights = model.reg, model.weights_
        return fisher_bounds(kernels, fit.y, Wide(1) * mass, reg, weights, model.p, witness)
    coefficients = np.zeros((len(model.dual_coef_), len(mass)))
    coefficients[:, model.support_] = model.dual_coef_
    biases = model.intercept_.astype(Wide)
    if not isinstance(model, MKOneClassSVM):
        # The same machine on centred kernels, where nothing cancels.
        pairs = [centred(kernel, Wide(1) * mass) for kernel in kernels]
        kernels = [pair[0] for pair in pairs]
        offset = sum(w * pair[1] for w, pair in zip(model.weights_, pairs, strict=True))
        biases = biases + coefficients.astype(Wide) @ offset
    machines = _machines(fit, model, mass)
    weights = model.weights_
    return machine_bounds(kernels, machines, coefficients, biases, weights, model.p, witness)


def _normalized(fit: Fit, mass: Any) -> list[Any]:
    """Kernels in extended precision, scaled as the model's normalisation scales them."""
    stack = KernelStack.from_arrays(fit.kernels)
    chain = preparation(fit.model.normalize, center=isinstance(fit.model, MKFDA))
    chain.fit(stack, sample_weight=mass)
    kernels = [kernel.astype(Wide) for kernel in fit.kernels]
    for step in chain.steps:
        if hasattr(step, "col_factor_"):
            factors = step.col_factor_.astype(Wide)
            kernels = [k * f * f[:, None] for k, f in zip(kernels, factors, strict=True)]
        elif hasattr(step, "scale_"):
            kernels = [k * Wide(s) for k, s in zip(kernels, step.scale_, strict=True)]
    return kernels


def _machines(fit: Fit, model: Any, mass: Any) -> list[Machine]:
    zeros = np.zeros(len(mass))
    if isinstance(model, MKSVR):
        return [Machine(fit.y, -model.C * mass, model.C * mass, width=model.epsilon)]
    if isinstance(model, MKOneClassSVM):
        return [Machine(zeros, zeros, mass, total=model.nu * mass.sum())]
    columns = np.arange(1, 2) if fit.y.max() == 1 else np.arange(fit.y.max() + 1)
    machines = []
    for k in columns:
        signs = np.where(fit.y == k, 1.0, -1.0)
        if model.loss == "hinge":
            ends, ridge = model.C * mass * signs, 0.0
        else:
            ends, ridge = np.inf * signs, 1.0 / (model.C * mass)
        machines.append(Machine(signs, np.minimum(ends, 0.0), np.maximum(ends, 0.0), ridge=ridge))
    return machines


@dataclass(frozen=True)
class Verdict:
    """One fit as the package and as the oracle see it."""

    seed: int
    title: str
    status: str
    claimed: float = 0.0
    found: float = 0.0
    tol: float = 0.0
    warned: bool = False

    @property
    def is_wrong(self) -> bool:
        if self.status == "certified":
            return not self.found <= MOST * self.tol or self.warned
        return self.status == "crashed" or not (self.warned or self.status == "refused")


DRAWN: dict[str, Callable[[int], Any]] = {"kernels": draw, "features": _certificate_features.draw}


def examine(seed: int, kind: str = "kernels") -> Verdict:
    """Draw, fit and judge."""
    fit = DRAWN[kind](seed)
    try:
        model, warned = fit.run()
    except ValueError as error:
        return Verdict(seed, f"{fit.title}: {error}", "refused")
    except Exception as error:
        return Verdict(seed, f"{fit.title}: {error!r}", "crashed")
    certificate = model.certificate_
    bounds = fit.judge(model)
    # A claimed objective that is not that of the model is as wrong as a claimed gap.
    off = abs(certificate.primal - bounds.upper) / (abs(bounds.upper) or 1.0)
    found = max(bounds.relative_gap, float(off))
    claimed, tol = certificate.rel_gap, certificate.tol
    status = getattr(certificate, "status", "certified" if certificate.converged else "stopped")
    return Verdict(seed, fit.title, status, claimed, found, tol, warned)


def report(verdicts: list[Verdict]) -> str:
    """Counts by estimator and status, and every fit that claims too much."""
    statuses = ["certified", "limited by rounding", "stopped", "refused", "crashed"]
    kinds = sorted({verdict.title.split("(")[0] for verdict in verdicts})
    counts = Counter((verdict.title.split("(")[0], verdict.status) for verdict in verdicts)
    rows = [[kind, *(str(counts[kind, status]) for status in statuses)] for kind in kinds]
    totals = [str(sum(counts[kind, status] for kind in kinds)) for status in statuses]
    wrong = [verdict for verdict in verdicts if verdict.is_wrong]
    above = sum(verdict.status == "certified" for verdict in wrong)
    parts = [
        markdown(["", *statuses], [*rows, ["all", *totals]]),
        f"Of {totals[0]} certified fits {above} have an independent gap above {MOST:g} · tol.",
    ]
    if wrong:
        listed = [
            [str(v.seed), f"{v.tol:g}", f"{v.claimed:.1e}", f"{v.found:.1e}", v.title]
            for v in wrong
        ]
        parts.append(markdown(["seed", "tol", "claimed", "found", "fit"], listed))
    return "\n\n".join(parts)


def main() -> None:
    parser = command_line("certificates", __doc__.split("\n")[0], list(DRAWN))
    parser.add_argument("--fits", type=int, default=FITS, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seed", type=int, help="one fit alone")
    options = parser.parse_args()
    n_fits = FITS_QUICK if options.quick else options.fits
    sections = {}
    for kind in options.sets:
        if options.seed is not None:
            print(examine(options.seed, kind))
            continue
        verdicts = []
        with threadpool_limits(1):
            for seed in range(options.first, options.first + n_fits):
                verdicts.append(examine(seed, kind))
                if verdicts[-1].is_wrong:
                    print(verdicts[-1], flush=True)
        sections[TITLES[kind]] = f"{environment()}\n\n{report(verdicts)}"
        print(f"\n## {TITLES[kind]}\n\n{sections[TITLES[kind]]}")
    if options.write and sections:
        write_sections("certificates", HEAD, sections)


if __name__ == "__main__":
    main()

"""Random fits of smooth losses, and how the oracle judges them.

The functions φ of the outputs are written down a second time, from their definitions and in
extended precision. With a = α/λ and b the coefficients and biases that were returned, and
``f = K_βa + b``,

    F(β) ≤ P = φ(f) + ½ λ tr(aᵀK_βa)
    min_B F ≥ φ(f) + tr(αᵀf) − σ_B(g),   α = −∇φ(f),   g_j = tr(αᵀK_jα)/2λ     for every f

(Fenchel's equality), where biases are such that the columns of α sum to zero. Two f are tried: the
outputs of the model, and those whose α is the dual point of the certificate.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks._certificate_oracle import Bounds, Wide, centred, outside, support
from benchmarks._certificate_problems import (
    NORMALIZATIONS,
    Fit,
    draw_kernels,
    draw_rows,
    target_of,
    wide_kernels,
)
from manykernels import KernelStack
from manykernels.domains import Domain, lp_domain, product_domain
from manykernels.kernels.on_demand import RegionalKernels
from manykernels.kernels.transforms import preparation
from manykernels.losses.base import Certificate
from manykernels.losses.cox import Cox
from manykernels.losses.smooth import Logistic, Multinomial, Poisson, SmoothFunction
from manykernels.losses.smooth_loss import SmoothLoss
from manykernels.solvers import SOLVERS
from manykernels.solvers.base import Solution, refuse_indefinite

NORMS = (1.0, 1.0, 1.01, 4 / 3, 4 / 3, 2.0, 2.0, 8.0, np.inf)
MOST_ROWS = 60
# Of solvers that may take hundreds; an iteration of the last has up to sixty inner solves.
MOST_ITERATIONS = {"sip": 100, "silp": 100, "analytic": 300, "reduced-gradient": 20}
#: Makes a function of outputs, which it may refuse.
Make = Callable[[], SmoothFunction]

# -- functions of outputs, in extended precision -----------------------------------------------


class Definition(ABC):
    """φ of outputs (m, c) in extended precision."""

    has_bias = True

    @abstractmethod
    def value(self, outputs: Any) -> Any:
        """φ."""

    @abstractmethod
    def gradient(self, outputs: Any) -> Any:
        """∇φ, (m, c)."""

    @abstractmethod
    def totals(self, outputs: Any) -> Any:
        """Second derivatives in the biases, (c, c), in double precision."""

    @abstractmethod
    def inverse(self, dual: Any, outputs: Any) -> Any:
        """Outputs with the gradient −α, or close to it; `outputs` are a guess."""

    def balanced(self, outputs: Any) -> Any:
        """Outputs with biases added that minimise φ."""
        if not self.has_bias:
            return outputs
        best, previous = np.inf, outputs
        for _ in range(100):
            sums = self.gradient(outputs).sum(axis=0)
            if not np.abs(sums).max() < best:
                return previous
            best, previous = np.abs(sums).max(), outputs
            if best == 0:
                return outputs
            step = np.linalg.lstsq(self.totals(outputs), -sums.astype(float), rcond=1e-13)[0]
            value, slope = self.value(outputs), sums @ step
            factor = Wide(1)
            while (
                factor > 1e-9 and self.value(outputs + factor * step) > value + slope * factor / 4
            ):
                if np.abs(self.gradient(outputs + factor * step).sum(axis=0)).max() < best:
                    break  # the fall is too small to be seen
                factor /= 2
            outputs = outputs + factor * step
        return outputs


@dataclass(frozen=True)
class WideMultinomial(Definition):
    """``Σ_i w_i (log Σ_k exp f_ik − f_i,y_i)``."""

    labels: Any
    mass: Any
    has_bias: bool = True

    def _shifted(self, outputs: Any) -> Any:
        """Outputs less that of the label."""
        return outputs - outputs[np.arange(len(outputs)), self.labels][:, None]

    def value(self, outputs: Any) -> Any:
        shifted = self._shifted(outputs)
        largest = shifted.max(axis=1)
        others = np.exp(shifted - largest[:, None]).sum(axis=1)
        # Where the label is the largest, its one is not added to the small ones.
        rest = np.exp(np.where(self._own(outputs), -np.inf, shifted)).sum(axis=1)
        logs = np.where(largest == 0, np.log1p(rest), largest + np.log(others))
        return self.mass @ logs

    def _own(self, outputs: Any) -> Any:
        return self.labels[:, None] == np.arange(outputs.shape[1])

    def _probabilities(self, outputs: Any) -> Any:
        powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def gradient(self, outputs: Any) -> Any:
        own = self._own(outputs)
        others = np.where(own, 0, self._probabilities(outputs))
        return self.mass[:, None] * np.where(own, -others.sum(axis=1, keepdims=True), others)

    def totals(self, outputs: Any) -> Any:
        p = self._probabilities(outputs)
        weighted = self.mass[:, None] * p
        return (np.diag(weighted.sum(axis=0)) - weighted.T @ p).astype(float)

    def inverse(self, dual: Any, outputs: Any) -> Any:
        counts = self.mass > 0
        shares = -dual / np.where(counts, self.mass, 1)[:, None]
        own = self._own(outputs)
        others = np.maximum(np.where(own, 0, shares), 0)
        least = np.finfo(Wide).tiny
        of_label = np.maximum(1 - others.sum(axis=1, keepdims=True), least)
        logs = np.log(np.maximum(np.where(own, of_label, others), least))
        return np.where(counts[:, None], logs, outputs)


class WideLogistic(WideMultinomial):
    """``Σ_i w_i log(1 + exp(−y_i f_i))``: two classes, the output of the first being zero."""

    @staticmethod
    def _both(outputs: Any) -> Any:
        return np.hstack([np.zeros_like(outputs), outputs])

    def value(self, outputs: Any) -> Any:
        return super().value(self._both(outputs))

    def gradient(self, outputs: Any) -> Any:
        return super().gradient(self._both(outputs))[:, 1:]

    def totals(self, outputs: Any) -> Any:
        return super().totals(self._both(outputs))[1:, 1:]

    def inverse(self, dual: Any, outputs: Any) -> Any:
        both = super().inverse(np.hstack([-dual, dual]), self._both(outputs))
        return both[:, 1:] - both[:, :1]


@dataclass(frozen=True)
class WidePoisson(Definition):
    """``Σ_i w_i (exp(f_i + o_i) − y_i (f_i + o_i) + y_i log y_i − y_i)``."""

    counts: Any
    offset: Any
    mass: Any
    has_bias: bool = True

    def _parts(self, outputs: Any) -> tuple[Any, Any]:
        """``exp(e) − 1`` and e of positive counts, from the logarithm of the count."""
        positive = np.where(self.counts > 0, self.counts, 1)
        excess = outputs[:, 0] + self.offset - np.log(positive)
        return excess, np.expm1(excess)

    def value(self, outputs: Any) -> Any:
        excess, grown = self._parts(outputs)
        terms = np.where(self.counts > 0, self.counts * (grown - excess), grown + 1)
        return np.sum(np.where(self.mass > 0, self.mass * terms, 0))

    def gradient(self, outputs: Any) -> Any:
        _, grown = self._parts(outputs)
        slopes = np.where(self.counts > 0, self.counts * grown, grown + 1)
        return np.where(self.mass > 0, self.mass * slopes, 0)[:, None]

    def totals(self, outputs: Any) -> Any:
        means = np.exp(outputs[:, 0] + self.offset)
        return np.array([[np.sum(np.where(self.mass > 0, self.mass * means, 0))]], dtype=float)

    def inverse(self, dual: Any, outputs: Any) -> Any:
        counts = self.mass > 0
        means = self.counts - dual[:, 0] / np.where(counts, self.mass, 1)
        logs = np.log(np.maximum(means, np.finfo(Wide).tiny)) - self.offset
        return np.where(counts, logs, outputs[:, 0])[:, None]


@dataclass(frozen=True)
class WideCox(Definition):
    """The partial likelihood, a sum over the logarithms of sums over risk sets.

    `sums` (n, m) are the weights of the samples in each sum, `factors` (n,) those of the
    logarithms, `totals_of_events` (n,) what the sums are divided by.
    """

    sums: Any
    factors: Any
    totals_of_events: Any
    events: Any
    has_bias: bool = False

    @classmethod
    def of(cls, time: Any, event: Any, entry: Any, strata: Any, ties: str, mass: Any) -> WideCox:
        sums, factors, totals = [], [], []
        happened = event & (mass > 0)
        for stratum in np.unique(strata[happened]):
            members = strata == stratum
            for moment in np.unique(time[happened & members]):
                tied = happened & members & (time == moment)
                risk = np.where(members & (time >= moment) & (entry < moment), mass, 0)
                whole, number = mass[tied].sum(), int(tied.sum())
                for k in range(number if ties == "efron" else 1):
                    share = Wide(1) - Wide(k) / number if ties == "efron" else Wide(1)
                    sums.append(np.where(tied, share * risk, risk))
                    factors.append(whole / number if ties == "efron" else whole)
                    totals.append(whole * share)
        if not sums:  # refused
            sums, factors, totals = [mass], [Wide(1)], [Wide(1)]
        return cls(*map(np.array, (sums, factors, totals)), np.where(happened, mass, 0))

    def _shares(self, outputs: Any) -> tuple[Any, Any]:
        """Shares of the samples in every sum, and the logarithms of the sums."""
        f = outputs[:, 0]
        largest = np.where(self.sums > 0, f, -np.inf).max(axis=1)
        powers = np.where(self.sums > 0, self.sums * np.exp(f - largest[:, None]), 0)
        whole = powers.sum(axis=1)
        return powers / whole[:, None], largest + np.log(whole)

    def value(self, outputs: Any) -> Any:
        logs = self._shares(outputs)[1] - np.log(self.totals_of_events)
        return self.factors @ logs - self.events @ outputs[:, 0]

    def gradient(self, outputs: Any) -> Any:
        return (self.factors @ self._shares(outputs)[0] - self.events)[:, None]

    def totals(self, outputs: Any) -> Any:
        return np.zeros((1, 1))

    def inverse(self, dual: Any, outputs: Any) -> Any:
        """By Newton's method, with steps in double precision."""
        for _ in range(60):
            shares = self._shares(outputs)[0]
            left = self.gradient(outputs) + dual
            weighted = self.factors[:, None] * shares
            hessian = np.diag(weighted.sum(axis=0)) - weighted.T @ shares
            step = np.linalg.lstsq(hessian.astype(float), -left.astype(float), rcond=1e-14)[0]
            size, factor = np.abs(left).max(), Wide(1)
            while np.abs(self.gradient(outputs + factor * step) + dual).max() >= size:
                factor /= 2
                if factor < 1e-6:
                    return outputs
            outputs = outputs + factor * step
        return outputs


# -- fits --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SmoothModel:
    """What a fit returns; the names are those of estimators where the oracle needs them."""

    solution: Solution
    stack: Any

    @property
    def certificate_(self) -> Certificate:
        return self.solution.certificate

    @property
    def weights_(self) -> Any:
        return self.solution.weights


@dataclass(frozen=True)
class SmoothFit(Fit):
    """A smooth loss of kernel matrices X, solved without an estimator.

    `model` holds the options. `mass` are the sample weights by which kernels are centred, if at
    all; `roots` (n_regions, m) are roots of shares in regions, or None.
    """

    make: Make
    definition: Definition
    roots: Any

    @property
    def kind(self) -> str:
        return type(self.definition).__name__.removeprefix("Wide")

    @property
    def title(self) -> str:
        options = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.model.items()
        )
        return f"{self.kind}({options})"

    @property
    def n_samples(self) -> int:
        return len(self.X[0])

    @property
    def domain(self) -> Domain:
        return product_domain(lp_domain(self.model["p"]), self.n_blocks)

    @property
    def n_blocks(self) -> int:
        return 1 if self.roots is None else len(self.roots)

    def run(self) -> tuple[Any, bool]:
        options = self.model
        stack: Any = self._chain().fit_transform(
            KernelStack.from_arrays(self.X), sample_weight=self.masses.astype(float)
        )
        if self.roots is not None:
            stack = RegionalKernels(stack, self.roots, self.roots)
        loss = SmoothLoss(stack, self.make(), options["reg"], options["inner_tol"])
        solver = SOLVERS[options["solver"]]()
        most = MOST_ITERATIONS.get(options["solver"])
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            solution = solver.solve(loss, self.domain, tol=options["tol"], max_iter=most)
        refuse_indefinite(solution, self.domain, loss, list(stack.names))
        # An estimator warns if its certificate is not good enough.
        return SmoothModel(solution, stack), not solution.certificate.converged

    def _chain(self) -> Any:
        return preparation(self.model["normalize"], center=self.model["center"])

    def outside(self, model: Any) -> float:
        return outside(model.weights_, self.model["p"], self.n_blocks)

    def judge(self, model: Any) -> Bounds:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._judged(model)

    def _judged(self, model: Any) -> Bounds:
        definition, reg = self.definition, Wide(self.model["reg"])
        kernels = wide_kernels(KernelStack.from_arrays(self.X), self._chain(), self.masses)
        if self.model["center"]:
            kernels = [centred(kernel, self.masses)[0] for kernel in kernels]
        if self.roots is not None:
            outer = [np.outer(root, root) for root in self.roots.astype(Wide)]
            kernels = [shares * kernel for shares in outer for kernel in kernels]
        evaluation: Any = model.solution.evaluation
        weights = model.weights_.astype(Wide)
        combined = sum(w * kernel for w, kernel in zip(weights, kernels, strict=True))
        coefficients, biases = evaluation.coefficients.astype(Wide), evaluation.biases
        products = combined @ coefficients
        penalty = reg * np.sum(coefficients * products) / 2
        outputs = products + biases
        said = model.stack.combine(model.weights_) @ evaluation.coefficients + biases
        point = model.certificate_.dual_point.astype(Wide)
        lower = max(self._lower(kernels, f) for f in (outputs, definition.inverse(point, outputs)))
        upper, predicted = (definition.value(f) + penalty for f in (outputs, said.astype(Wide)))
        return Bounds(upper, lower, predicted)

    def _lower(self, kernels: list[Any], outputs: Any) -> Any:
        """What the dual variables of some outputs prove."""
        f = self.definition.balanced(outputs)
        dual = -self.definition.gradient(f)
        gains = np.array([np.sum(dual * (kernel @ dual)) for kernel in kernels])
        gains = gains / (2 * Wide(self.model["reg"]))
        linear = self.definition.value(f) + np.sum(dual * f)
        if self.definition.has_bias:  # what is left of the sums, times what a bias may be
            linear -= np.abs(dual.sum(axis=0)).sum() * np.abs(f).max()
        return linear - support(gains, self.model["p"], self.n_blocks)


# -- random problems ---------------------------------------------------------------------------


def draw_weights(rng: np.random.Generator, n_rows: int) -> Any:
    """Sample weights, some of them zero, or none."""
    if rng.random() < 0.5:
        return None
    weights = rng.choice([0.0, 0.5, 1.0, 1.0, 5.0], n_rows)
    return weights if weights.any() else None


def draw_function(X: Any, rng: np.random.Generator) -> tuple[Make, Definition, Any]:
    """A function of outputs that follow the first column, its definition, and sample weights."""
    m = len(X)
    kind = rng.choice(["logistic", "multinomial", "poisson", "cox"], p=[0.25, 0.25, 0.15, 0.35])
    given = draw_weights(rng, m)
    mass = np.ones(m) if given is None else given
    wide = mass.astype(Wide)
    signal = target_of(X)
    if kind == "poisson":
        offset = rng.choice([0.0, 1.0, 5.0]) * rng.standard_normal(m) + rng.choice(
            [0.0, 0.0, 30.0]
        )
        rates = np.exp(np.clip(signal - signal.mean(), -3, 3) * rng.choice([0.2, 1.0, 3.0]))
        counts = rng.poisson(rates * rng.choice([0.1, 1.0, 1e3])).astype(float)
        bias = bool(rng.random() < 0.8)
        make: Make = partial(Poisson, counts, offset, given, has_bias=bias)
        return make, WidePoisson(counts, offset.astype(Wide), wide, bias), mass
    if kind == "cox":
        return *draw_cox(signal, rng, given, wide), mass
    n_classes = 2 if kind == "logistic" else int(rng.integers(2, 7))
    order = np.argsort(np.argsort(signal))
    # Classes of equal size, or one of them with most of the samples.
    ends = np.linspace(0, 1, n_classes + 1)[1:] ** rng.choice([1.0, 1.0, 0.2])
    labels = np.searchsorted(ends * m, order + 1)
    labels = np.where(
        rng.random(m) < rng.choice([0.0, 0.1]), rng.integers(0, n_classes, m), labels
    )
    places = rng.permutation(np.flatnonzero(mass) if mass.any() else np.arange(m))[:n_classes]
    labels[places] = np.arange(len(places))
    bias = bool(rng.random() < 0.85)
    if kind == "logistic":
        make = partial(Logistic, 2 * labels - 1, given, has_bias=bias)
        return make, WideLogistic(labels, wide, bias), mass
    make = partial(Multinomial, labels, n_classes, given, has_bias=bias)
    return make, WideMultinomial(labels, wide, bias), mass


def draw_cox(
    signal: Any, rng: np.random.Generator, given: Any, mass: Any
) -> tuple[Make, Definition]:
    """Survival times, tied or not, perhaps in strata, perhaps with late entries."""
    m = len(signal)
    time = rng.exponential(np.exp(-np.clip(signal - signal.mean(), -5, 5)), m) + 1e-3
    ranks = np.argsort(np.argsort(time)) + 1.0
    n_times = rng.choice([m, 8, 2])
    time = np.ceil(ranks * n_times / m) * 10.0 ** rng.choice([0, 0, -6, 6])
    event = rng.random(m) < rng.choice([0.1, 0.7, 1.0])
    if rng.random() < 0.9:
        event[rng.choice(np.flatnonzero(mass > 0))] = True
    entry = time - rng.exponential(time) if rng.random() < 0.3 else None
    strata = rng.integers(0, rng.choice([2, 4, m]), m) if rng.random() < 0.3 else None
    ties = str(rng.choice(["efron", "breslow"]))
    make = partial(Cox, time, event, entry=entry, strata=strata, ties=ties, sample_weight=given)
    entries = np.full(m, -np.inf) if entry is None else entry
    groups = np.zeros(m) if strata is None else strata
    return make, WideCox.of(time, event, entries, groups, ties, mass)


def draw_roots(rng: np.random.Generator, n_rows: int) -> Any:
    """Roots of shares in two or three regions, or None."""
    if rng.random() < 0.8:
        return None
    shares = np.exp(rng.choice([0.5, 3.0, 50.0]) * rng.random((int(rng.integers(2, 4)), n_rows)))
    return np.sqrt(shares / shares.sum(axis=0))


def draw_smooth(seed: int) -> SmoothFit:
    """A smooth loss on kernel matrices, plain or in regions."""
    rng = np.random.default_rng(seed)
    X = draw_rows(rng, MOST_ROWS + 1, int(rng.integers(1, 6)))
    stack = draw_kernels(X, rng)
    if rng.random() < 0.2:
        stack.append(stack[0])
    if rng.random() < 0.3:
        factor = 10.0 ** rng.uniform(-8, 8)
        stack = [factor * kernel for kernel in stack]
    if rng.random() < 0.2:
        stack = [kernel.astype(np.float32) for kernel in stack]
    make, definition, mass = draw_function(X, rng)
    p, tol = float(rng.choice(NORMS)), float(10.0 ** rng.integers(-8, -1))
    roots = draw_roots(rng, len(X))
    papers = ("silp", "reduced-gradient") if p == 1.0 and roots is None else ()
    options = {
        "p": p,
        "reg": float(10.0 ** rng.uniform(-8, 6)),
        "tol": tol,
        "inner_tol": float(rng.choice([1e-2 * tol, min(1e-8, tol)])),
        "solver": str(rng.choice(["newton", "newton", "newton", "sip", "analytic", *papers])),
        "normalize": rng.choice(NORMALIZATIONS),
        "center": bool(rng.random() < 0.5),
    }
    return SmoothFit(options, stack, None, mass, make, definition, roots)


# -- ordinary problems -------------------------------------------------------------------------

# Rows, and λ of the problems whose inner solves are counted.
ORDINARY_ROWS = 150
ORDINARY_REGS = (0.01, 0.1, 1.0, 10.0)
ORDINARY_NORMS = (1.0, 4 / 3, 2.0, 8.0)
ORDINARY_SEEDS = 3


def ordinary_problem(kind: str, seed: int) -> tuple[Any, SmoothFunction]:
    """Ten kernels, normalised and centred, of four pairs of columns and of all, and a function."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ORDINARY_ROWS, 8))
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    kernels = []
    for columns in (slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8), slice(None)):
        Z = X[:, columns]
        distances = np.sum((Z[:, None] - Z) ** 2, axis=2)
        kernels += [Z @ Z.T, np.exp(-distances / distances.mean())]
    stack = preparation("multiplicative", center=True).fit_transform(
        KernelStack.from_arrays(kernels)
    )
    noisy = signal + rng.logistic(size=len(X))
    if kind == "Logistic":
        return stack, Logistic(np.where(noisy > 0, 1, -1))
    if kind == "Multinomial":
        return stack, Multinomial(np.digitize(noisy, [-1.5, 0.0, 1.5]))
    if kind == "Poisson":
        return stack, Poisson(rng.poisson(np.exp(0.5 * signal)))
    time = rng.exponential(np.exp(-signal))
    censored = rng.exponential(2 * np.median(time), len(X))
    return stack, Cox(np.round(np.minimum(time, censored), 2) + 0.01, time <= censored)


def ordinary_solves() -> dict[str, Any]:
    """Inner solves of Newton's method on ordinary problems, by loss and norm."""
    losses = []
    for kind in ("Logistic", "Multinomial", "Poisson", "Cox"):
        by_norm = {}
        for p in ORDINARY_NORMS:
            solves = []
            for seed in range(ORDINARY_SEEDS):
                for reg in ORDINARY_REGS:
                    loss = SmoothLoss(*ordinary_problem(kind, seed), reg)
                    solution = SOLVERS["newton"]().solve(loss, lp_domain(p), tol=1e-6)
                    if not solution.certificate.converged:
                        raise RuntimeError(f"{kind} at p={p:g}: {solution.certificate}")
                    solves.append(solution.n_inner_solves)
            by_norm[f"{p:.3g}"] = {
                "least": min(solves),
                "most": max(solves),
                "mean": np.mean(solves),
            }
        losses.append({"loss": kind, "solves": by_norm})
    return {
        "n_rows": ORDINARY_ROWS,
        "regs": ORDINARY_REGS,
        "n_draws": ORDINARY_SEEDS,
        "losses": losses,
    }

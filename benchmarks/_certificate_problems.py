"""Random fits of hard problems, and how the oracle judges them.

What a fit computes from (kernel matrices, features, shares in regions) is taken from the package
and defines the problem that the certificate is about. All else, from centring on, is computed
again in extended precision.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._certificate_oracle import (
    Bounds,
    Machine,
    Square,
    Wide,
    centred,
    fisher_targets,
    machine_bounds,
    outside,
    regression_objective,
    regression_turn,
)
from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVR,
    ExactFeatures,
    KernelStack,
    MKOneClassSVM,
    MKRidge,
    Nystrom,
    RandomFeatures,
)
from manykernels.gating import KernelRegions
from manykernels.kernels import RBF, Linear, Polynomial
from manykernels.kernels.transforms import preparation

NORMS = (1.0, 1.0, 1.01, 1.1, 1.5, 2.0, 2.0, 4.0, 8.0, np.inf)
NORMALIZATIONS = ("multiplicative", "trace", "spherical", None)
SOLVERS = ("newton", "newton", "newton", "sip", "analytic")
SQUARE_SOLVERS = (*SOLVERS, "coordinate")
MACHINE_SOLVERS = (*SOLVERS, "interleaved", "interleaved")
# Solvers of the papers, by whether p is one and whether the loss is that of a machine.
PAPER_SOLVERS = {
    (True, False): ("reduced-gradient", "qcqp", "silp"),
    (True, True): ("reduced-gradient", "qcqp", "silp"),
    (False, False): ("dual",),
    (False, True): ("smo-mkl",),
}
MOST_ITERATIONS = 300
SHOWN = ("p", "reg", "C", "loss", "nu", "epsilon", "solver", "normalize", "tol")


@dataclass(frozen=True)
class Fit(ABC):
    """One random fit: what to fit, and how the oracle judges it."""

    model: Any
    X: Any
    y: Any
    mass: Any

    @property
    def kind(self) -> str:
        """What the fit is counted under."""
        return type(self.model).__name__

    @property
    def title(self) -> str:
        shown = {name: getattr(self.model, name) for name in SHOWN if hasattr(self.model, name)}
        parameters = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in shown.items()
        )
        return f"{self.kind}({parameters})"

    def run(self) -> tuple[Any, bool]:
        """The fitted model, and whether it warned that it did not converge."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self.model.fit(self.rows, self.y, sample_weight=self.mass)
        return model, any(issubclass(w.category, ConvergenceWarning) for w in caught)

    @property
    def rows(self) -> Any:
        """What the estimator gets."""
        return self.X

    @abstractmethod
    def judge(self, model: Any) -> Bounds:
        """What the oracle says of the fitted model."""

    @property
    def masses(self) -> Any:
        """Weights of the samples."""
        return Wide(1) * (np.ones(self.n_samples) if self.mass is None else self.mass)

    @property
    def n_samples(self) -> int:
        return len(self.X)

    def outside(self, model: Any) -> float:
        """How far the weights are outside of their domain."""
        weights = np.atleast_2d(all_weights(model))
        rows = weights.reshape(-1, weights.shape[-1])
        return max(outside(row, model.p) for row in rows)


def all_weights(model: Any) -> Any:
    """Kernel weights, after that of the identity where it is learnt."""
    if not learns_reg(model):
        return model.weights_
    reg = model.reg_ if isinstance(model, MKFDA) else 1.0 / model.C_
    return np.concatenate([[reg / unit_of(model)], model.weights_])


def learns_reg(model: Any) -> bool:
    """Whether λ or C is one of the weights."""
    return "joint" in (getattr(model, "reg", None), getattr(model, "C", None))


def unit_of(model: Any) -> float:
    """Scale of the identity kernel where λ or C is learnt."""
    return 1.0 / float(model.mass_) if model.normalize == "trace" else 1.0


# -- fits on kernel matrices -------------------------------------------------------------------


@dataclass(frozen=True)
class KernelFit(Fit):
    """A fit on kernel matrices, a list X of them or those of a table, perhaps in regions."""

    @property
    def rows(self) -> Any:
        """What the estimator gets."""
        return KernelStack.from_arrays(self.X) if isinstance(self.X, list) else self.X

    @property
    def n_samples(self) -> int:
        return len(self.X[0]) if isinstance(self.X, list) else len(self.X)

    def run(self) -> tuple[Any, bool]:
        model, warned = super().run()
        # The total weight of all samples, for the unit of a learnt λ.
        model.mass_ = self.masses.sum()
        return model, warned

    def judge(self, model: Any) -> Bounds:
        if isinstance(model, MKFDA | ConvexLocalizedFDA | MKRidge):
            return self._of_regression(model)
        return self._of_machines(model)

    def _kernels(self, model: Any) -> list[Any]:
        """Kernels of the loss in extended precision, not centred."""
        stack = self.rows if isinstance(self.X, list) else model.union_(self.X)
        mass = self.masses.astype(float)
        regional = hasattr(model, "regions_")
        centring = isinstance(model, MKFDA | MKRidge)
        chain = preparation(model.normalize, center=centring)
        prepared = chain.fit_transform(stack, sample_weight=mass)
        kernels = [np.array(stack.kernel(j), dtype=Wide) for j in range(stack.n_kernels)]
        for step in chain.steps:
            if hasattr(step, "col_factor_"):
                factors = step.col_factor_.astype(Wide)
                kernels = [k * f * f[:, None] for k, f in zip(kernels, factors, strict=True)]
            elif hasattr(step, "scale_"):
                kernels = [k * Wide(s) for k, s in zip(kernels, step.scale_, strict=True)]
        if not regional:
            return kernels
        # Those of the fit, which predictions compute again.
        roots = np.sqrt(model.regions_.shares(prepared).astype(Wide)).T
        return [np.outer(root, root) * kernel for root in roots for kernel in kernels]

    def _of_regression(self, model: Any) -> Bounds:
        mass = self.masses
        roots = np.sqrt(mass)[:, None]
        kernels = [centred(kernel, mass)[0] for kernel in self._kernels(model)]
        joint, n_blocks = learns_reg(model), n_regions(model)
        reg = Wide(1) if joint else Wide(model.reg)
        parts = [roots * kernel * roots.T / reg for kernel in kernels]
        if joint:
            parts.insert(0, unit_of(model) * np.eye(len(mass), dtype=Wide))
        if isinstance(model, MKRidge):
            return self._of_ridge(model, kernels, parts)
        targets = roots * fisher_targets(self.y, mass)
        weights = all_weights(model).reshape(-1)
        witness = witness_of(model)
        witness = None if witness is None else witness / roots
        square = Square(parts, targets)
        if joint:
            square = Square(parts, targets, ridge=0.0, constant=roots / np.sqrt(mass.sum()))
        bounds = square.bounds(weights, model.p, witness, n_blocks)
        own = weights[1:] if joint else weights
        combined = sum(w * kernel for w, kernel in zip(own, kernels, strict=True))
        predicted, coefficients = model.transform(self.rows), model.scalings_.astype(Wide)
        outputs, noise = combined @ coefficients, Wide(model.reg_)
        squares = coefficients.T @ outputs
        turn = regression_turn(targets, roots * outputs, squares, noise)
        coefficients, predicted = coefficients @ turn, predicted @ turn
        if noise == 0:
            # All targets are met, and the objective is ‖f‖².
            found = np.sum(coefficients * (2 * targets / roots - predicted))
            return replace(bounds, predicted=found)
        squares = turn.T @ squares @ turn
        found = regression_objective(targets, roots * predicted, squares, noise)
        # Where λ is learnt, the objective is that of the regression over λ.
        return replace(bounds, predicted=found / noise if joint else found)

    def _of_ridge(self, model: Any, kernels: list[Any], parts: list[Any]) -> Bounds:
        mass, y = self.masses, self.y.reshape(len(self.y), -1).astype(Wide)
        roots = np.sqrt(mass)[:, None]
        columns = y - mass @ y / mass.sum()
        units = np.sqrt(mass @ columns**2 / mass.sum())
        misfit = (model.predict(self.rows).reshape(y.shape) - y) / units
        coefficients = model.dual_coef_.reshape(len(y), -1).astype(Wide) / units
        witness = witness_of(model)
        table = np.atleast_2d(model.weights_)
        groups = np.arange(y.shape[1])[:, None] if len(table) > 1 else [np.arange(y.shape[1])]
        total = Bounds(Wide(0), Wide(0), Wide(0))
        for weights, group in zip(table, groups, strict=True):
            own = None if witness is None else witness[:, group] / roots
            square = Square(parts, roots * (columns / units)[:, group])
            bounds = square.bounds(weights, model.p, own)
            combined = sum(w * kernel for w, kernel in zip(weights, kernels, strict=True))
            a = coefficients[:, group]
            squares = a.T @ (combined @ a)
            found = regression_objective(0, roots * misfit[:, group], squares, model.reg)
            total = Bounds(
                total.upper + bounds.upper, total.lower + bounds.lower, total.predicted + found
            )
        return total

    def _of_machines(self, model: Any) -> Bounds:
        mass = self.masses
        kernels = self._kernels(model)
        coefficients = np.zeros((len(model.dual_coef_), len(mass)))
        coefficients[:, model.support_] = model.dual_coef_
        biases = model.intercept_.astype(Wide)
        weights = all_weights(model).reshape(-1)
        joint = learns_reg(model)
        outputs = (
            model.predict(self.rows)
            if hasattr(model, "epsilon")
            else model.decision_function(self.rows)
        )
        if not isinstance(model, MKOneClassSVM):
            # The same machine on centred kernels, where nothing cancels.
            pairs = [centred(kernel, mass) for kernel in kernels]
            kernels = [pair[0] for pair in pairs]
            own = weights[1:] if joint else weights
            offset = sum(w * pair[1] for w, pair in zip(own, pairs, strict=True))
            biases = biases + coefficients.astype(Wide) @ offset
        return machine_bounds(
            kernels,
            self._programs(model),
            coefficients,
            biases,
            weights,
            model.p,
            witness_of(model),
            outputs=outputs.reshape(len(mass), -1),
            n_blocks=n_regions(model),
            identity=unit_of(model) / mass if joint else None,
        )

    def _programs(self, model: Any) -> list[Machine]:
        mass = self.masses
        zeros = np.zeros(len(mass))
        if hasattr(model, "epsilon"):
            return [Machine(self.y, -model.C * mass, model.C * mass, width=model.epsilon)]
        if isinstance(model, MKOneClassSVM):
            return [Machine(zeros, zeros, mass, total=model.nu * mass.sum())]
        return class_machines(self.y, mass, 1.0 if learns_reg(model) else model.C, model.loss)


def class_machines(labels: Any, mass: Any, C: float, loss: str) -> list[Machine]:
    """The machines of a classifier; the `ridge` of a learnt C is set later."""
    columns = np.arange(1, 2) if labels.max() == 1 else np.arange(labels.max() + 1)
    machines = []
    for k in columns:
        signs = np.where(labels == k, 1.0, -1.0)
        if loss == "hinge":
            ends, ridge = C * mass * signs, Wide(0)
        else:
            ends, ridge = np.inf * signs, 1 / (C * mass)
        machines.append(Machine(signs, np.minimum(ends, 0.0), np.maximum(ends, 0.0), ridge=ridge))
    return machines


def n_regions(model: Any) -> int:
    return len(model.weights_) if hasattr(model, "regions_") else 1


def witness_of(model: Any) -> Any:
    """The dual point of the certificate, in extended precision."""
    point = getattr(model.certificate_, "dual_point", None)
    return None if point is None else point.astype(Wide)


# -- fits on features --------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureFit(Fit):
    """A fit on explicit features, exact, of landmarks or random."""

    @property
    def kind(self) -> str:
        return f"{type(self.model).__name__}, {type(self.model.approximation).__name__}"

    def judge(self, model: Any) -> Bounds:
        mass, predictor = self.masses, model._predictor
        features = predictor.features(self.X).astype(Wide)
        for _ in range(2):  # the second time what rounding has left of large offsets
            features = features - mass @ features / mass.sum()
        features = features * predictor.scaling.factors
        blocks = [features[:, block] for block in predictor.features.blocks]
        if isinstance(model, MKSVC):
            return self._of_machines(model, blocks)
        return self._of_regression(model, blocks)

    def _norms(self, model: Any, coefficients: Any) -> Any:
        """Products of the functions with these coefficients, under the learnt weights."""
        weights = model.weights_[model._predictor.features.kernel_of].astype(Wide)[:, None]
        # Kernels without weight have no coefficients.
        scaled = np.where(weights > 0, coefficients / np.where(weights > 0, weights, 1), 0)
        return coefficients.T @ scaled

    def _of_regression(self, model: Any, blocks: list[Any]) -> Bounds:
        mass, reg = self.masses, Wide(model.reg)
        roots = np.sqrt(mass)[:, None]
        factors = [roots * block / np.sqrt(reg) for block in blocks]
        parts = [own @ own.T for own in factors]
        if isinstance(model, MKRidge):
            y = self.y.astype(Wide)[:, None]
            columns = y - mass @ y / mass.sum()
            unit = np.sqrt(mass @ columns**2 / mass.sum())
            square = Square(parts, roots * columns / unit, factors=factors)
            coefficients = model.coef_.reshape(-1, 1).astype(Wide) / unit
            misfit = roots * (y - model.predict(self.X)[:, None]) / unit
            squares = self._norms(model, coefficients)
            found = regression_objective(misfit, 0, squares, reg)
        else:
            targets = roots * fisher_targets(self.y, mass)
            square = Square(parts, targets, factors=factors)
            predicted, coefficients = model.transform(self.X), model.scalings_.astype(Wide)
            outputs, squares = np.hstack(blocks) @ coefficients, self._norms(model, coefficients)
            turn = regression_turn(targets, roots * outputs, squares, reg)
            squares = turn.T @ squares @ turn
            found = regression_objective(targets, roots * (predicted @ turn), squares, reg)
        witness = square.targets - np.hstack(factors) @ witness_of(model) * np.sqrt(reg)
        return replace(square.bounds(model.weights_, model.p, witness), predicted=found)

    def _of_machines(self, model: Any, blocks: list[Any]) -> Bounds:
        mass, coefficients = self.masses, model.coef_.astype(Wide)
        machines = class_machines(self.y, mass, model.C, model.loss)
        biases = model.intercept_.astype(Wide)
        norms = np.diagonal(self._norms(model, coefficients))
        features = np.hstack(blocks)
        said = model.decision_function(self.X).reshape(len(mass), -1)
        upper = predicted = Wide(0)
        for k, machine in enumerate(machines):
            outputs = features @ coefficients[:, k] + biases[k]
            upper += machine.objective(norms[k], outputs, biases[k])
            predicted += machine.objective(norms[k], said[:, k], biases[k])
        kernels = [block @ block.T for block in blocks]
        lower = -np.inf
        proof = witness_of(model)
        for w, b in ((coefficients, biases), (proof[:-1], proof[-1])):
            points = np.array(
                [
                    balanced(machine, features @ w[:, k] + b[k])
                    for k, machine in enumerate(machines)
                ]
            )
            nothing = np.zeros(len(machines))
            weights = np.zeros(len(kernels))
            found = machine_bounds(kernels, machines, points, nothing, weights, model.p)
            lower = max(lower, found.lower)
        return Bounds(upper, lower, predicted)


def balanced(machine: Machine, outputs: Any) -> Any:
    """Dual variables of the squared hinge loss at some outputs, which sum to zero."""
    shortfalls = np.maximum(0, 1 - machine.linear * outputs) / machine.ridge
    first = machine.linear > 0
    sides = shortfalls[first].sum(), shortfalls[~first].sum()
    if not min(sides) > 0:
        return np.zeros(len(outputs), dtype=Wide)
    mean = np.sqrt(sides[0] * sides[1])
    return machine.linear * shortfalls * np.where(first, mean / sides[0], mean / sides[1])


# -- random data -------------------------------------------------------------------------------


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


def draw_rows(rng: np.random.Generator, most: int, n_columns: int) -> Any:
    """A table with offsets up to 1e6, and equal rows."""
    X = rng.standard_normal((int(rng.integers(10, most)), n_columns))
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(1, 6) * rng.choice([-1, 1], n_columns)
    if rng.random() < 0.2:
        third = len(X) // 3
        X[:third] = X[-third:]
    return X


def draw_mass(rng: np.random.Generator, n_rows: int) -> Any:
    """Sample weights, or none."""
    return rng.choice([0.5, 1.0, 2.0, 3.0], n_rows) if rng.random() < 0.3 else None


def target_of(X: Any) -> Any:
    first = X[:, 0].astype(float)
    return np.sin(np.arange(len(X))) + (first - first.mean()) / (first.std() + 1e-300)


def draw_values(X: Any, rng: np.random.Generator) -> tuple[Any, float]:
    """Numbers to be predicted, perhaps far from zero, and their scale."""
    scale = float(10.0 ** rng.choice([0, 0, -3, 3]))
    offset = float(10.0 ** rng.uniform(1, 9)) if rng.random() < 0.3 else 0.0
    return scale * (target_of(X) + offset), scale


def draw_labels(X: Any, rng: np.random.Generator) -> Any:
    """Classes that follow the first column, with errors."""
    m, n_classes = len(X), int(rng.choice([2, 2, 3, 4]))
    labels = np.argsort(np.argsort(target_of(X))) * n_classes // m
    labels = np.where(rng.random(m) < 0.1, rng.integers(0, n_classes, m), labels)
    labels[:n_classes] = np.arange(n_classes)
    return labels


def draw_options(rng: np.random.Generator, solvers: Any, *, machine: bool) -> dict[str, Any]:
    """Norm, tolerance, normalisation and solver, some of those of the papers among the latter."""
    p = float(rng.choice(NORMS))
    papers = PAPER_SOLVERS[p == 1.0, machine] if solvers is not SOLVERS else ()
    options = {
        "p": p,
        "tol": float(10.0 ** rng.integers(-8, -1)),
        "normalize": rng.choice(NORMALIZATIONS),
        "solver": str(rng.choice([*solvers, *papers])),
    }
    if options["solver"] not in ("newton", "dual"):
        options["max_iter"] = MOST_ITERATIONS
    return options


# -- sets of fits ------------------------------------------------------------------------------


def draw_on_kernels(seed: int) -> KernelFit:
    """A discriminant, machine or ridge regression on kernel matrices."""
    rng = np.random.default_rng(seed)
    X = draw_rows(rng, 36, int(rng.integers(1, 6)))
    stack = draw_kernels(X, rng)
    mass = draw_mass(rng, len(X))
    kind = rng.choice(["fda", "svc", "svr", "one", "ridge"], p=[0.25, 0.25, 0.2, 0.1, 0.2])
    machine = kind in ("svc", "svr", "one")
    solvers = MACHINE_SOLVERS if machine else SQUARE_SOLVERS
    options = {"kernels": "precomputed", **draw_options(rng, solvers, machine=machine)}
    penalty, reg = float(10.0 ** rng.uniform(-5, 6)), float(10.0 ** rng.uniform(-10, 5))
    if kind == "svr":
        y, scale = draw_values(X, rng)
        epsilon = scale * float(rng.choice([0.0, 0.01, 0.1, 1.0]))
        return KernelFit(MKSVR(C=penalty, epsilon=epsilon, **options), stack, y, mass)
    if kind == "one":
        nu = float(rng.uniform(0.05, 1.0))
        return KernelFit(MKOneClassSVM(nu=nu, **options), stack, None, mass)
    if kind == "ridge":
        y = draw_values(X, rng)[0]
        if rng.random() < 0.4:
            y = np.column_stack([y, rng.standard_normal(len(X))])
        way = str(rng.choice(["shared", "separate"]))
        return KernelFit(MKRidge(reg=reg, multi_target=way, **options), stack, y, mass)
    labels = draw_labels(X, rng)
    if kind == "fda":
        return KernelFit(MKFDA(reg=reg, **options), stack, labels, mass)
    loss = str(rng.choice(["hinge", "hinge", "squared_hinge"]))
    return KernelFit(MKSVC(C=penalty, loss=loss, **options), stack, labels, mass)


def draw_joint(seed: int) -> KernelFit:
    """A discriminant whose λ, or a machine whose C, is learnt along with the weights."""
    rng = np.random.default_rng(seed)
    X = draw_rows(rng, 36, int(rng.integers(1, 6)))
    stack = draw_kernels(X, rng)
    labels, mass = draw_labels(X, rng), draw_mass(rng, len(X))
    machine = bool(rng.random() < 0.5)
    options = draw_options(rng, SOLVERS, machine=machine)
    if options["p"] == 1.0 and rng.random() < 0.3:
        options["solver"] = str(rng.choice(["silp", "reduced-gradient", "qcqp"]))
    options["kernels"] = "precomputed"
    if machine:
        model: Any = MKSVC(C="joint", loss="squared_hinge", **options)
    else:
        model = MKFDA(reg="joint", **options)
    return KernelFit(model, stack, labels, mass)


def draw_regions(seed: int) -> KernelFit:
    """An estimator with weights for every region, on a table or on kernel matrices."""
    rng = np.random.default_rng(seed)
    X = draw_rows(rng, 36, int(rng.integers(1, 5)))
    mass = draw_mass(rng, len(X))
    kind = rng.choice(["svc", "svr", "svr", "fda"])
    options = draw_options(rng, SOLVERS, machine=kind != "fda")
    # The estimators have one solver, but the problem has several.
    solver = options.pop("solver")
    n_regions = int(rng.integers(1, 4))
    sharpness = float(rng.choice([0.0, 0.5, 2.0, 8.0, np.inf]))
    options["regions"] = KernelRegions(n_regions, sharpness=sharpness)
    source: Any = X
    if rng.random() < 0.3:
        options["kernels"] = "precomputed"
        source = draw_kernels(X, rng)
    else:
        d = X.shape[1]
        kernels = []
        for j in range(rng.integers(1, 4)):
            kernel = [RBF(), RBF(gamma="median"), Linear(), Polynomial(degree=2)][rng.integers(4)]
            columns = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False))
            kernels.append((f"k{j}", kernel.on(columns.tolist())))
        options["kernels"] = kernels
        if rng.random() < 0.3:
            source = X.astype(np.float32)
    penalty = float(10.0 ** rng.uniform(-5, 6))
    if kind == "svr":
        y, scale = draw_values(X, rng)
        epsilon = scale * float(rng.choice([0.0, 0.01, 0.1, 1.0]))
        model: Any = ConvexLocalizedSVR(C=penalty, epsilon=epsilon, **options)
    else:
        y = draw_labels(X, rng)
        if kind == "fda":
            model = ConvexLocalizedFDA(reg=float(10.0 ** rng.uniform(-10, 5)), **options)
        else:
            loss = str(rng.choice(["hinge", "hinge", "squared_hinge"]))
            model = ConvexLocalizedSVC(C=penalty, loss=loss, **options)
    model.solver = solver
    return KernelFit(model, source, y, mass)


def draw_on_features(seed: int) -> FeatureFit:
    """A discriminant, ridge regression or machine on explicit features, in blocks of rows."""
    rng = np.random.default_rng(seed)
    X = draw_rows(rng, 100, int(rng.integers(1, 7)))
    m, d = X.shape
    if rng.random() < 0.3 and d > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-12, -3) * rng.standard_normal(m)
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-4, 4, d)
    mass = draw_mass(rng, m)
    blocks = {"block_size": int(rng.choice([1, 7, 32, 4096]))}
    approximation, kinds = [
        (ExactFeatures(**blocks), [Linear(), Polynomial(degree=2)]),
        (Nystrom(int(rng.integers(1, m + 1)), **blocks), [Linear(), RBF(gamma="median")]),
        (RandomFeatures(int(rng.integers(5, 60)), **blocks), [RBF(gamma="median")]),
    ][rng.integers(3)]
    kernels = []
    for j in range(rng.integers(1, 7)):
        kernel = kinds[rng.integers(len(kinds))]
        if isinstance(kernel, RBF):
            kernel = RBF(gamma="median", width=float(10.0 ** rng.uniform(-1, 4)))
        columns = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False))
        kernels.append((f"k{j}", kernel.on(columns.tolist())))
    kind = rng.choice(["fda", "ridge", "svc"], p=[0.5, 0.25, 0.25])
    options = draw_options(rng, SOLVERS, machine=kind == "svc")
    options["approximation"] = approximation
    reg = float(10.0 ** rng.uniform(-10, 5))
    if kind == "ridge":
        y = draw_values(X, rng)[0]
        return FeatureFit(MKRidge(kernels, reg=reg, **options), X, y, mass)
    labels = draw_labels(X, rng)
    if kind == "fda":
        return FeatureFit(MKFDA(kernels, reg=reg, **options), X, labels, mass)
    options.update(solver="newton", tol=max(options["tol"], 1e-5), max_iter=None)
    C = float(10.0 ** rng.uniform(-3, 3))
    return FeatureFit(MKSVC(kernels, C=C, loss="squared_hinge", **options), X, labels, mass)


DRAWN: dict[str, Callable[[int], Fit]] = {
    "kernels": draw_on_kernels,
    "joint": draw_joint,
    "regions": draw_regions,
    "features": draw_on_features,
}

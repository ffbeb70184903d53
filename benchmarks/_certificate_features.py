"""Random fits on explicit features, and how the oracle judges them.

Rows with offsets up to 1e6, columns of scales 1e8 apart, near duplicates among rows and columns;
features that are exact, of landmarks or random. The features are taken as the model computes them,
centred again in extended precision: they define the problem that the certificate is about.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._certificate_oracle import Bounds, Wide, feature_bounds
from manykernels import MKFDA, ExactFeatures, Nystrom, RandomFeatures
from manykernels.kernels import RBF, Linear, Polynomial

NORMS = (1.0, 1.0, 1.01, 1.1, 1.5, 2.0, 2.0, 4.0, 8.0, np.inf)
SOLVERS = ("newton", "newton", "newton", "newton", "sip", "analytic")
MOST_ITERATIONS = 300


@dataclass(frozen=True)
class FeatureFit:
    """One random fit on features."""

    model: Any
    X: Any
    y: Any
    mass: Any

    @property
    def title(self) -> str:
        model = self.model
        return (
            f"{type(model.approximation).__name__}(p={model.p:g}, reg={model.reg:.3g}, "
            f"solver={model.solver}, normalize={model.normalize}, tol={model.tol:g})"
        )

    def run(self) -> tuple[Any, bool]:
        """The fitted model, and whether it warned that it did not converge."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self.model.fit(self.X, self.y, sample_weight=self.mass)
        return model, any(issubclass(w.category, ConvergenceWarning) for w in caught)

    def judge(self, model: Any) -> Bounds:
        """What the oracle says of the fitted model."""
        mass = Wide(1) * (np.ones(len(self.X)) if self.mass is None else self.mass)
        expansion = model._expansion
        features = expansion.features(self.X).astype(Wide)
        for _ in range(2):  # the second time what rounding has left of large offsets
            features = features - mass @ features / mass.sum()
        features = features * expansion.scaling.factors
        blocks = [features[:, block] for block in expansion.features.blocks]
        witness = model.certificate_.dual_point
        return feature_bounds(blocks, self.y, mass, model.reg, model.weights_, model.p, witness)


def _rows(rng: np.random.Generator) -> Any:
    X = rng.standard_normal((int(rng.integers(10, 120)), int(rng.integers(1, 7))))
    m, d = X.shape
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(1, 6) * rng.choice([-1, 1], d)
    if rng.random() < 0.2:
        X[: m // 3] = X[-(m // 3) :]
    if rng.random() < 0.3 and d > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-12, -3) * rng.standard_normal(m)
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-4, 4, d)
    return X


def draw(seed: int) -> FeatureFit:
    """The random fit of this number."""
    rng = np.random.default_rng(seed)
    X = _rows(rng)
    m, d = X.shape
    approximation, kinds = [
        (ExactFeatures(), [Linear(), Polynomial(degree=2)]),
        (Nystrom(int(rng.integers(1, m + 1))), [Linear(), RBF(gamma="median")]),
        (RandomFeatures(int(rng.integers(5, 60))), [RBF(gamma="median")]),
    ][rng.integers(3)]
    kernels = []
    for j in range(rng.integers(1, 7)):
        kernel = kinds[rng.integers(len(kinds))]
        if isinstance(kernel, RBF):
            kernel = RBF(gamma="median", width=float(10.0 ** rng.uniform(-1, 4)))
        columns = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False))
        kernels.append((f"k{j}", kernel.on(columns.tolist())))
    options: dict[str, Any] = {
        "p": float(rng.choice(NORMS)),
        "tol": float(10.0 ** rng.integers(-8, -1)),
        "normalize": rng.choice(["multiplicative", "trace", "spherical", None]),
        "reg": float(10.0 ** rng.uniform(-10, 5)),
        "solver": str(rng.choice(SOLVERS)),
    }
    if options["solver"] != "newton":
        options["max_iter"] = MOST_ITERATIONS
    n_classes = int(rng.choice([2, 2, 3, 4]))
    target = np.sin(np.arange(m)) + (X[:, 0] - X[:, 0].mean()) / (X[:, 0].std() + 1e-300)
    labels = np.argsort(np.argsort(target)) * n_classes // m
    labels = np.where(rng.random(m) < 0.1, rng.integers(0, n_classes, m), labels)
    labels[:n_classes] = np.arange(n_classes)
    mass = rng.choice([0.5, 1.0, 2.0, 3.0], m) if rng.random() < 0.3 else None
    return FeatureFit(MKFDA(kernels, approximation=approximation, **options), X, labels, mass)

"""Kernel weights of many targets: the best of some hundred weight vectors that all targets share.

With weights β of sum one, sample weights w, ``S = diag(√w)`` and the targets ``Ỹ = SY`` (weighted
mean zero), ridge regression of all targets for all λ takes one eigendecomposition

    S K_β S = V diag(s) Vᵀ,   Z = VᵀỸ,   H_λ = V diag(s/(s+λ)) Vᵀ + uuᵀ,   u = √w/‖√w‖

where uuᵀ is the intercept. Generalised cross-validation, ``‖(I−H)ỹ‖²/(1 − tr H/m)²``, needs Z
alone, because ``‖(I−H)ỹ‖² = ‖ỹ‖² − ‖z‖² + Σ_k (λ/(s_k+λ))² z_k²``. It screens the candidates for
every target. The few best of a target are compared by folds, again without refitting: the
residuals of the rows F by the model of all other rows, with the same weights β and λ, are

    e_F = (I − H_FF)⁻¹ ((I − H)ỹ)_F

Where rows are alike in groups, left-out rows say little, and folds do the screening, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh

from ..domains import Array
from ..losses.base import Indices, KernelOperator
from ..utils.numerics import ACCUMULATED, ROUNDING, TINY

# Random candidates, half of them with about equal weights, half with few large ones. With half as
# many R² on new rows is 0.006 less for 8 views, with 100 it is about the same (measured).
_RANDOM = 60
# Most candidates with a single kernel: those that fit the targets best.
_SINGLE = 64
# Rounds of candidates bred from the best ones, and candidates per round.
_ROUNDS, _BRED = 3, 20
# Candidates of each target that are compared by folds. With five, the scores of folds rise, and R²
# on new rows does not (measured).
_JUDGED = 3
# Entries of the arrays of a block of targets, 32 MiB each.
_BLOCK = 2**22
# Bytes of eigenvectors that are kept, so that candidates need not be decomposed twice.
_KEPT = 2**28


@dataclass(frozen=True)
class CandidateChoice:
    """Chosen weights and λ of every target, and the models there.

    Attributes
    ----------
    weights : ndarray of shape (n_targets, n_kernels)
    regs : ndarray of shape (n_targets,)
    coefficients : ndarray of shape (m, n_targets)
    scores : ndarray of shape (n_folds, n_targets)
        R² of every fold, by the candidate and λ that are best in the other folds.
    left_out : ndarray of shape (m, n_targets)
        Outputs for the rows of every fold, of the same models; NaN in rows of no fold.
    n_rounds, n_decompositions : int
    """

    weights: Array
    regs: Array
    coefficients: Array
    scores: Array
    left_out: Array
    n_rounds: int
    n_decompositions: int


@dataclass(frozen=True)
class CandidateProgress:
    """Number of candidates after a round, and the mean error of the best one of each target."""

    iteration: int
    n_candidates: int
    error: float

    def __str__(self) -> str:
        return (
            f"round {self.iteration}: {self.n_candidates} candidates, "
            f"estimated R² {1.0 - self.error:.4f}"
        )


@dataclass(frozen=True)
class Spectrum:
    """Positive eigenvalues and their eigenvectors of a weighted sum of kernels."""

    values: Array
    vectors: Array

    def rotate(self, targets: Array) -> Array:
        """Return Z."""
        rotated: Array = blas.dgemm(1.0, self.vectors, targets, trans_a=1)
        return rotated


@dataclass(frozen=True)
class Regression:
    """Ridge regressions of all targets, for any weights of the kernels.

    Parameters
    ----------
    kernels : KernelOperator
        Centred training kernels.
    targets : ndarray of shape (m, n_targets)
        Columns of (weighted) mean zero.
    regs : ndarray of shape (n_regs,)
        Values of λ, in descending order.
    folds : list of ndarray of int
    sample_weight : ndarray of shape (m,) or None
    by_folds : bool
        Screen candidates by folds instead of generalised cross-validation.
    """

    kernels: KernelOperator
    targets: Array
    regs: Array
    folds: list[Indices]
    sample_weight: Array | None
    by_folds: bool

    @cached_property
    def roots(self) -> Array:
        """√w, (m, 1)."""
        weights = self.sample_weight
        return np.ones((len(self.targets), 1)) if weights is None else np.sqrt(weights)[:, None]

    @cached_property
    def scaled(self) -> Array:
        """Ỹ, whose columns are contiguous."""
        return np.asfortranarray(self.targets * self.roots)

    def spectrum(self, weights: Array) -> Spectrum:
        """Decompose the weighted sum of the kernels."""
        matrix = self.kernels.combine(weights)
        if self.sample_weight is not None:
            matrix *= self.roots
            matrix *= self.roots.T
        values, vectors = eigh(matrix, driver="evd", overwrite_a=True, check_finite=False)
        kept = values > ACCUMULATED * max(values[-1], 0.0)
        return Spectrum(values[kept], np.asfortranarray(vectors[:, kept]))

    def blocks(self, n_targets: int) -> Iterator[slice]:
        """Divide targets such that the arrays of a block are small."""
        size = max(1, _BLOCK // len(self.targets))
        return (slice(start, start + size) for start in range(0, n_targets, size))

    def errors(self, spectrum: Spectrum) -> Array:
        """Return the estimated error of every target at the best λ, in units of its variance."""
        least = np.empty(self.targets.shape[1])
        for block in self.blocks(len(least)):
            targets = self.scaled[:, block]
            rotated = spectrum.rotate(targets)
            if self.by_folds:
                scores = [
                    self.fold_scores(spectrum, reg, targets, rotated)[0].mean(axis=0)
                    for reg in self.regs
                ]
                least[block] = 1.0 - np.max(scores, axis=0)
            else:
                least[block] = self._validation_errors(spectrum, targets, rotated)
        return least

    def _validation_errors(self, spectrum: Spectrum, targets: Array, rotated: Array) -> Array:
        """Return the errors of generalised cross-validation, the least over λ."""
        squares = rotated**2
        sizes = np.einsum("ij,ij->j", targets, targets)
        shrunk = self.regs[:, None] / (spectrum.values + self.regs[:, None])
        outside = np.maximum(sizes - squares.sum(axis=0), 0.0)
        residual = shrunk**2 @ squares + outside
        free = len(targets) - 1 - len(spectrum.values) + shrunk.sum(axis=1)
        errors = residual * (len(targets) / free[:, None]) ** 2
        least: Array = errors.min(axis=0) / np.where(sizes > 0.0, sizes, 1.0)
        return least

    def fold_scores(
        self, spectrum: Spectrum, reg: float, targets: Array, rotated: Array
    ) -> tuple[Array, list[Array]]:
        """Return R² of every fold (n_folds, n_targets), and the residuals of its rows."""
        shares = spectrum.values / (spectrum.values + reg)
        fitted = blas.dgemm(1.0, spectrum.vectors, shares[:, None] * rotated)
        residual = targets - fitted
        roots = self.roots
        constant = roots / np.linalg.norm(roots)
        scores = np.empty((len(self.folds), targets.shape[1]))
        residuals = []
        for k, fold in enumerate(self.folds):
            vectors = spectrum.vectors[fold]
            left = np.eye(len(fold)) - (vectors * shares) @ vectors.T
            left -= constant[fold] @ constant[fold].T
            errors = np.linalg.solve(left, residual[fold])
            truth, errors = targets[fold] / roots[fold], errors / roots[fold]
            weights = None if self.sample_weight is None else self.sample_weight[fold]
            scores[k] = explained_variance(truth, errors, weights)
            residuals.append(errors)
        return scores, residuals

    def coefficients(
        self, spectrum: Spectrum, regs: Array, targets: Array, rotated: Array
    ) -> Array:
        """Return ``S (SK_βS + λ)⁻¹ Ỹ`` for a λ of each target."""
        values = spectrum.values[:, None]
        inside = blas.dgemm(1.0, spectrum.vectors, rotated * (values / (values + regs)))
        coefficients: Array = (targets - inside) / regs * self.roots
        return coefficients


def explained_variance(truth: Array, errors: Array, weights: Array | None) -> Array:
    """Return R² of every column of errors.

    Where the truth is constant it is 1 without errors and else 0, as that of scikit-learn.
    """
    spread = truth - np.average(truth, axis=0, weights=weights)
    sizes = np.average(errors**2, axis=0, weights=weights)
    variances = np.average(spread**2, axis=0, weights=weights)
    constant = variances <= (ROUNDING * np.abs(truth).max(axis=0)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        scores: Array = 1.0 - sizes / variances
    return np.where(constant, np.where(sizes > 0.0, 0.0, 1.0), scores)


def first_candidates(regression: Regression, rng: np.random.Generator) -> list[Array]:
    """Return equal weights, single kernels, and random weights."""
    n = regression.kernels.shape[2]
    single = np.arange(n)
    if n > _SINGLE:
        scaled = regression.targets * regression.roots**2
        kernels: Any = regression.kernels
        fit = kernels.inner_products_with(scaled @ scaled.T)
        single = np.sort(np.argsort(-fit, kind="stable")[:_SINGLE])
    candidates = [np.full(n, 1.0 / n), *np.eye(n)[single]]
    if n > 1:
        for concentration in (1.0, 0.1):
            draws = rng.standard_gamma(concentration, (_RANDOM // 2, n)) + TINY
            candidates += list(draws / draws.sum(axis=1, keepdims=True))
    return candidates


def bred_candidates(candidates: Sequence[Array], errors: Array) -> list[Array]:
    """Return means of the two best candidates of a target, for the most frequent such pairs."""
    if len(candidates) < 2:
        return []
    best = np.sort(np.argpartition(errors, 1, axis=0)[:2], axis=0)
    pairs, counts = np.unique(best, axis=1, return_counts=True)
    bred: list[Array] = []
    known = np.array(candidates)
    for pair in pairs.T[np.argsort(-counts, kind="stable")]:
        mean = 0.5 * (candidates[pair[0]] + candidates[pair[1]])
        if np.abs(known - mean).max(axis=1).min() > ACCUMULATED:
            bred.append(mean)
            known = np.vstack([known, mean])
        if len(bred) == _BRED:
            break
    return bred


def choose_candidates(
    regression: Regression,
    *,
    each: Callable[[Callable[[Array], Any], Sequence[Array]], list[Any]],
    progress: Callable[[CandidateProgress], bool] = lambda record: False,
) -> CandidateChoice:
    """Return the best candidate and λ of every target.

    ``each(work, candidates)`` calls a function for all candidates, perhaps in threads.
    """
    n_samples, n_targets = regression.targets.shape
    kept: dict[bytes, Spectrum] = {}
    room = _KEPT // (8 * n_samples**2)
    n_decompositions = 0

    def screened(weights: Array) -> Array:
        spectrum = regression.spectrum(weights)
        if len(kept) < room:
            kept[weights.tobytes()] = spectrum
        return regression.errors(spectrum)

    candidates: list[Array] = []
    errors = np.empty((0, n_targets))
    new = first_candidates(regression, np.random.default_rng(0))
    n_rounds = 0
    while new and n_rounds <= _ROUNDS:
        errors = np.vstack([errors, *each(screened, new)])
        candidates += new
        n_decompositions += len(new)
        n_rounds += 1
        mean = float(errors.min(axis=0).mean())
        if progress(CandidateProgress(n_rounds, len(candidates), mean)):
            break
        new = bred_candidates(candidates, errors)
    n_judged = min(_JUDGED, len(candidates))
    judged = np.argsort(errors, axis=0, kind="stable")[:n_judged]
    best = _Best.of(regression)
    for k in np.unique(judged).tolist():
        weights = candidates[k]
        spectrum = kept.pop(weights.tobytes(), None)
        if spectrum is None:
            spectrum = regression.spectrum(weights)
            n_decompositions += 1
        those = np.flatnonzero((judged == k).any(axis=0))
        for block in regression.blocks(len(those)):
            best.compare(weights, spectrum, those[block])
    return CandidateChoice(
        best.weights,
        best.regs,
        best.coefficients,
        best.scores,
        best.left_out,
        n_rounds,
        n_decompositions,
    )


@dataclass
class _Best:
    """The best candidate and λ of every target so far, and the best without each of the folds."""

    regression: Regression
    weights: Array
    regs: Array
    coefficients: Array
    scores: Array
    left_out: Array
    #: Sum of the scores of all folds, and of the other folds at the best point without each.
    total: Array
    others: Array

    @classmethod
    def of(cls, regression: Regression) -> _Best:
        (n_samples, n_targets), n_folds = regression.targets.shape, len(regression.folds)
        return cls(
            regression,
            weights=np.zeros((n_targets, regression.kernels.shape[2])),
            regs=np.full(n_targets, np.nan),
            coefficients=np.empty((n_samples, n_targets)),
            scores=np.full((n_folds, n_targets), np.nan),
            left_out=np.full((n_samples, n_targets), np.nan),
            total=np.full(n_targets, -np.inf),
            others=np.full((n_folds, n_targets), -np.inf),
        )

    def compare(self, weights: Array, spectrum: Spectrum, block: Indices) -> None:
        """Compare a candidate with the best one of some targets."""
        regression = self.regression
        targets = regression.scaled[:, block]
        rotated = spectrum.rotate(targets)
        changed = np.zeros(len(block), dtype=bool)
        for reg in regression.regs:
            scores, residuals = regression.fold_scores(spectrum, reg, targets, rotated)
            total = scores.sum(axis=0)
            for k, (fold, errors) in enumerate(zip(regression.folds, residuals, strict=True)):
                others = total - scores[k]
                better = others > self.others[k, block]
                chosen = block[better]
                self.others[k, chosen] = others[better]
                self.scores[k, chosen] = scores[k, better]
                values = regression.targets[np.ix_(fold, chosen)] - errors[:, better]
                self.left_out[np.ix_(fold, chosen)] = values
            better = total > self.total[block]
            self.total[block[better]] = total[better]
            self.regs[block[better]] = reg
            changed |= better
        chosen = block[changed]
        if len(chosen):
            self.weights[chosen] = weights
            self.coefficients[:, chosen] = regression.coefficients(
                spectrum, self.regs[chosen], targets[:, changed], rotated[:, changed]
            )

"""From class labels to regression targets, and from regression outputs back to classes.

Regression outputs become class scores by one of two rules. The *indicator* rule takes the
outputs as estimates of class indicators. It learns nothing from the outputs, but where the
classes lie along a line, it never chooses those in the middle (they are masked). The
*discriminant* learns class means and a covariance of the outputs, which are poor estimates where
classes are many and samples few. Two numbers turn the scores of either rule into probabilities
(:class:`Calibration`). The discriminant is used where its log loss is smaller by more than a
standard error. Of two classes none can be masked, and the indicator rule is used.

Both are judged by outputs at samples that the regression, its kernel weights and the rule have
not seen (:mod:`manykernels.losses.left_out`). A rule that is learnt from left-out outputs and
scored on the same outputs has seen their labels: with 27 classes and 347 samples its accuracy
seemed to be 99 %, and was 14 % on new samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import ArrayLike
from scipy.special import log_softmax
from sklearn.utils.validation import check_consistent_length

from .kernels import KernelStack
from .kernels.matching import matched_targets
from .kernels.stack import check_stack
from .losses.left_out import FoldOutputs, LeftOut
from .utils.folds import effective_size, standard_error, stratified_folds
from .utils.numerics import ACCUMULATED, EPS, ROUNDING
from .utils.sklearn import check_classes, check_y

# -- Kernels of samples together with their targets, weights and groups ---------------------------


@dataclass(frozen=True)
class Samples:
    """Kernels between samples and the training samples, and targets and weights of the samples.

    Attributes
    ----------
    stack : KernelStack
        Square for training samples; (n, m) between n test samples and m training samples. None
        where no kernels are needed.
    targets : ndarray of shape (n,) or (n, n_targets)
        Values to be predicted, or positions in `classes`. Survival targets are a structured array
        with the fields event and time, and perhaps entry and stratum.
    classes : ndarray of shape (c,) or None
        Sorted class labels; None for values. Several labels of each sample are positions in
        ``[0, 1]``.
    weights : ndarray of shape (n,) or (n, n_labels), or None
        Sample weights: `counts` times the weight of the class of each sample.
    counts : ndarray of shape (n,) or None
        Sample weights as passed by the user; None for ones.
    groups : ndarray of shape (n,) or None
        Numbers of the groups of samples that are left out together; None if every sample is a
        group.
    """

    stack: Any
    targets: np.ndarray
    classes: Any = None
    weights: np.ndarray | None = None
    counts: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def labels(self) -> np.ndarray:
        """Positions of the samples' classes in `classes`, (n,) or (n, n_labels)."""
        return self.targets

    @property
    def n_labels(self) -> int | None:
        """Number of labels of each sample; None if it has a class or a value instead."""
        several = self.classes is not None and self.targets.ndim == 2
        return self.targets.shape[1] if several else None

    def label(self, k: int) -> Samples:
        """Return the samples with one of their labels as class."""
        weights = self.weights
        if weights is not None and weights.ndim == 2:
            weights = weights[:, k]
        return replace(self, targets=self.targets[:, k], weights=weights)

    @property
    def common_weights(self) -> np.ndarray | None:
        """Sample weights, or `counts` if every label has weights of its own."""
        weights = self.weights
        return self.counts if weights is not None and weights.ndim == 2 else weights

    @property
    def truth(self) -> np.ndarray:
        """Targets as passed by the user: class labels, values, or events and times."""
        if self.targets.dtype.names:
            return repack_fields(self.targets[["event", "time"]])
        truth: np.ndarray = self.targets if self.classes is None else self.classes[self.targets]
        return truth

    @property
    def strata(self) -> np.ndarray | None:
        """Strata of survival targets, within which samples are compared; None without strata."""
        return self._field("stratum")

    @property
    def entry(self) -> np.ndarray | None:
        """Times at which samples of survival targets came under observation; None without."""
        return self._field("entry")

    def _field(self, name: str) -> np.ndarray | None:
        names = self.targets.dtype.names or ()
        return self.targets[name] if name in names else None

    @property
    def masses(self) -> np.ndarray:
        """Total weight of each class, (c,)."""
        masses = np.bincount(self.targets, weights=self.weights, minlength=len(self.classes))
        return masses.astype(float)

    @property
    def frequencies(self) -> np.ndarray:
        """Class frequencies: the masses divided by their sum, (c,)."""
        return self.masses / self.masses.sum()

    @property
    def n_samples(self) -> float:
        """Effective number of independent samples, invariant to the scale of the weights."""
        return effective_size(len(self), self.groups, self.counts)

    def folds(self, n_folds: int) -> list[np.ndarray]:
        """Divide the samples into folds of whole groups, stratified by class or event."""
        groups = np.arange(len(self)) if self.groups is None else self.groups
        strata = np.zeros(len(self), dtype=np.intp) if self.classes is None else self.targets
        if self.targets.dtype.names:
            strata = self.targets["event"].astype(np.intp)
        return stratified_folds(strata, groups, n_folds, self.counts)

    def split(self, train: np.ndarray, test: np.ndarray) -> tuple[Samples, Samples]:
        """Return the samples `train`, and `test` with their kernels against `train`."""
        stack = self.stack
        return (
            self.take(train, stack[np.ix_(train, train)]),
            self.take(test, stack[np.ix_(test, train)]),
        )

    def select(self, kernels: np.ndarray) -> Samples:
        """Return the samples with some of the kernels."""
        return replace(self, stack=self.stack.select(kernels))

    def take(self, rows: np.ndarray, stack: Any = None) -> Samples:
        """Return some of the samples; without another stack, the stack stays that of all."""
        weights, counts, groups = (
            None if values is None else values[rows]
            for values in (self.weights, self.counts, self.groups)
        )
        kernels = self.stack if stack is None else stack
        return Samples(kernels, self.targets[rows], self.classes, weights, counts, groups)


# -- Fisher's discriminant as a regression problem ------------------------------------------------


def fisher_targets(labels: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Return targets H whose least-squares fit is Fisher's discriminant, (m, 1) or (m, c).

    With ``m_k`` the number (or total weight) of samples in class k and m their sum: for two
    classes one column, ``1/m_1`` and ``−1/m_0`` (Yan 2012, section 2.1); for more, column k is
    ``√(m/m_k) − √(m_k/m)`` on class k and ``−√(m_k/m)`` elsewhere (Yan 2012 (18)).
    """
    if len(masses) == 2:
        return np.where(labels == 1, 1.0 / masses[1], -1.0 / masses[0])[:, None]
    total = masses.sum()
    targets = np.tile(-np.sqrt(masses / total), (len(labels), 1))
    targets[np.arange(len(labels)), labels] += np.sqrt(total / masses)[labels]
    return targets


def labelled_stack(
    caller: str, stack: KernelStack, y: Any, sample_weight: ArrayLike | None = None
) -> Samples:
    """Return the checked arguments of the public function `caller`."""
    if not isinstance(stack, KernelStack) or not stack.gram:
        raise ValueError(
            f"{caller} takes a KernelStack of the training samples, got "
            f"{type(stack).__name__}: KernelStack.from_arrays(matrices), or a fitted union of "
            "kernels called on X."
        )
    y, sample_weight = matched_targets(stack.row_samples, y=y, sample_weight=sample_weight)
    y = check_y(y, multi_output=False)
    check_classes(y)
    check_consistent_length(stack, y)
    stack = check_stack(stack, centered=True)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{caller} needs samples of at least 2 classes, got {classes.tolist()}.")
    if sample_weight is None:
        return Samples(stack, labels, classes)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != y.shape or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("sample_weight must be one positive number per sample.")
    return Samples(stack, labels, classes, weights, weights)


# -- Class scores of regression outputs: the indicator rule and the linear discriminant -----------


# Least distance of the means of two classes, in standard deviations within classes. Closer means
# carry no information: at this distance probabilities almost equal the priors.
_LEAST_SEPARATION = 1e-3
# Class means that agree up to this part of the largest one do not decide the sign of an axis:
# errors of the regression, about 1e-10, must not flip it.
_SAME_MEAN = 1e-6


@dataclass(frozen=True)
class LinearRule:
    """Class scores that are affine in regression outputs: ``outputs @ directions + constants``.

    `name` is "indicator" or "discriminant"; `directions` are (k, c), `constants` (c,).
    """

    name: str
    directions: np.ndarray
    constants: np.ndarray

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the scores of outputs (n, k), one column per class, (n, c)."""
        return outputs @ self.directions + self.constants


def rule_offsets(name: str, frequencies: np.ndarray) -> np.ndarray:
    """Return the offsets that a calibration multiplies by its exponent and adds to scores.

    Logarithms of class frequencies; zero for the discriminant, whose scores contain them already.
    """
    return np.log(frequencies) if name == "indicator" else np.zeros(len(frequencies))


def indicator_rule(frequencies: np.ndarray, rotation: np.ndarray) -> LinearRule:
    """Return the rule that takes outputs f as estimates of class indicators.

    With H of :func:`fisher_targets` and π_k = m_k/m, ``z_k = f_k √π_k`` estimates the
    indicator of class k less its mean; for two classes ``z_1 ∝ π_0π_1 f = −z_0``, whose scale is
    left to the calibration. `rotation` (c, k) takes columns of H to the columns of the outputs.
    """
    if len(frequencies) == 2:
        directions = rotation.T * frequencies.prod() * np.array([-1.0, 1.0])
    else:
        directions = rotation.T * np.sqrt(frequencies)
    return LinearRule("indicator", directions, np.zeros(len(frequencies)))


@dataclass(frozen=True)
class Discriminant:
    """Linear discriminant analysis in the space of regression outputs.

    `means` (c, k) are those of the outputs of each class, `covariance` (k, k) that within classes,
    shrunk towards a multiple of the identity, `masses` (c,) the total weight of each class.
    """

    means: np.ndarray
    covariance: np.ndarray
    masses: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """π, the class frequencies of training."""
        return self.masses / self.masses.sum()

    @property
    def rule(self) -> LinearRule:
        """Scores ``f·Σ⁻¹μ_k − ½ μ_k·Σ⁻¹μ_k + log π_k`` of outputs f."""
        directions = np.linalg.solve(self.covariance, self.means.T)
        lengths = np.einsum("kd,dk->k", self.means, directions)
        return LinearRule("discriminant", directions, np.log(self.frequencies) - 0.5 * lengths)

    @cached_property
    def turn(self) -> np.ndarray:
        """From outputs to axes in which Σ is the identity, those of best separation first."""
        values, vectors = np.linalg.eigh(self.covariance)
        whiten = (vectors / np.sqrt(values)) @ vectors.T
        center = self.frequencies @ self.means
        between = np.sqrt(self.masses)[:, None] * ((self.means - center) @ whiten)
        _, _, directions = np.linalg.svd(between, full_matrices=False)
        turn = whiten @ directions.T
        return turn * _signs(self.means @ turn)

    @classmethod
    def learn(cls, outputs: np.ndarray, samples: Samples) -> Discriminant:
        """Learn class means and the pooled covariance of left-out `outputs` (m, k) of `samples`.

        Outputs of samples that the regression has seen are drawn to their targets (and equal them
        as λ → 0), which would make the classes look far better separated than they are.
        """
        labels, n_classes = samples.labels, len(samples.classes)
        weight = np.ones(len(labels)) if samples.weights is None else samples.weights
        members = np.zeros((len(labels), n_classes))
        members[np.arange(len(labels)), labels] = weight
        masses = samples.masses
        means = members.T @ outputs / masses[:, None]
        if n_classes == 2:
            spread = np.average((outputs - means[labels]) ** 2, weights=weight, axis=0)
            means = _oriented(means, np.sqrt(spread[0]))
        within = (outputs - means[labels]) * np.sqrt(weight)[:, None]
        covariance = within.T @ within / masses.sum()
        return cls.of_moments(means, covariance, masses, samples.n_samples)

    @classmethod
    def of_moments(
        cls, means: np.ndarray, covariance: np.ndarray, masses: np.ndarray, n_samples: float
    ) -> Discriminant:
        """Return the discriminant of class means and a covariance, which is shrunk here."""
        return cls(means, _shrunk(covariance, n_samples), masses)


def _oriented(means: np.ndarray, spread: float) -> np.ndarray:
    """Return the means of two classes (2, 1) such that the second one is larger.

    The regression has larger targets for the second class. Where the outputs of left-out samples
    are not in this order, the means are set apart by the least distance: scores then rank samples
    as the regression does, and the probabilities are almost the priors.
    """
    least = _LEAST_SEPARATION * spread
    if means[1, 0] - means[0, 0] >= least:
        return means
    return means.mean() + 0.5 * least * np.array([[-1.0], [1.0]])


def _shrunk(covariance: np.ndarray, n_samples: float) -> np.ndarray:
    """Shrink a covariance towards a multiple of the identity, the more the fewer samples."""
    size = len(covariance)
    scale = np.trace(covariance) / size
    if scale == 0.0:
        return np.eye(size)
    shrinkage = size / (size + n_samples)
    return (1.0 - shrinkage) * covariance + shrinkage * scale * np.eye(size)


def _signs(means: np.ndarray) -> np.ndarray:
    """Return ±1 for every axis, so that the last class has a larger mean than the first.

    Singular vectors have arbitrary signs; this makes them the same on every computer. Where the
    two means agree, the mean of largest size gets a positive sign.
    """
    apart = means[-1] - means[0]
    largest = means[np.abs(means).argmax(axis=0), np.arange(means.shape[1])]
    distinct = np.abs(apart) > _SAME_MEAN * np.abs(largest)
    return np.where(np.where(distinct, apart, largest) < 0.0, -1.0, 1.0)


# -- From class scores to calibrated probabilities, by two numbers: a slope and an exponent -------


# Most steps of Newton's method. It takes about ten, unless rounding errors keep it from ending.
_MAX_STEPS = 100
# Predicted decrease of the log loss below which a Newton step is the last one: the log loss is of
# order one, so that another step would change it by less than its rounding error.
_LAST_DECREASE = 10 * ROUNDING
# Armijo's condition: part of the predicted decrease that a step has to attain (the usual value).
_ARMIJO = 1e-4
# Least slope, in units of the inverse spread of the scores. Where scores of left-out samples carry
# no information, probabilities then equal the priors to three digits and still rank samples.
_LEAST_SLOPE = 1e-3
# How strongly the exponent is drawn to one for decision values of machines. They have an offset of
# their own, for which the exponent stands in where classes are not equally frequent. Measured on
# eight data sets: with 1 the log loss is larger than that of Platt's method by up to 10 %.
_DRAW_OF_DECISIONS = 0.01


@dataclass(frozen=True)
class Calibration:
    """``log P(k|x) = τ s_k(x) + b o_k``, up to a constant, for scores s and offsets o.

    τ is the slope, b the exponent of the class frequencies: offsets are logarithms of these, or
    zero where the scores contain them already.
    """

    slope: float = 1.0
    exponent: float = 1.0


@dataclass(frozen=True)
class CalibratedScores:
    """Scores (n, c) of samples by a rule that has not seen them, calibrated on the same samples.

    (A calibration has only two parameters: it may see the samples that it is judged by.)
    `offsets` are (c,) or (n, c), `labels` (n,) the positions of the true classes. `n_samples` is
    m, by default the number of rows. `draw` is how strongly the exponent is drawn to one.
    """

    scores: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None = None
    n_samples: float | None = None
    draw: float = 1.0

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of least log loss.

        Where the scores make no mistake the log loss has no minimiser. So a share ``1/(m + 2)`` of
        every sample is divided equally among all classes (the rule of succession, as in Platt
        1999). Where b has no effect, as for classes of equal frequency, it is one.
        """
        scores, labels = self.scores, self.labels
        size = float(len(scores) if self.n_samples is None else self.n_samples)
        share = np.ones(len(scores)) if self.weights is None else self.weights
        share = share / share.sum()
        spread = np.sqrt(share @ np.mean((scores - scores.mean(axis=1)[:, None]) ** 2, axis=1))
        if spread <= ROUNDING:
            return Calibration()
        features = np.stack([scores / spread, np.broadcast_to(self.offsets, scores.shape)])
        smooth = 1.0 / (size + 2.0)
        truth = np.full(scores.shape, smooth / scores.shape[1])
        truth[np.arange(len(labels)), labels] += 1.0 - smooth
        problem = _LogLoss(features, truth, share, ridge=self.draw / size)
        best = problem.minimizer(np.array([1.0, 1.0]), free=np.array([True, True]))
        if best[0] < _LEAST_SLOPE:
            start = np.array([_LEAST_SLOPE, best[1]])
            best = problem.minimizer(start, free=np.array([False, True]))
        return Calibration(float(best[0] / spread), float(best[1]))

    @property
    def log_probabilities(self) -> np.ndarray:
        """Logarithms of the class probabilities, (n, c)."""
        slope, exponent = self.calibration.slope, self.calibration.exponent
        return log_softmax(slope * self.scores + exponent * self.offsets, axis=1)


def class_scores(decisions: np.ndarray) -> np.ndarray:
    """Return a column per class from decision values (n, c); (n,) or (n, 1) for two classes."""
    columns = decisions.reshape(len(decisions), -1)
    return columns if columns.shape[1] > 1 else np.hstack([np.zeros_like(columns), columns])


def calibrated_decisions(
    decisions: np.ndarray,
    frequencies: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None = None,
    n_samples: float | None = None,
) -> CalibratedScores:
    """Calibrate decision values of machines; offsets are logarithms of class frequencies."""
    offsets = np.log(frequencies)
    return CalibratedScores(
        class_scores(decisions), offsets, labels, weights, n_samples, _DRAW_OF_DECISIONS
    )


def log_losses(log_probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return ``−log P`` of the true class of every sample, (n,)."""
    return -log_probabilities[np.arange(len(labels)), labels]


def paired_gain(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray | None, groups: np.ndarray | None
) -> tuple[float, float]:
    """Return the mean of `second` minus that of `first`, and its standard error.

    Both are losses of the same samples, so the standard error is that of their difference. Samples
    of different `groups` are independent; None means all of them.
    """
    difference = second - first
    mean = float(np.average(difference, weights=weights))
    return mean, standard_error(difference, weights, groups)


def clearly_smaller(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray | None, groups: np.ndarray | None
) -> bool:
    """Return True if the mean of `first` is smaller by more than a standard error.

    Differences below the least slope do not count: scores without information may differ as much.
    """
    gain, error = paired_gain(first, second, weights, groups)
    return gain > max(error, _LEAST_SLOPE)


@dataclass(frozen=True)
class _LogLoss:
    """Convex function of (τ, b): log loss, and a ridge that draws b towards one.

    `features` (2, n, c) are scores and offsets, `truth` (n, c) smoothed class indicators, `share`
    (n,) sample weights of sum one. The ridge determines b where the log loss does not.
    """

    features: np.ndarray
    truth: np.ndarray
    share: np.ndarray
    ridge: float

    def value(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value at a point, and the class probabilities, (n, c)."""
        scores = point[0] * self.features[0] + point[1] * self.features[1]
        scores -= scores.max(axis=1, keepdims=True)
        probabilities = np.exp(scores)
        sums = probabilities.sum(axis=1, keepdims=True)
        probabilities /= sums
        scores -= np.log(sums)
        misfit = -float(self.share @ np.einsum("nk,nk->n", self.truth, scores))
        return misfit + 0.5 * self.ridge * float(point[1] - 1.0) ** 2, probabilities

    def gradient_and_hessian(
        self, point: np.ndarray, probabilities: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        flat, share = self.features.reshape(2, -1), self.share[:, None]
        gradient = flat @ ((probabilities - self.truth) * share).ravel()
        means = np.sum(self.features * probabilities, axis=2)
        second = (flat * (probabilities * share).ravel()) @ flat.T
        second -= (means * self.share) @ means.T
        gradient[1] += self.ridge * (point[1] - 1.0)
        second[1, 1] += self.ridge
        return gradient, second

    def minimizer(self, start: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Minimise over the `free` coordinates by Newton's method with backtracking."""
        point, (value, probabilities) = start, self.value(start)
        for _ in range(_MAX_STEPS):
            gradient, second = self.gradient_and_hessian(point, probabilities)
            step = np.zeros(2)
            inner = second[np.ix_(free, free)]
            # Where scores have no effect there is no curvature; this keeps the matrix invertible.
            inner[np.diag_indices(len(inner))] += ACCUMULATED * (1.0 + np.trace(inner))
            step[free] = -np.linalg.solve(inner, gradient[free])
            decrease = -float(gradient @ step)
            if decrease <= _LAST_DECREASE:
                return point + step
            factor = 1.0
            while True:
                new, probabilities = self.value(point + factor * step)
                if new <= value - _ARMIJO * factor * decrease:
                    break
                factor *= 0.5
                if factor < EPS:
                    return point
            point, value = point + factor * step, new
        return point


# Folds by which a fit judges its own rules, all from one factorisation. There are many of them, so
# that models without a fold are close to the final one: where there are about as many samples as
# the kernels have rank, a model of four fifths of them differs much from that of all.
N_FOLDS = 50


@dataclass(frozen=True)
class Regression:
    """Functions of a sample whose values, the outputs, tell the classes apart.

    Attributes
    ----------
    coefficients : ndarray of shape (m, k)
        Of the kernels with the m training samples, in each of k functions.
    left_out : LeftOut
        Outputs of all samples by functions that have not seen them.
    rotation : ndarray of shape (c, k) or None
        From columns of the Fisher targets to those of the outputs. None where the outputs are not
        those of a regression on such targets: the discriminant is the only rule then.
    """

    coefficients: np.ndarray
    left_out: LeftOut
    rotation: np.ndarray | None


@dataclass(frozen=True)
class Decision:
    """A rule and its calibration.

    `discriminant` is that of all samples, whether or not it is the rule. `priors` (c,) are the
    class probabilities that decide. `left_out` (m, c) are log-probabilities of the samples by the
    scores that the rule was calibrated on, NaN where a sample is in no fold.
    """

    rule: LinearRule
    calibration: Calibration
    discriminant: Discriminant
    priors: np.ndarray
    left_out: np.ndarray

    def coefficients(self, regression: np.ndarray) -> np.ndarray:
        """Return coefficients of log-probabilities from those of outputs, (m, c) or (m, 1)."""
        return _log_odds_of_two(self.calibration.slope * (regression @ self.rule.directions))

    @property
    def intercept(self) -> np.ndarray:
        """Constants of the log-probabilities, (c,) or (1,)."""
        calibration, frequencies = self.calibration, self.discriminant.frequencies
        offsets = calibration.exponent * rule_offsets(self.rule.name, frequencies)
        constants = calibration.slope * self.rule.constants + offsets
        return _log_odds_of_two((constants + log_ratio(self.priors, frequencies))[None, :])[0]

    def attributes(self, regression: np.ndarray) -> dict[str, Any]:
        """Return fitted attributes of an estimator, given the coefficients of the outputs."""
        turn = self.discriminant.turn
        return {
            "priors_": self.priors,
            "rule_": self.rule.name,
            "scalings_": regression @ turn,
            "means_": self.discriminant.means @ turn,
            "intercept_": self.intercept,
        }

    @classmethod
    def learn(cls, regression: Regression, samples: Samples, priors: np.ndarray) -> Decision:
        """Choose the better of the two rules, and calibrate it."""
        left_out, rotation = regression.left_out, regression.rotation
        discriminant = Discriminant.learn(left_out.singly, samples)
        frequencies, n_samples = discriminant.frequencies, samples.n_samples

        def calibrated(rule: str, scores: np.ndarray, of: Samples) -> CalibratedScores:
            offsets = rule_offsets(rule, frequencies)
            return CalibratedScores(scores, offsets, of.labels, of.weights, n_samples)

        rule, judged, every = discriminant.rule, samples, np.arange(len(samples.labels))
        rows, scores = every, rule.scores(left_out.singly)
        if left_out.folds:
            # Better: scores by discriminants that have not seen the labels they are judged by.
            rows = np.concatenate([part.fold for part in left_out.folds])
            judged = samples.take(rows)
            scores = scores_of_folds("discriminant", left_out.folds, samples, rotation)
        of_discriminant = calibrated("discriminant", scores, judged)

        def decided(rule: LinearRule, scores: CalibratedScores, rows: np.ndarray) -> Decision:
            left_out = np.full((len(samples.labels), len(priors)), np.nan)
            shift = log_ratio(priors, frequencies)
            left_out[rows] = log_softmax(scores.log_probabilities + shift, axis=1)
            return cls(rule, scores.calibration, discriminant, priors, left_out)

        if rotation is None:
            return decided(rule, of_discriminant, rows)
        indicator = indicator_rule(frequencies, rotation)
        if left_out.folds:
            outputs = np.concatenate([part.outputs for part in left_out.folds])
            of_indicator = calibrated("indicator", indicator.scores(outputs), judged)
            losses = [
                log_losses(calibrated_scores.log_probabilities, judged.labels)
                for calibrated_scores in (of_discriminant, of_indicator)
            ]
            if clearly_smaller(losses[0], losses[1], judged.weights, judged.groups):
                return decided(rule, of_discriminant, rows)
        # The indicator rule has seen no labels: it is calibrated on samples left out singly, whose
        # models are closer to the final one.
        of_indicator = calibrated("indicator", indicator.scores(left_out.singly), samples)
        return decided(indicator, of_indicator, every)


def scores_of_folds(
    rule: str, folds: list[FoldOutputs], samples: Samples, rotation: np.ndarray | None
) -> np.ndarray:
    """Return scores of every fold by a rule that is learnt from the other samples.

    `rotation` is that of :class:`Regression`; the indicator rule needs it.
    """
    scores = []
    for part in folds:
        # With the class frequencies of all samples: those of the others would tell the labels of
        # the fold, since the more samples of a class are in one, the fewer are in the other.
        if rule == "indicator":
            assert rotation is not None
            learnt = indicator_rule(samples.frequencies, rotation)
        else:
            discriminant = Discriminant.learn(part.outputs_of_others, samples.take(part.others))
            learnt = replace(discriminant, masses=samples.masses).rule
        scores.append(learnt.scores(part.outputs))
    return np.concatenate(scores)


def checked_priors(given: ArrayLike | None, samples: Samples) -> np.ndarray:
    """Return class probabilities: those `given`, or else the weighted frequencies."""
    if given is None:
        return samples.frequencies
    priors = np.asarray(given, dtype=np.float64)
    n_classes = len(samples.classes)
    if priors.shape != (n_classes,) or priors.min() < 0 or not np.isclose(priors.sum(), 1):
        raise ValueError(
            f"priors must be {n_classes} probabilities that sum to 1, one per class "
            f"{samples.classes.tolist()}; got {given!r}."
        )
    return priors


def log_ratio(priors: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Return the change of log-probabilities if `priors` replace the training frequencies."""
    with np.errstate(divide="ignore"):  # a class of prior zero is never predicted
        return np.log(priors) - np.log(frequencies)


def _log_odds_of_two(columns: np.ndarray) -> np.ndarray:
    """Return the difference of the columns for two classes, else all of them."""
    return columns[:, 1:] - columns[:, :1] if columns.shape[1] == 2 else columns

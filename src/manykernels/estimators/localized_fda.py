"""LocalizedFDA: kernels that count in different regions, for Fisher's discriminant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ..discriminant import fisher_targets
from ..discriminant.decision import Decision, fisher_regression
from ..discriminant.rules import indicator_rule
from ..gating.judging import ClassJudge
from ..gating.learning import GateLearning
from ..gating.machines import SquareMachine
from ..kernels import KernelStack
from ..kernels.transforms import Center
from ._base import CLASS_WEIGHT, POSITIVE, KernelEstimator, estimator, fits
from ._gated import BrakeParameters, GatedKernels, GateParameters
from ._machines import SupportAttributes
from ._outputs import KernelClassifier, Probabilities
from ._progress import FitTask
from ._rows import discriminant_rows


@estimator
class LocalizedFDA(
    Probabilities,
    KernelClassifier,
    BrakeParameters,
    GateParameters,
    SupportAttributes,
    KernelEstimator,
):
    """Kernel Fisher discriminant with kernels weighted differently in different regions.

    :class:`LocalizedSVC` with the square loss in the place of the hinge loss; the paper remarks
    that other kernel machines can be used. Class scores and probabilities are those of
    :class:`MKFDA`, but the gate is held fixed while samples are left out: probabilities can be
    too sure where a gate has fitted single samples.

    Parameters
    ----------
    reg : float, default=0.1
        λ > 0 of the discriminant.
    class_weight : dict, "balanced" or None, default=None
        Factors of sample weights by class.

    Attributes
    ----------
    priors_ : ndarray of shape (n_classes,)
    rule_ : {"indicator", "discriminant"}
        How class scores are made of the outputs, as for :class:`MKFDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedFDA
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedFDA(lines, normalize=None, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    reg: float = 0.1
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": POSITIVE,
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the gate and the discriminant."""
        learning = GateLearning.of(self)
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        kernels = GatedKernels.of(rows, self.normalize, learning.gate, self.gating_features)
        samples = kernels.kernels.labelled(rows)
        targets = fisher_targets(samples.labels, samples.masses)
        machine = SquareMachine(targets, self.reg, samples.weights)
        rule = indicator_rule(samples.frequencies, np.eye(targets.shape[1]))
        judge = ClassJudge.of(rows.labels, len(rows.classes), rows.counts, rows.groups, rule)
        learnt = kernels.learn(learning, [machine], [judge], task)
        (point,) = learnt.points
        # With the gate held, this is the discriminant of MKFDA on one kernel.
        K = point.kernel
        gated = KernelStack(K[None], ["gated"], gram=True, checked=True)
        problem = replace(samples, stack=gated).prepared(Center())
        loss = problem.loss(self.reg)
        regression = fisher_regression(problem, loss, loss.evaluate(np.ones(1)), domain=None)
        decision = Decision.learn(regression, samples, samples.frequencies)
        dual = decision.coefficients(regression.coefficients)
        # Centring the kernel changes the output of every new sample by the same amount, as the
        # coefficients sum to zero.
        means = K @ rows.factors / rows.factors.sum()
        intercept = decision.intercept - means @ dual
        return self._keep(
            task,
            kernels.attributes(rows, learnt, dual, intercept),
            priors_=samples.frequencies,
            rule_=decision.rule.name,
        )

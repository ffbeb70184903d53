"""ConvexLocalizedFDA: kernel weights for every region, for Fisher's discriminant."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..discriminant import fisher_targets
from ..discriminant.decision import checked_priors
from ..discriminant.rules import indicator_rule
from ..gating.judging import ClassJudge
from ..gating.machines import SquareMachine
from ..kernels.transforms import Center
from ..losses import Outline, SquareLoss
from ._base import CLASS_WEIGHT, POSITIVE, KernelEstimator, estimator, fits
from ._learning import WeightLearning, WeightParameters
from ._outputs import DiscriminantTransformer, KernelClassifier, Probabilities
from ._progress import FitTask
from ._regional import RegionAttributes, RegionParameters, Regions
from ._rows import discriminant_rows
from ._sharpness import SharpnessChoice
from .fda import learn_discriminant


@estimator
class ConvexLocalizedFDA(
    DiscriminantTransformer,
    Probabilities,
    KernelClassifier,
    RegionParameters,
    RegionAttributes,
    WeightParameters,
    KernelEstimator,
):
    """Fisher discriminant analysis with kernel weights for every region of the samples.

    :class:`ConvexLocalizedSVC` with the square loss, and the class scores and probabilities of
    :class:`MKFDA`, which it is with one region. Regions are those of all samples while samples are
    left out.

    Parameters
    ----------
    reg : float, default=0.1
        λ > 0, acting on the kernels after `normalize` and centring.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. "sip", "analytic" and "coordinate" can be used, too; others
        know one norm of all weights only.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.

    Attributes
    ----------
    reg_ : float
        λ.
    left_out_log_proba_ : ndarray of shape (n_samples, n_classes)
        As of :class:`MKFDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedFDA
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])
    >>> model = ConvexLocalizedFDA(Linear(), normalize=None, regions=4, sharpness=4).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.certificate_.converged
    (True, True)
    """

    reg: float = 0.1
    class_weight: Any = None
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": POSITIVE,
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find regions, learn kernel weights and the discriminant."""
        learning = WeightLearning.of(self)
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight)
        n_classes = len(rows.classes)
        regions = Regions.of(self, rows)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        outline = Outline(SquareLoss, len(rows), rows.data.n_kernels, n_outputs)
        regions.refuse_unfit(learning, outline)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        kernels = regions.kernels(rows, rows.weights, learning.solver)
        samples = kernels.labelled(rows)
        targets = fisher_targets(samples.labels, samples.masses)
        machine = SquareMachine(targets, self.reg, samples.weights)

        def losses_of(stack: Any, some: Any) -> list[Any]:
            own = machine.of(some)
            return [SquareLoss(stack, own.targets, own.reg, own.sample_weight)]

        rule = indicator_rule(samples.frequencies, np.eye(targets.shape[1]))
        judge = ClassJudge.of(rows.labels, n_classes, rows.counts, rows.groups, rule)
        choice = SharpnessChoice(
            rows, kernels, self.normalize, learning, losses_of, judge, samples.weights
        )
        regions = choice.of(regions)
        transform = kernels.preparation(self.normalize, center=False)
        transform.steps += [regions.step, Center()]
        fitted = learn_discriminant(
            kernels,
            samples,
            transform,
            checked_priors(self.priors, samples),
            learning,
            task,
            lambda problem: problem.loss(self.reg),
        )
        found = regions.attributes(fitted["weights_"][None], kernels.stack.names)
        return self._keep(task, rows.attributes, fitted, found)

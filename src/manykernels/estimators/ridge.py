"""MKRidge: ℓp-norm multiple kernel ridge regression of one target or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.parallel import Parallel, delayed

from ..domains import Domain, lp_domain
from ..kernels.tables import Table
from ..losses.base import Loss, ProblemSpec
from ..losses.square import SquareLoss
from ..solvers.candidates import Regression, choose_candidates, explained_variance
from ..solvers.path import GridPoint, weight_response
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import POSITIVE, FitTask, KernelEstimator, estimator, fits
from .feature_data import ApproximationParameters, MomentAttributes, refuse_with_features
from .grid import Grid, checked_regs, norms_or_evidence
from .held_out import HeldOutValues, SplitOutputs
from .learning import Point, Task, fit_model, partial_fit_values, share_workspace, target_groups
from .prediction import LeftOutResiduals, TargetRegressor
from .search import (
    ChoiceParameters,
    ChosenWeights,
    KernelSetParameters,
    Search,
    chosen_by,
    is_validation_set,
    joined_choices,
    outputs_of_splits,
    validation_curve,
    walk_points,
)
from .training_rows import TrainingRows, centred_values
from .weights import NORM_OR_EVIDENCE, Learnt, WeightParameters


@dataclass(frozen=True)
class RidgeTask(Task):
    """Ridge regression of targets that share kernel weights, or have their own.

    `reg` is None where every point of a grid has its own.
    """

    reg: float | None = None
    normalize: str | None = "multiplicative"
    multi_target: str = "shared"

    classifies: ClassVar[bool] = False
    class_weight: ClassVar[None] = None

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        return centred_values(estimator, X, y, sample_weight, groups=groups, several=True)

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        group = self._groups(rows.targets)[0]
        return ProblemSpec(SquareLoss, len(rows), n_kernels, len(group))

    def n_losses(self, targets: Any) -> int:
        return len(self._groups(targets))

    def _groups(self, targets: np.ndarray) -> list[np.ndarray]:
        n_targets = 1 if targets.ndim == 1 else targets.shape[1]
        return target_groups(n_targets, self.multi_target)

    def losses(self, data: Any, points: Sequence[Point]) -> list[Loss]:
        targets, groups = data.scaled_targets(), self._groups(data.samples.targets)
        losses = [
            data.loss_at(targets.coding(group))(self._reg(point))
            for group, point in zip(groups, points, strict=True)
        ]
        return share_workspace(losses)

    def _reg(self, point: Point) -> float:
        """Return λ of a point; that of largest evidence is learnt, from any number."""
        reg = point.get("reg", self.reg)
        return 1.0 if reg is None else float(reg)

    def rounded(self, data: Any, learnt: Learnt) -> Learnt:
        residuals = data.residual_sums(learnt.evaluations)
        return learnt.with_rounding(data.scaled_targets().rounding(residuals))

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        targets, samples = data.scaled_targets(), data.samples
        groups, evaluations = self._groups(samples.targets), learnt.evaluations
        coefficients = targets.units * np.hstack([one.coefficients for one in evaluations])
        left_out = [
            _left_out(data, evaluation, targets.at_samples(group), domain)
            for evaluation, group, domain in zip(evaluations, groups, domains, strict=True)
        ]
        predictions = targets.restored(np.hstack(left_out))
        predictions = predictions[:, 0] if samples.targets.ndim == 1 else predictions
        weights = learnt.weights if len(groups) > 1 else learnt.weights[0]
        single = samples.targets.ndim == 1
        regs = learnt.regularizations
        return {
            **data.attributes,
            "reg_": regs[0].item() if len(regs) == 1 else regs,
            data.coefficients: coefficients[:, 0] if single else coefficients,
            "intercept_": targets.means,
            "left_out_predictions_": predictions,
            **LeftOutResiduals.attributes(samples, predictions),
            "_predictor": data.predictor(weights, coefficients),
        }

    # -- choice of p and λ -----------------------------------------------------------------

    def choose(self, search: Any, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        samples, groups = search.samples, self._groups(search.samples.targets)
        outputs = outputs_of_splits(search, self, self.outputs, grid, n_losses=len(groups))
        points: list[Point] = []
        attributes = []
        for k, parts in enumerate(zip(*outputs, strict=True)):
            every, tests = samples, search.tests
            if len(groups) > 1:
                every = replace(samples, targets=samples.targets[:, k])
                tests = [replace(test, targets=test.targets[:, k]) for test in tests]
            choice, chosen = chosen_by(
                search.estimator, grid, HeldOutValues(list(parts), tests), search.tested, every
            )
            points.append(choice.params)
            attributes.append(chosen)
        joined = joined_choices(attributes)
        predictions = joined.get("left_out_predictions_")
        return points, {**joined, **LeftOutResiduals.attributes(samples, predictions)}

    def outputs(
        self,
        part: Any,
        grid: Grid,
        tol: float,
        progress: FitTask,
        starts: list[dict[tuple[int, int], np.ndarray]] | None,
    ) -> list[SplitOutputs]:
        """Return predictions for the test samples of a split, for each group of targets."""
        data, ps = part.data, grid.values["p"]
        targets, groups = data.scaled_targets(), self._groups(data.samples.targets)
        # Targets that are learnt one by one are judged one by one, as lists of numbers.
        shape = (part.n_test, *(() if len(groups) > 1 else data.samples.targets.shape[1:]))
        outputs = []
        for k, group in enumerate(groups):
            split = SplitOutputs.unsolved(grid.shape, shape)
            which = {} if len(groups) == 1 else {"target": float(group[0])}
            known = None if starts is None else starts[k]

            def visit(
                point: GridPoint,
                group: np.ndarray = group,
                split: SplitOutputs = split,
                which: dict[str, float] = which,
                known: dict[tuple[int, int], np.ndarray] | None = known,
            ) -> bool:
                at, evaluation = (point.norm_index, point.reg_index), point.evaluation
                if known is not None:
                    known[at] = evaluation.weights
                if part.folds is None:
                    values = part.outputs(evaluation, evaluation.coefficients)
                else:
                    response = weight_response(evaluation, lp_domain(ps[at[0]].item()))
                    values = np.vstack(evaluation.leave_folds_out(part.folds, response))
                values = targets.restored(values, group).reshape(shape)
                params = {**which, **grid.at(at)}
                noted = split.note(at, params, values, point.certificate, point.n_inner_solves)
                return progress(noted)

            loss_at = data.loss_at(targets.coding(group))
            begin = None if known is None else dict(known)
            split.record.failures.extend(walk_points(loss_at, grid, visit, tol, begin))
            for row in np.flatnonzero(np.isnan(ps)).tolist():
                split.repeat_first(row)
            outputs.append(split)
        return outputs

    def refuse_with_features(self, estimator: KernelEstimator) -> None:
        """Raise if a parameter does not go with explicit features."""
        refuse_with_features(estimator)


def _left_out(
    data: Any, evaluation: Any, targets: np.ndarray, domain: Domain | None
) -> np.ndarray:
    """Return outputs of every sample by the regression of the others, (m, n_targets).

    NaN if they are not known, as with kernels that have learnt from the targets of all samples.
    """
    if len(targets) == 1 or data.knows_targets:
        return np.full(targets.shape, np.nan)
    leaves_out = data.left_out(evaluation, targets)
    response = None if domain is None else weight_response(leaves_out, domain)
    outputs: np.ndarray = leaves_out.leave_one_out(data.samples.groups, response=response)
    return outputs


# -- Many targets with weights of their own: the best of shared candidates ------------------------


# Number of targets from which on each takes the best of shared candidates, unless told otherwise.
# Below, the exact weights of all targets take a few seconds (at 300 rows).
_MANY_TARGETS = 20
# λ of candidates by default: twice as many as for learnt weights, as one more costs little. With
# eight, R² on new rows is 0.001 to 0.006 less on made-up data of 3, 8 and 20 views (measured).
_CANDIDATE_REGS = tuple(np.logspace(-4, 3, 15).tolist())


def takes_candidates(estimator: Any, y: ArrayLike) -> bool:
    """Return whether each target takes the best of shared candidate weights.

    Raises if that was asked for by ``certify=False``, but another parameter does not go with it.
    """
    if estimator.certify or (estimator.certify is None and estimator.multi_target == "shared"):
        return False
    shape = np.shape(y)
    reason = ""
    if estimator.multi_target == "shared":
        reason = 'multi_target="shared", where one weight vector is learnt for all targets'
    elif isinstance(estimator.cv, str) or is_validation_set(estimator.cv):
        reason = "cv, which must be a number of folds or a splitter into folds"
    elif estimator.one_standard_error:
        reason = "one_standard_error=True"
    else:
        for name in ("ps", "scoring", "kernel_sets", "approximation"):
            if getattr(estimator, name) is not None:
                reason = name
    if estimator.certify is None:
        return not reason and len(shape) == 2 and shape[1] > _MANY_TARGETS
    if reason:
        raise ValueError(
            f"certify=False does not go with {reason}. Each target takes the best of shared "
            "candidate weights, judged by R² in folds; leave that parameter out, or pass "
            "certify=True, which learns the weights of every target."
        )
    return True


def fit_candidates(
    estimator: Any,
    task: RidgeTask,
    X: Table,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
) -> Any:
    """Fit ridge regressions of many targets, each with the best of shared candidate weights."""
    regs = np.sort(checked_regs(estimator.regs, _CANDIDATE_REGS))[::-1]
    rows = task.rows(estimator, X, y, sample_weight, groups)
    kernels = task.kernels(rows)
    search = task.search(estimator, X, y, rows, kernels)
    folds = _folds_of(search)
    data = task.prepare(kernels, rows)
    samples, scaled = data.samples, data.scaled_targets()
    n_groups = len(samples) if rows.groups is None else len(np.unique(rows.groups))
    weights = samples.weights
    regression = Regression(
        data.stack, scaled.columns, regs, folds, weights, n_groups < len(samples)
    )
    parallel = Parallel(n_jobs=estimator.n_jobs, require="sharedmem")
    progress = search.task.part("", None)
    choice = choose_candidates(
        regression,
        each=lambda work, candidates: parallel(delayed(work)(one) for one in candidates),
        progress=progress,
    )
    progress.end()
    split_of_row = np.full(len(samples), -1)
    for k, fold in enumerate(folds):
        split_of_row[fold] = k
    tested = split_of_row >= 0
    left_out = explained_variance(
        scaled.columns[tested],
        scaled.columns[tested] - choice.left_out[tested],
        None if weights is None else weights[tested],
    )
    single = samples.targets.ndim == 1
    coefficients = choice.coefficients * scaled.units
    several = {
        "weights_": choice.weights,
        "reg_": choice.regs,
        "p_": np.ones(len(choice.regs)),
        "best_score_": choice.scores.mean(axis=0),
        "left_out_score_": left_out,
        "left_out_predictions_": scaled.restored(choice.left_out),
        data.coefficients: coefficients,
    }
    if single:
        several = {
            name: values[..., 0] if len(values) == len(samples) else values[0]
            for name, values in several.items()
        }
    return estimator._keep(
        search.task,
        data.attributes,
        several,
        LeftOutResiduals.attributes(samples, several["left_out_predictions_"]),
        kernel_names_=data.names,
        intercept_=scaled.means,
        n_splits_=len(folds),
        test_fold_=split_of_row,
        n_iter_=choice.n_rounds,
        n_inner_solves_=choice.n_decompositions,
        solver_="candidates",
        _predictor=data.predictor(choice.weights, coefficients),
    )


def _folds_of(search: Search) -> list[np.ndarray]:
    """Return the test rows of every split; raise if training parts are not all other rows."""
    tested = np.zeros(len(search.samples), dtype=int)
    folds = []
    for k, split in enumerate(search.splits):
        if split.of_targets is not None:
            names = ", ".join(map(repr, split.of_targets.union.names_))
            raise ValueError(
                f"Many separate targets do not go with kernels that learn from targets ({names}): "
                "they would be learnt for all targets together. Leave these kernels out, or pass "
                'certify=True or multi_target="shared".'
            )
        assert split.train is not None  # validation sets were refused
        train, test = np.sort(split.train), np.asarray(split.test)
        tested[test] += 1
        all_others = np.array_equal(train, np.delete(np.arange(len(tested)), test))
        if not all_others or tested.max() > 1 or len(test) < 2:
            raise ValueError(
                f"Split {k} of cv has {len(train)} training and {len(test)} test rows of "
                f"{len(tested)}. Many separate targets are judged by folds: each test part must "
                "have at least two rows, no row may be tested twice, and models learn from all "
                "other rows. Pass a number of folds, or certify=True."
            )
        folds.append(test)
    return folds


@storable
@estimator(MomentAttributes, ApproximationParameters, WeightParameters)
class MKRidge(TargetRegressor):
    """ℓp-norm multiple kernel ridge regression.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with a ridge regression on the
    weighted sum, and proves how close to the best weights it got. With one kernel and
    ``normalize=None`` it is scikit-learn's ``KernelRidge(alpha=reg)`` with an intercept.

    Parameters
    ----------
    p : float in [1, inf] or "evidence", default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum. "evidence" learns the
        weights and λ together, such that the targets are most likely
        under a Gaussian process; see the notes. Then `reg` is not used, and the weights sum to
        one.
    reg : float, default=1.0
        λ > 0 of ``Σ_i ‖y_i − f(x_i)‖² + λ‖f‖²``, acting on the kernels after centring and
        `normalize`. Errors are summed over the samples, not averaged.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Those of the papers: "sip" and "silp" (cutting planes),
        "analytic" (closed-form updates), "dual" (L-BFGS, p > 1), "reduced-gradient" (SimpleMKL,
        p = 1), "coordinate" (kernels computed column by column, for samples that are too many for
        a matrix), "qcqp", "sdp" and "sdp-approx" (convex programs, p = 1).
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_targets, n_kernels)
        Learnt kernel weights, of the normalised kernels; a row for each of several targets if
        separate. The certificate is that of the sum over targets.
    reg_ : float, or ndarray of shape (n_targets,)
        λ, given or learnt.
    left_out_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        What is predicted for each training row if it is left out; see the notes. Like `dual_coef_`
        it has no entries for rows of weight zero. NaN if a kernel learns from targets
        (:class:`~manykernels.kernels.RelevanceRBF`), which has seen those of all rows.

    Notes
    -----
    Targets are divided by their standard deviations before anything is learnt. Where several
    share their weights, each counts alike, whatever its unit; predictions and coefficients are in
    units of y. The objective of `certificate_` and `history_` is the sum of squares above over
    the variance, so that a sample has a share of one at most from every target.

    `left_out_predictions_` come from one factorisation, without refitting. They are exact for
    given kernel weights; that the weights change without the row is taken to first order, and
    those that are zero to stay zero: where p = 1 and a large λ leave one or two of many kernels,
    left-out predictions are a little too good. Kernel widths, scales of kernels and standard
    deviations of targets are always those of all rows. A row of weight two stands for two, one
    of which is left out. (With solver="coordinate" and more than a few thousand rows, there is no
    factorisation: the weights are held, and the influence of a row on its own prediction is taken
    to be the mean of all, as in generalised cross-validation.)

    With ``p="evidence"`` the weights and λ are the variances of a Gaussian process with one term
    per kernel and noise, estimated by restricted maximum likelihood. A norm prefers rich kernels,
    which fit better; the likelihood also counts what else they could have fitted. Weights that are
    zero are exactly zero. The likelihood is not convex: the best of three starts is taken, and the
    certificate proves that it is stationary. Equal rows with equal targets count as one. Weights
    and λ are held where samples are left out, so that `left_out_predictions_` are a little too
    good. It needs no folds and takes some twenty factorisations; where noise is not Gaussian, as
    with outliers, it can fail: :class:`MKRidgeCV` tries it beside the norms.

    References
    ----------
    D. J. C. MacKay. Bayesian interpolation. Neural Computation 4, 1992.
    A. R. Gilmour, R. Thompson, B. R. Cullis. Average information REML. Biometrics 51, 1995.
    C. Cortes, M. Mohri, A. Rostamizadeh. L2 regularization for learning kernels. UAI 2009.
    M. Kloft et al. ℓp-norm multiple kernel learning. JMLR 12, 2011.

    Examples
    --------
    A prediction, and an interval that contains the targets of 90 % of new samples:

    >>> from sklearn.datasets import load_diabetes
    >>> from manykernels import MKRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MKRidge().fit(X[:300], y[:300])
    >>> model.predict(X[300:301]).round()
    array([221.])
    >>> model.predict_interval(X[300:301], coverage=0.9).round()
    array([[128., 319.]])

    Two targets that share the kernels of three columns:

    >>> import numpy as np
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 3))
    >>> y = np.column_stack([np.sin(2 * X[:, 0]), 1000 * np.cos(X[:, 1])])
    >>> y += rng.normal(scale=[0.1, 100.0], size=y.shape)
    >>> kernels = {"first": RBF(1.0).on([0]), "second": RBF(1.0).on([1]), "third": RBF().on([2])}
    >>> model = MKRidge(kernels, p=1).fit(X, y)
    >>> dict(zip(model.kernel_names_, model.weights_.round(2).tolist()))
    {'first': 0.54, 'second': 0.46, 'third': 0.0}
    >>> model = MKRidge(kernels, p=1, multi_target="separate").fit(X, y)
    >>> model.weights_.round(1)
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """

    reg: float = 1.0
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {"p": NORM_OR_EVIDENCE, "reg": POSITIVE}

    partial_fit = partial_fit_values

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn kernel weights and the regression.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to be predicted.
        """
        return fit_model(self, self._task, X, y, sample_weight, groups)

    @property
    def _task(self) -> RidgeTask:
        return RidgeTask(float(self.reg), self.normalize, self.multi_target)


# -- MKRidgeCV: norm and regularisation of a ridge regression, chosen along a path of solutions ---


@storable
@estimator(
    MomentAttributes,
    ApproximationParameters,
    ChoiceParameters,
    KernelSetParameters,
    ChosenWeights,
)
class MKRidgeCV(TargetRegressor):
    """Multiple kernel ridge regression with p and λ chosen by cross-validation.

    The default kernels include a :class:`~manykernels.kernels.RelevanceRBF`. All norms and
    regularisations of a grid are solved as one path, each from its neighbours and each with a
    certificate. They are scored on samples that neither the kernel weights nor the regression
    have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : list of float in [1, inf] and "evidence", optional
        Norms to try; by default 1, 4/3, 2, ∞ and, unless ``cv="closed-form"``, "evidence": weights
        and λ that are most likely, as for :class:`MKRidge`. The twelve norms of Yan et al. (2012)
        are ``manykernels.solvers.PAPER_NORMS``.
    regs : array-like of float, optional
        λ to try with each norm; by default eight from 1e-4 to 1e3.
    multi_target : {"shared", "separate"}, default="shared"
        Several targets have one p, one λ and one weight vector for all, or each its own.
    certify : bool, optional
        How the weights of separate targets are found. True learns them for every target, as for
        one target, with a certificate. False takes, for each target, the best of some hundred
        candidates, which all targets share: it is fast for thousands of targets, see the notes.
        By default False if there are more than twenty targets, and none of `ps`, `scoring`,
        `kernel_sets`, `one_standard_error` and `approximation` is set.
    cv : None, int, splitter, iterable of splits, (X_val, y_val) or "closed-form", default=None
        A number of folds, by default five, shuffled with a fixed seed; groups and repeated rows
        stay together.
        "closed-form" leaves out fifty such folds in turn without refitting; the change of the
        kernel weights is taken to first order. Models then learn from all but a fiftieth of the
        samples, and no copies of kernels are made. A pair is a validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is R², of several targets that
        share p and λ the mean of theirs.

    Attributes
    ----------
    p_, reg_ : float, or ndarray of shape (n_targets,)
        The point of the grid that was chosen: NaN and the learnt λ for "evidence", 1 for a
        candidate. One for each of several targets if separate; so are `best_score_` and
        `left_out_score_`, arrays then, and `cv_results_`, a list.
    weights_ : ndarray of shape (n_kernels,), or (n_targets, n_kernels)
        Learnt kernel weights, those of the fit to all samples; a row for each of several targets
        if separate.
    left_out_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Prediction of each training row by the model without its fold, at the p and λ that are
        best in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. If `cv` is a validation set, as for :class:`MKRidge`.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. The scales of
    kernels and targets, the weights and the regression come from the training part. (With
    ``cv="closed-form"`` scales are those of all samples.)

    With ``kernels=None`` and folds, tables of numbers and of categories have one more kernel than
    those of :func:`~manykernels.auto_kernels`: a Gaussian whose scales of columns are learnt from
    the targets, in every split from its training rows. Few of many columns may matter then. The
    scales are not the solution of a convex problem; `certificate_` is that of the weights, for
    given scales. Tables with more columns than rows do not have it, nor have separate targets,
    which would share the scales. ``kernels_for(X)`` returns the kernels without it.

    With ``certify=False`` the candidates are equal weights, single kernels, random weights, and
    means of the two best candidates of many targets, all of sum one. One eigendecomposition per
    candidate serves all targets and all λ (by default 15). Generalised cross-validation picks
    three candidates for each target; if `groups` are passed, or rows are equal, folds do.
    Folds, without refitting, choose one of these and λ. `best_score_` is the mean R² of the folds,
    each by the one that is best in the other folds; the three were picked, and kernels and targets
    scaled, with all rows. On targets of pure noise with 20 views, 300 rows, it is 0.024
    above R² on new rows, and `left_out_score_` 0.039. There are no `cv_results_` and no
    `certificate_`: weights are chosen by held-out errors, and do not minimise the objective. For
    the certified weights of one target, fit ``MKRidge(kernels, p=1, reg=…)`` to it, or all with
    ``certify=True``. `n_jobs` is then the number of candidates that are tried at the same time, in
    threads, and `n_inner_solves_` the number of eigendecompositions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manykernels import MKRidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MKRidgeCV(ps=[1, 2], regs=[1, 10, 100]).fit(X[:200], y[:200])
    >>> model.validation_curve().shape
    (2, 3)
    >>> bool(model.best_score_ > 0.4)
    True
    """

    ps: ArrayLike | None = None
    regs: ArrayLike | None = None
    certify: bool | None = None
    tol: float = 1e-5

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "certify": ["boolean", None],
        "cv": ["cv_object", tuple, StrOptions({"closed-form"}), None],
    }

    partial_fit = partial_fit_values
    validation_curve = validation_curve

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to be predicted.
        """
        if takes_candidates(self, y):
            return fit_candidates(self, self._task, X, y, sample_weight, groups)
        return fit_model(self, self._task, X, y, sample_weight, groups, self._grid)

    @property
    def _task(self) -> RidgeTask:
        return RidgeTask(None, self.normalize, self.multi_target)

    @property
    def _learns_relevance(self) -> bool:
        return not isinstance(self.cv, str) and self.multi_target == "shared"

    @property
    def _grid(self) -> Grid:
        return Grid(
            {"p": norms_or_evidence(self, by_default=True), "reg": checked_regs(self.regs)}
        )

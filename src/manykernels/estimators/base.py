"""`KernelEstimator`, the base class of all estimators, with documentation, progress and callbacks.

The docstring of a class lists its own parameters and attributes. Those that it inherits are
added from the docstrings of its bases, so that ``help`` and the documentation show all of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from html import escape
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from ..kernels.auto import have_names, parameters, with_parameters
from ..kernels.completion import COMPLETIONS
from ..kernels.tables import Table
from ..kernels.transforms import NORMALIZATIONS
from ..utils.numerics import one_blas_thread
from ..utils.sklearn import Interval, StrOptions
from ..utils.versions import bar, html, shortened
from .inputs import matched_by_label

# The order of numpydoc.
_ORDER = ["Parameters", "Returns", "Attributes", "Notes", "References", "Examples"]
_HEADING = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def inherited(
    own: str | None,
    others: Iterable[str | None],
    order: dict[str, list[str]],
    without: Iterable[str] = (),
) -> str | None:
    """A numpydoc docstring with the entries that `others` have in addition.

    Of entries with the same name the first one counts. `order` has the sections that are
    completed, and for each the names that come first in it; entries `without` are left out.
    """
    if own is None:
        return None
    sections = _sections(own)
    known = [_sections(other) for other in others if other]
    completed = {}
    for title, first in order.items():
        entries: dict[str, str] = {}
        for found in (sections, *known):
            for name, entry in _entries(found.pop(title, "")).items():
                entries.setdefault(name, entry)
        listed = [name for name in first if name in entries]
        listed += [name for name in entries if name not in {*listed, *without}]
        if listed:
            completed[title] = "".join(entries[name] for name in listed) + "\n"
    text = sections.pop("")
    found = {**completed, **sections}
    for title in sorted(found, key=_ORDER.index):
        text = f"{text}{title}\n{'-' * len(title)}\n{found[title]}"
    return text.rstrip() + "\n"


def _sections(docstring: str) -> dict[str, str]:
    """Bodies of the sections by their titles; what stands before the first has no title."""
    parts = _HEADING.split(inspect.cleandoc(docstring) + "\n")
    titles = ["", *parts[1::2]]
    return {
        title: body.strip("\n") + "\n\n" for title, body in zip(titles, parts[::2], strict=True)
    }


def _entries(section: str) -> dict[str, str]:
    """Entries by name: each is a line that is not indented, and the indented ones after it."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.strip("\n").splitlines():
        if line and not line[0].isspace():
            name = line.split(" : ")[0].strip()
            entries[name] = ""
        if name:
            entries[name] += f"{line}\n"
    return entries


# -- What notebooks show below the diagram of a fitted estimator: weights and certificate ---------


# Kernels that are listed, those with the largest shares: a glance, not a report.
_LISTED = 8


def learnt_html(estimator: KernelEstimator) -> str:
    """Shares of the kernels and the certificate in a line; nothing if there are no weights."""
    learnt = vars(estimator)
    names, found = (
        learnt.get("kernel_names_"),
        learnt.get("weights_", learnt.get("plain_weights_")),
    )
    if names is None or found is None or np.shape(found)[-1] != len(names):
        return ""
    weights = np.asarray(found, dtype=float)
    weights = weights.reshape(-1, weights.shape[-1])
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0).mean(
        axis=0
    )
    order = np.argsort(-shares, kind="stable")[:_LISTED]
    most = float(shares.max()) or 1.0
    rows = [
        [shortened(str(names[j])), f"{shares[j]:.1%}", bar(float(shares[j]) / most)] for j in order
    ]
    notes = [f"{len(names) - len(order)} more kernels."] if len(names) > len(order) else []
    notes += [str(learnt["certificate_"])] if "certificate_" in learnt else []
    kind = "share of weight" if len(weights) == 1 else "mean share of weight"
    title = f"<p>{escape(type(estimator).__name__)} has learnt:</p>"
    return f"<div>{title}{html(['kernel', kind, ''], rows, notes)}</div>"


# -- Progress of a fit: reported to scikit-learn's callbacks, and printed if `verbose` ------------


class FitTask:
    """A fit or a part of it: begun, perhaps divided into subtasks, ended.

    Calling it with a record of progress tells the callbacks that one subtask is done. That makes
    it the observer of solvers, descents and grids: a true answer asks them to stop. A record has a
    number, ``iteration``, and is printed by ``str``. `stopped` is whether a callback has asked to
    stop in this task.
    """

    def __init__(
        self,
        estimator: KernelEstimator,
        context: Any,
        X: Table = None,
        y: ArrayLike | None = None,
        label: str = "",
    ):
        self._estimator, self._context, self._label = estimator, context, label
        self._data: dict[str, Any] = {"X": X, "y": y}
        self.stopped = False
        context.call_on_fit_task_begin(estimator=estimator, **self._data)

    @classmethod
    def begin(
        cls, estimator: KernelEstimator, X: Table, y: ArrayLike | None, max_subtasks: int | None
    ) -> FitTask:
        """The whole fit, of at most so many iterations or parts."""
        return cls(estimator, estimator._init_callback_context(max_subtasks=max_subtasks), X, y)

    def subtask(self, name: str, max_subtasks: int | None = 0) -> FitTask:
        """A part of this task, begun now."""
        context = self._context.subcontext(task_name=name, max_subtasks=max_subtasks)
        return FitTask(self._estimator, context, **self._data)

    def part(self, name: str, max_subtasks: int | None) -> FitTask:
        """A part with a name of its own that may run in another process, without the data."""
        context = self._context.subcontext(task_name=name, max_subtasks=max_subtasks)
        return FitTask(self._estimator, context, label=f"{name}  ")

    def passed_on_to(self, model: Any) -> Any:
        """Context manager: callbacks meant for sub-estimators follow the fit of `model`."""
        return self._context.propagate_callback_context(model)

    def end(self) -> bool:
        """End the task; whether a callback asks to stop what it is a part of."""
        return bool(self._context.call_on_fit_task_end(estimator=self._estimator, **self._data))

    def __call__(self, progress: Any) -> bool:
        """Report one step to callbacks, and print it if verbose."""
        if self._estimator.verbose:
            print(f"[{type(self._estimator).__name__}] {self._label}{progress}")
        asked = self.subtask(f"iteration {progress.iteration}").end()
        self.stopped |= asked
        return asked


# -- The base of all estimators: a parameter ``kernels``, callbacks, fitted attributes ------------


Fit = TypeVar("Fit", bound=Callable[..., Any])
Class = TypeVar("Class")

#: Constraints of parameters that several estimators have.
POSITIVE = [Interval(Real, 0, None, closed="neither")]
NON_NEGATIVE = [Interval(Real, 0, None, closed="left")]
CLASS_WEIGHT = [StrOptions({"balanced"}), dict, None]
# Parameters that a reader looks for first, and those that most leave as they are.
_FIRST = ["kernels", "p", "ps"]
_LAST = ["cv", "scoring", "one_standard_error", "normalize", "missing", "approximation", "solver"]
_LAST += ["tol", "max_iter", "n_jobs", "random_state", "verbose"]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(*groups: type) -> Callable[[type[Class]], type[Class]]:
    """Return a class decorator that makes annotated attributes the parameters of an estimator.

    They become arguments of ``__init__``, as in a dataclass. `groups` are classes that declare
    parameters and attributes of several estimators, with constraints and documentation, and
    nothing else. What they and the bases declare is added to the class and its docstring.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        declared = list(inspect.get_annotations(cls))
        for group in groups:
            if not is_dataclass(group):
                continue  # attributes only
            for parameter in fields(group):
                if parameter.name not in declared:
                    cls.__annotations__[parameter.name] = parameter.type
                    setattr(cls, parameter.name, parameter.default)
        cls = dataclass(kw_only=True, eq=False, repr=False)(cls)
        bases = [base for base in cls.__mro__ if base.__module__.startswith("manykernels.")]
        constraints: dict[str, Any] = {}
        for source in (*reversed(bases[1:]), *reversed(groups), cls):
            constraints.update(vars(source).get("_parameter_constraints", {}))
        parameters = _in_order(cls, declared)
        cls._parameter_constraints = {  # type: ignore[attr-defined]
            name: allowed for name, allowed in constraints.items() if name in parameters
        }
        order = {"Parameters": parameters, "Attributes": [], "References": []}
        docs = (source.__doc__ for source in (*groups, *bases[1:]))
        # Parameters of a group that the class declares as class variables are not its parameters.
        offered = {each.name for group in groups if is_dataclass(group) for each in fields(group)}
        absent = offered - set(parameters)
        fit = getattr(cls, "fit", None)
        if fit is not None and "groups" not in inspect.signature(fit).parameters:
            absent.add("groups_")
        cls.__doc__ = inherited(cls.__doc__, docs, order, absent)
        given = inspect.signature(cls.__init__)
        listed = [given.parameters[name] for name in ("self", *parameters)]
        cls.__init__ = _refusing_unknown(cls.__init__, parameters)  # type: ignore[method-assign]
        cls.__init__.__signature__ = given.replace(parameters=listed)  # type: ignore[attr-defined]
        return cls

    return decorate


def _refusing_unknown(init: Callable[..., None], names: list[str]) -> Callable[..., None]:
    """Return ``__init__`` with an error for other parameters that says what to pass."""

    @wraps(init)
    def complete_init(estimator: KernelEstimator, /, *values: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in names:
                raise TypeError(_unknown(type(estimator), name, names))
        init(estimator, *values, **parameters)

    return complete_init


def _unknown(cls: type, name: str, names: Iterable[str]) -> str:
    """Return the message of a parameter that a class of estimators does not have."""
    advice = f"Its parameters are {', '.join(names)}."
    if name == "approximation" and issubclass(cls, ClassifierMixin):
        advice = 'For many rows pass it to MKFDACV, MKFDA or MKSVC(loss="squared_hinge").'
    elif name == "approximation" and issubclass(cls, RegressorMixin):
        advice = "For many rows pass it to MKRidgeCV or MKRidge."
    elif close := get_close_matches(name, names, 1):
        advice = f"Did you mean {close[0]!r}?"
    return f"{cls.__name__} has no parameter {name!r}. {advice}"


def _in_order(cls: type, declared: list[str]) -> list[str]:
    """Return the names of the parameters, those `declared` by the class itself first."""
    names = [parameter.name for parameter in fields(cls)]  # type: ignore[arg-type]
    own = [name for name in declared if name in names]
    middle = [name for name in dict.fromkeys(own + names) if name not in _FIRST + _LAST]
    return [name for name in _FIRST + middle + _LAST if name in names]


def fits(fit: Fit) -> Fit:
    """Decorator of ``fit``: parameters are checked first, and callbacks are torn down last.

    If anything in between raises, an interruption included, the estimator is left as it was.

    Parameters
    ----------
    X : array-like, dataframe, sparse matrix, dict of these or Views, or KernelStack if precomputed
        Training samples. A dict has a table for each view of the samples, see
        :class:`~manykernels.Views`. A list or Series of strings is a table of one column.
    y : array-like of shape (n_samples,)
        Class labels of any kind, or the numbers of a regression; ignored where nothing is to be
        predicted. A pandas Series or frame is matched with the rows of X by label if both have
        the same labels, in another order with a warning; only some in common are refused, and so
        are the numbers 0, 1, 2, … in order on one side and shuffled on the other. Names that are
        repeated, or of which none is in common, are refused. Other labels without any in common,
        or with repeated ones, are matched by position, and so are arrays.
    sample_weight : array-like of shape (n_samples,), optional
        Matched with the rows of X as y is. A sample of weight two counts as two, one of weight
        zero as none. Weights below the
        rounding error of their median count as zero; a weight so large that the others are lost
        beside it in rounding errors is refused.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each; matched
        with the rows of X as y is. Samples of one group are never divided between training and
        test: they are left out together wherever the model judges itself, and folds are made of
        whole groups, stratified and as even as these allow (fewer folds if there are fewer
        groups). A splitter as `cv` is given the groups. Without groups, a few equal rows are a
        group; with them, equal rows of different groups are not kept together.
    """

    with_teardown = with_callbacks(fit)
    given = list(inspect.signature(fit).parameters.values())[1:]  # all but self
    accepted = [each.name for each in given if each.kind is not each.KEYWORD_ONLY]
    keywords = [each.name for each in given if each.kind is each.KEYWORD_ONLY]

    @wraps(fit)
    def complete_fit(
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **more: Any,
    ) -> Any:
        for name in more.keys() - keywords:
            raise TypeError(f"{type(estimator).__name__}.fit takes no argument {name!r}.")
        if groups is not None and "groups" not in accepted:
            raise TypeError(
                f"{type(estimator).__name__}.fit takes no groups. Pass them to what judges the "
                "model, such as compare or cross_validate."
            )
        estimator._validate_params()
        before = dict(vars(estimator))
        try:
            y = estimator._as_targets(y)
            matched = matched_by_label(estimator, X, y, sample_weight, groups, **more)
            with one_blas_thread() if _has_few_rows(*matched[:2]) else nullcontext():
                return with_teardown(
                    estimator,
                    *matched[: len(accepted)],
                    **dict(zip(more, matched[4:], strict=True)),
                )
        except BaseException:
            # One assignment, so that a second interruption cannot leave half of it.
            estimator.__dict__ = before
            raise

    without = {"groups"} - set(accepted)
    complete_fit.__doc__ = inherited(
        fit.__doc__, [fits.__doc__], {"Parameters": accepted + keywords}, without
    )
    return complete_fit  # type: ignore[return-value]


#: Fits of at most so many rows use one BLAS thread. Two threads made them 20 % faster at best on a
#: free machine with two cores, but 20 times slower on a busy one (docs/benchmarks/threads.md).
_FEW_ROWS = 1000


def _has_few_rows(X: Table, y: ArrayLike | None) -> bool:
    """Return whether the number of rows is known and at most `_FEW_ROWS`."""
    for table in (y, X):
        if isinstance(table, list | tuple):
            return len(table) <= _FEW_ROWS
        n_rows = (getattr(table, "shape", None) or (None,))[0]
        if isinstance(n_rows, Integral):
            return int(n_rows) <= _FEW_ROWS
    return False


@estimator()
class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators.

    A fit builds its results from parts (rows, kernels, learnt weights, rules) and hands them to
    :meth:`_keep` at its end. No fitted attribute is set before.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        The kernels to combine. None takes those of :func:`~manykernels.auto_kernels`, by what the
        table holds (:class:`~manykernels.MKRidgeCV`: those with ``relevance=True``). With several
        views, kernels are used for each of them, and a dict has the kernels of each view: a
        kernel, a list of them, or None for the default ones. With "precomputed", X is a
        :class:`~manykernels.KernelStack`, an array (rows, cols, n_kernels), a dict or list of
        kernel matrices, or one kernel matrix.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How kernels are made comparable, with constants of the training rows: unit variance
        in feature space, unit length of every sample, or unit trace after centring.
    missing : {"error", "mean", "conditional"}, default="error"
        What becomes of samples that lack a view: some of the `Views`, all columns of a kernel
        (NaN), or whole rows and columns of a precomputed kernel (NaN). They are refused; or their
        image is the mean of the samples that have the view; or it is reconstructed from their
        other views by a ridge regression, which keeps the training kernels and is better the more
        views tell of each other. New samples may lack views that no training sample lacks. See
        :mod:`manykernels.kernels.completion`.
    tol : float
        Accuracy at which to stop.
    verbose : bool, default=False
        Print a line per iteration. Progress bars: ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    kernel_names_ : list of str
    union_ : KernelUnion
        Fitted kernels, unless precomputed.
    n_features_in_ : int
        Columns of X, or the number of views.
    feature_names_in_ : ndarray of str
        Their names, if X was a dataframe, or the names of the views.
    coef_ : ndarray of shape (n_columns,) or (n_outputs, n_columns), or dict of these by view
        Coefficients of the columns in their own units, only if all kernels with a weight are
        linear in the columns: outputs are ``X @ coef_.T`` and a constant. Of several views, those
        whose kernels are all linear. Classifiers have two dimensions, as in scikit-learn, and so
        has the regression of several targets.
    groups_ : ndarray of int, (n_samples,)
        Numbers of the groups of the rows, if `groups` were passed to ``fit``. Like `dual_coef_` it
        has no entries for rows of weight zero; with an approximation, those of `left_out_rows_`.
    """

    kernels: Any = field(default=None, kw_only=False)
    normalize: str | None = "multiplicative"
    missing: str = "error"
    tol: float = 1e-4
    verbose: bool = False

    #: Computes the outputs of new samples; the only private attribute that a fit sets, but for
    #: the `_stream` of ``partial_fit``, the sums over the rows so far.
    _predictor: ClassVar[Any]
    _stream: ClassVar[Any]
    #: Points among which a fit chooses; None without cross-validation.
    _grid: ClassVar[Any] = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "normalize": [StrOptions(set(NORMALIZATIONS)), None],
        "missing": [StrOptions({"error", *COMPLETIONS})],
        "tol": POSITIVE,
        "verbose": ["verbose"],
    }

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    @property
    def _learns_relevance(self) -> bool:
        """Whether default kernels include RelevanceRBF, which every split learns anew."""
        return False

    def _as_targets(self, y: ArrayLike | None) -> Any:
        """Return y in a form that can be matched with the rows of X by label."""
        return y

    def _keep(self, task: FitTask, *attributes: Mapping[str, Any], **more: Any) -> Self:
        """Replace all fitted attributes, at once, and end the task of the fit."""
        state = {
            name: value
            for name, value in vars(self).items()
            if not name.endswith("_") and name not in ("_predictor", "_stream")
        }
        for found in (*attributes, more):
            state.update(found)
        # One assignment, so that an interruption cannot leave half of it.
        self.__dict__ = state
        task.end()
        return self

    def _outputs(self, X: Table, coefficients: np.ndarray | None = None) -> np.ndarray:
        """``Σ_i coefficient_i k(x, x_i)`` for every row x of X, (n_rows, n_outputs).

        The coefficients are those of the fit or, for other functions of X, the ones given.
        """
        check_is_fitted(self)
        outputs: np.ndarray = self._predictor.outputs(self, X, coefficients)
        return outputs

    @property
    def coef_(self) -> Any:
        check_is_fitted(self)
        if "coef_" in vars(self):
            return vars(self)["coef_"]  # of explicit features
        name = type(self).__name__
        if not hasattr(self._predictor, "column_coefficients"):
            raise AttributeError(f"{name} has no coef_: it is not linear in the columns.")
        try:
            by_view = self._predictor.column_coefficients()
        except AttributeError as error:
            raise AttributeError(f"This {name} has no coef_: {error}") from None
        of_columns = hasattr(self, "multi_target") and np.ndim(self.dual_coef_) == 2
        if self._predictor.n_outputs == 1 and not is_classifier(self) and not of_columns:
            by_view = {view: values[0] for view, values in by_view.items()}
        return by_view.get("", by_view)

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and below it what was learnt."""
        return str(super()._html_repr()) + learnt_html(self)

    # -- parameters ------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    # Lists of pairs and dicts of named kernels have the nested parameters of a KernelUnion.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; those of a kernel are ``kernels__<name>__<parameter>``."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep and have_names(self.kernels):
            nested = parameters(self.kernels)
            params.update({f"kernels__{name}": value for name, value in nested.items()})
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of a kernel are ``kernels__<name>__<parameter>``."""
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        prefix = "kernels__"
        nested = {name: params.pop(name) for name in list(params) if name.startswith(prefix)}
        if nested and (self.kernels is None or isinstance(self.kernels, str)):
            raise ValueError(
                f"{next(iter(nested))} cannot be set while kernels={self.kernels!r}, which has no "
                "parameters: pass kernels that have some, such as "
                f'{type(self).__name__}([("rbf", RBF()), ("linear", Linear())]), whose parameters '
                "are kernels__rbf__gamma and so on."
            )
        if nested and isinstance(self.kernels, list | tuple | Mapping):
            inner = {name.removeprefix(prefix): value for name, value in nested.items()}
            self.kernels, nested = with_parameters(self.kernels, inner), {}
        names = list(inspect.signature(type(self)).parameters)
        for name in params:
            if name.partition("__")[0] not in names:
                raise ValueError(_unknown(type(self), name, names))
        return super().set_params(**params, **nested)

"""The base of all estimators: a parameter ``kernels``, callbacks, fitted attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._sklearn import Interval, StrOptions
from ..kernels.completion import COMPLETIONS
from ..kernels.given import have_names, parameters, with_parameters
from ..kernels.transforms import NORMALIZATIONS
from ._documentation import inherited
from ._inputs import matched_by_label
from ._notebook import learnt_html
from ._progress import FitTask

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
def estimator(cls: type[Class]) -> type[Class]:
    """Class decorator: annotated attributes are the parameters of an estimator.

    They become arguments of ``__init__``, as in a dataclass. Parameters that are declared in
    bases are inherited together with their constraints and their documentation.
    """
    cls = dataclass(kw_only=True, eq=False, repr=False)(cls)
    bases = [base for base in cls.__mro__ if base.__module__.startswith("manykernels.")]
    constraints: dict[str, Any] = {}
    for base in reversed(bases):
        constraints.update(vars(base).get("_parameter_constraints", {}))
    parameters = _in_order(cls)
    cls._parameter_constraints = {  # type: ignore[attr-defined]
        name: allowed for name, allowed in constraints.items() if name in parameters
    }
    order = {"Parameters": parameters, "Attributes": [], "References": []}
    cls.__doc__ = inherited(cls.__doc__, (base.__doc__ for base in bases[1:]), order)
    given = inspect.signature(cls.__init__)
    listed = [given.parameters[name] for name in ("self", *parameters)]
    cls.__init__.__signature__ = given.replace(parameters=listed)  # type: ignore[attr-defined]
    return cls


def _in_order(cls: type) -> list[str]:
    """Names of the parameters as they are listed: those of the class itself before inherited."""
    names = [parameter.name for parameter in fields(cls)]  # type: ignore[arg-type]
    own = [name for name in inspect.get_annotations(cls) if name in names]
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
        are the numbers 0, 1, 2, … in order on one side and shuffled on the other. Without common
        labels, or with repeated ones, it is matched by position, and so are arrays.
    sample_weight : array-like of shape (n_samples,), optional
        Matched with the rows of X as y is. A sample of weight two counts as two, one of weight
        zero as none. Weights below the
        rounding error of their median count as zero; a weight so large that the others are lost
        beside it in rounding errors is refused.
    """

    with_teardown = with_callbacks(fit)

    @wraps(fit)
    def complete_fit(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        estimator._validate_params()
        before = dict(vars(estimator))
        try:
            return with_teardown(estimator, *matched_by_label(estimator, X, y, sample_weight))
        except BaseException:
            # One assignment, so that a second interruption cannot leave half of it.
            estimator.__dict__ = before
            raise

    order = {"Parameters": ["X", "y", "sample_weight"]}
    complete_fit.__doc__ = inherited(fit.__doc__, [fits.__doc__], order)
    return complete_fit  # type: ignore[return-value]


@estimator
class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators.

    A fit builds its results from parts (rows, kernels, learnt weights, rules) and hands them to
    :meth:`_keep` at its end. No fitted attribute is set before.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        The kernels to combine. None takes those of :func:`~manykernels.auto_kernels`, by what
        the table holds. With several views, kernels are used for each of them, and a dict has the
        kernels of each view: a kernel, a list of them, or None for the default ones. With
        "precomputed", X is a :class:`~manykernels.KernelStack`, an array (rows, cols, n_kernels),
        a dict or list of kernel matrices, or one kernel matrix.
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
    """

    kernels: Any = field(default=None, kw_only=False)
    normalize: str | None = "multiplicative"
    missing: str = "error"
    tol: float = 1e-4
    verbose: bool = False

    #: Computes the outputs of new samples; the only private attribute that a fit sets, but for
    #: the `_stream` of ``partial_fit``, what it has gathered so far.
    _expansion: ClassVar[Any]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "normalize": [StrOptions(set(NORMALIZATIONS)), None],
        "missing": [StrOptions({"error", *COMPLETIONS})],
        "tol": POSITIVE,
        "verbose": ["verbose"],
    }

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _keep(self, task: FitTask, *attributes: Mapping[str, Any], **more: Any) -> Self:
        """Replace all fitted attributes, at once, and end the task of the fit."""
        state = {
            name: value
            for name, value in vars(self).items()
            if not name.endswith("_") and name not in ("_expansion", "_stream")
        }
        for found in (*attributes, more):
            state.update(found)
        # One assignment, so that an interruption cannot leave half of it.
        self.__dict__ = state
        task.end()
        return self

    def _outputs(self, X: Any, coefficients: np.ndarray | None = None) -> np.ndarray:
        """``Σ_i coefficient_i k(x, x_i)`` for every row x of X, (n_rows, n_outputs).

        The coefficients are those of the fit or, for other functions of X, the ones given.
        """
        check_is_fitted(self)
        outputs: np.ndarray = self._expansion.outputs(self, X, coefficients)
        return outputs

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
        return super().set_params(**params, **nested)

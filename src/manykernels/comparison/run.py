"""Comparison of methods: :func:`~manykernels.compare`, and storage of its finished cells."""

from __future__ import annotations

import copyreg
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields
from functools import partial
from os import PathLike
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length

from ..estimators.cox import SurvivalEstimator
from ..estimators.inputs import groups_of, labels_of_rows, may_lack_views, unchecked_stack
from ..estimators.search import is_number
from ..estimators.training_rows import checked_groups, refuse_useless_groups
from ..inspection.study import refuse_split
from ..kernels import KernelStack, Views
from ..kernels.matching import matched_targets
from ..kernels.tables import Table, is_frame
from ..kernels.views import are_views, matched_views
from ..metrics import SCORERS
from ..metrics.comparison import Split, five_by_two_folds, repeated_folds
from ..survival import survival_array
from ..survival.targets import survival_table
from ..utils.files import replacing
from ..utils.folds import group_numbers, range_of, splits_of_rows
from ..utils.sklearn import warn_caller
from .baselines import baselines_for
from .result import FIVE_BY_TWO, RESAMPLED, Cell, Comparison, measured, name_of

# Default of cv: five folds, twice. With J splits, five folds detect differences of t_{J−1} times
# √(1/J + 1/4) standard deviations: 1.9 if run once, 1.3 twice, 1.2 three times, 1.0 in the limit.
_FOLDS, _REPEATS = 5, 2


#: Method and index of the split of a cell.
Place = tuple[str, int]
RandomState = int | np.random.RandomState | None
#: Estimators by name, or a list of them.
Methods = Mapping[str, BaseEstimator] | Sequence[BaseEstimator]


# -- methods ---------------------------------------------------------------------------------


def checked_methods(methods: Methods) -> dict[str, BaseEstimator]:
    """Return the estimators by name."""
    if isinstance(methods, Mapping):
        pairs = list(methods.items())
    elif isinstance(methods, Iterable) and not isinstance(methods, str):
        pairs = _named(list(methods))
    else:
        raise TypeError(
            "methods must be a dict of estimators by name, or a list of estimators; got "
            f'{type(methods).__name__}. Pass a single estimator as {{"name": estimator}}.'
        )
    if not pairs:
        raise ValueError("There are no methods to compare.")
    checked: dict[str, BaseEstimator] = {}
    for name, estimator in pairs:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"Names of methods must be nonempty strings, got {name!r}.")
        if name in checked:
            raise ValueError(f"Two methods are called {name!r}: their names must differ.")
        checked[name] = _checked_method(name, estimator)
    return checked


def _named(methods: list[Any]) -> list[tuple[Any, Any]]:
    """Return pairs (name, estimator), by default with the name of the class and a number."""
    kinds = [None if isinstance(method, tuple) else type(method).__name__ for method in methods]
    pairs = []
    for i, method in enumerate(methods):
        if isinstance(method, tuple):
            if len(method) != 2:
                raise TypeError(
                    f"A method must be an estimator or a pair (name, estimator), got {method!r}."
                )
            pairs.append(method)
        elif kinds.count(kinds[i]) > 1:
            pairs.append((f"{kinds[i]} {kinds[: i + 1].count(kinds[i])}", method))
        else:
            pairs.append((kinds[i], method))
    return pairs


def _checked_method(name: str, estimator: object) -> BaseEstimator:
    if isinstance(estimator, str) or not hasattr(estimator, "fit"):
        raise TypeError(f"Method {name!r} is a {type(estimator).__name__}, not an estimator.")
    try:
        copy = clone(estimator)
        get_tags(copy)
    except Exception as error:
        raise TypeError(
            f"Method {name!r} cannot be cloned for every split (sklearn.base.clone): {error}"
        ) from error
    return copy


def of_classes(methods: Mapping[str, BaseEstimator]) -> bool:
    """Return whether the methods are classifiers; raise if only some are."""
    kinds = {name: is_classifier(method) for name, method in methods.items()}
    if len(set(kinds.values())) > 1:
        first, second = (
            next(name for name in kinds if kinds[name] is kind) for kind in (True, False)
        )
        raise ValueError(
            f"{first!r} is a classifier and {second!r} is not: compare only methods of one kind."
        )
    return next(iter(kinds.values()))


def of_survival(methods: Mapping[str, BaseEstimator], y: ArrayLike) -> bool:
    """Return whether a method, or a step of it, is a survival model, or y has named fields."""
    if getattr(getattr(y, "dtype", None), "names", None):
        return True
    parts = [part for method in methods.values() for part in method.get_params().values()]
    return any(isinstance(part, SurvivalEstimator) for part in [*methods.values(), *parts])


# -- data ------------------------------------------------------------------------------------


def checked_data(
    methods: Mapping[str, BaseEstimator], X: Table, y: ArrayLike, groups: ArrayLike | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Validate X, such that all methods accept it and scikit-learn can split it, y and groups."""
    if y is None:
        raise ValueError("compare requires y, the targets.")
    if survival := of_survival(methods, y):
        y = survival_table(y)
    pairwise = {name: get_tags(method).input_tags.pairwise for name, method in methods.items()}
    may_lack = any(map(may_lack_views, methods.values()))
    if isinstance(X, Mapping) and all(pairwise.values()):
        X = unchecked_stack(X, gram=True)
    if isinstance(X, KernelStack) or np.ndim(X if isinstance(X, np.ndarray) else 0) == 3:
        for name, takes_kernels in pairwise.items():
            if not takes_kernels:
                raise ValueError(
                    f"X contains kernel matrices, which {name!r} does not accept: pass "
                    'kernels="precomputed" to it.'
                )
    elif are_views(X):
        X, y, _, groups = matched_views(X, y, None, groups, may_lack=may_lack)
    if not isinstance(X, Views):
        y, groups = matched_targets(labels_of_rows(X), y=y, groups=groups)
    targets = survival_array(y) if survival else np.asarray(y)
    if targets.ndim == 0:
        raise ValueError(f"y must have one entry per sample, got {y!r}.")
    check_consistent_length(X, targets)
    if groups is None:
        return X, targets, None
    labels = checked_groups(groups, len(targets))
    if of_classes(methods) and targets.ndim == 1:
        classes, codes = np.unique(targets, return_inverse=True)
        refuse_useless_groups(labels, codes, classes)
    else:
        refuse_useless_groups(labels)
    return X, targets, labels


# -- splits ----------------------------------------------------------------------------------


def drawn_splits(
    cv: Any,
    y: np.ndarray,
    groups: np.ndarray,
    given: np.ndarray | None,
    *,
    classes: bool,
    random_state: RandomState,
    reproducible: bool,
) -> list[Split]:
    """Return the splits of `cv`; a number of folds keeps groups together.

    Folds are stratified by classes, or by the events of survival targets. A splitter takes the
    groups that were `given`. If `reproducible`, raise if a second draw differs.
    """
    if y.dtype.names:
        y, classes = y["event"], True
    if isinstance(cv, str) and cv != FIVE_BY_TWO:
        raise ValueError(f'cv must be a number of folds, a splitter, splits or "5x2"; got {cv!r}.')
    options: dict[str, Any] = {"classes": classes, "random_state": random_state, "groups": groups}
    draw: Callable[[], list[Split]]
    if cv is None or is_number(cv):
        number, repeats = (_FOLDS, _REPEATS) if cv is None else (int(cv), 1)
        draw = partial(repeated_folds, number, repeats, y, **options)
    elif isinstance(cv, str):
        draw = partial(five_by_two_folds, y, **options)
    else:
        draw = partial(_drawn, cv, y, given, classes)
    splits = draw()
    if not splits:
        raise ValueError("cv has no splits.")
    if reproducible and fingerprint(splits) != fingerprint(draw()):
        raise ValueError(
            "cv draws different splits in every call, so finished cells could not be reused: "
            "give it a seed, such as random_state=0, or do not pass path."
        )
    return splits


def _drawn(cv: Any, y: np.ndarray, groups: np.ndarray | None, classes: bool) -> list[Split]:
    splits = splits_of_rows(cv, y, groups, classifier=classes)
    for k, (train, test) in enumerate(splits):
        refuse_split(k, train, test)
    return splits


# -- scoring ---------------------------------------------------------------------------------


def checked_scoring(scoring: Any, methods: Mapping[str, BaseEstimator], y: Any = None) -> Any:
    """Return scorers by name, or a function, as for ``cross_validate``.

    The default is accuracy, R² or, of survival models, the concordance index instead of
    ``estimator.score``, which may differ between methods, for example for a search with its own
    scoring.
    """
    if scoring is None:
        if of_survival(methods, y):
            scoring = "concordance_index"
        elif of_classes(methods):
            scoring = "accuracy"
        elif all(map(is_regressor, methods.values())):
            scoring = "r2"
        else:
            raise ValueError(
                "The methods are neither classifiers nor regressors, so there is no default: pass "
                "scoring."
            )
    if callable(scoring):
        return scoring
    if isinstance(scoring, str):
        scoring = [scoring]
    if not isinstance(scoring, Mapping):
        names = list(scoring)
        if not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"A list of scorings must contain names, got {names!r}; pass functions in a dict "
                "by name."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"scoring has a name twice: {', '.join(names)}.")
        scoring = {name: name for name in names}
    if not scoring:
        raise ValueError("There is no scoring to compare by.")
    first = next(iter(methods.values()))
    return {str(name): _scorer(scorer, first) for name, scorer in scoring.items()}


def _scorer(scoring: Any, method: BaseEstimator) -> Any:
    """Return the scorer with a name of scikit-learn's or of ours, or made of a function."""
    if not isinstance(scoring, str):
        return check_scoring(method, scoring)
    return SCORERS[scoring] if scoring in SCORERS else get_scorer(scoring)


# -- Comparison -----------------------------------------------------------------------------------


def compare(
    methods: Methods,
    X: Table,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    cv: Any = None,
    scoring: Any = None,
    baselines: bool = False,
    path: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    error_score: float | str = np.nan,
    random_state: RandomState = 0,
    verbose: bool = False,
) -> Comparison:
    """Compare methods on the same splits: scores, sparsity, times and paired tests.

    Parameters
    ----------
    methods : dict of str to estimator, or list of estimators or of pairs (name, estimator)
        Estimators of this package, or of scikit-learn if they accept X: for views, pipelines that
        begin with ``FunctionTransformer(Views.joined)``. They are cloned, not fitted.
    X, y : as for the ``fit`` of the methods
        A table, a dict of tables or :class:`~manykernels.Views`, or for methods with
        ``kernels="precomputed"`` a :class:`~manykernels.KernelStack`; classes, numbers, or events
        and times.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each. No split
        divides a group. Methods whose ``fit`` takes groups are given those of their training
        samples, and so is the last step of a pipeline, or a search by a splitter of groups.
    cv : int, splitter, iterable of splits, "5x2" or None, default=None
        Cross-validation: a number of folds, "5x2" for five replications of two folds, or as in
        scikit-learn. By default five folds, twice. Folds are random, stratified by classes or
        events, and keep groups together, or repeated rows if there are no groups.
    scoring : str, list of str, dict, callable or None, default=None
        Scores, of which larger is better, as in scikit-learn's ``cross_validate``, or names in
        :data:`manykernels.metrics.SCORERS`. By default accuracy, R² for numbers, or Harrell's
        concordance index for survival times.
    baselines : bool, default=False
        Whether to compare with methods of scikit-learn on all columns side by side, too:
        "constant" (the most frequent class, or the mean), "linear" (logistic or ridge regression,
        with a penalty chosen in five folds) and "boosting" (gradient boosted trees). Of kernels,
        sequences and very many columns, only with a constant; of survival times, with none.
    path : str or Path, optional
        Folder in which finished cells, each a method on a split, are stored. The same call reuses
        them and continues after any interruption.
    n_jobs : int, optional
        Number of cells that are computed in parallel, as in scikit-learn.
    error_score : NaN or "raise", default=NaN
        Whether the error of a method on a split is recorded in its cell, or raised.
    random_state : int, RandomState or None, default=0
        Seed of the default folds and of "5x2".
    verbose : bool, default=False
        Whether to print a line per cell.

    Returns
    -------
    comparison : Comparison
        ``print(comparison)`` prints it, ``comparison.plot()`` draws it, ``comparison.to_frame()``
        returns a table, ``comparison.tests()`` tests all pairs.

    Notes
    -----
    *Table.* ± is the standard deviation over splits. *kernels*: the number of kernels with more
    than 1e-4 of the weights, in any weight vector, averaged over splits. *support vectors*: their
    share of the training samples. *gap*: the largest relative duality gap of a split. These
    columns are blank for methods that have no weights, support vectors or certificate. Of a
    search, such as GridSearchCV, the best estimator is described, of a pipeline the last step.
    Times are mean wall-clock times; that of predictions includes their scoring.

    *Tests.* Scores of different splits are dependent, since training sets overlap, so an ordinary
    t test finds too many differences. With ``cv="5x2"`` the combined F test of Alpaydın (1999) is
    used, else the corrected resampled t test of Nadeau and Bengio (2003). In the table each
    method is tested against the best, or against ``comparison.versus(name)``, with Holm's
    correction for the number of methods. Tests against the method with the best score find
    slightly too many differences; tests against a reference chosen in advance do not.

    *Failures.* A method that fails on a split is shown with the number of its failures, causes a
    warning, and is not the best unless all fail. Its mean is that of the other splits, and it is
    tested on these splits (by the F test not at all). If every cell fails, an error is raised.

    *Interruption.* After Ctrl-C, a comparison of the finished cells is returned, with a warning.
    With `path` the same call completes it; without, the rest is lost. Cells are computed split by
    split, so that the finished cells can be compared.

    *Reuse of cells.* A cell is identified by the parameters of the method, the data and groups,
    the rows of the split, the scoring and the versions of manykernels and scikit-learn, not by the
    name of the method. If any of these differs, the cell is computed and stored beside the others,
    which are not changed. Functions among the parameters are identified by their code; your own
    classes by their names, so that after a change of their code another folder is needed. Failed
    cells are not stored, but tried again. Files are JSON; a damaged file causes a warning and is
    computed again.

    References
    ----------
    E. Alpaydın. Combined 5 × 2 cv F test for comparing supervised classification learning
    algorithms. Neural Computation 11, 1999.
    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.

    Examples
    --------
    Two complementary views, together and one alone:

    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from manykernels import MKFDA, MKSVC, compare
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 120)
    >>> views = {name: y[:, None] + 0.8 * rng.standard_normal((120, 2)) for name in "ab"}
    >>> methods = {
    ...     "both": MKFDA(RBF()),
    ...     "machine": MKSVC(RBF()),
    ...     "a alone": MKFDA([("a", RBF().of("a"))]),
    ...     "guess": DummyClassifier(),
    ... }
    >>> comparison = compare(methods, views, y)
    >>> for row in comparison.rows():
    ...     print(f"{row['method']:8s} {row['accuracy']:.2f}  p = {row['p_value']:.3f}")
    both     0.81  p = 0.443
    machine  0.84  p = nan
    a alone  0.75  p = 0.244
    guess    0.55  p = 0.000
    >>> comparison.best
    'machine'
    """
    is_nan = isinstance(error_score, float) and np.isnan(error_score)
    if not is_nan and not (isinstance(error_score, str) and error_score == "raise"):
        raise ValueError(f'error_score must be NaN or "raise", got {error_score!r}.')
    estimators = checked_methods(methods)
    classes = of_classes(estimators)
    scorers = checked_scoring(scoring, estimators, y)
    X, y, given = checked_data(estimators, X, y, groups)
    if baselines and not y.dtype.names:
        more = baselines_for(X, y, classes=classes)
        estimators |= {name: method for name, method in more.items() if name not in estimators}
    numbers = None if given is None else group_numbers(given)
    splits = drawn_splits(
        cv,
        y,
        groups_of(X) if numbers is None else numbers,
        given,
        classes=classes,
        random_state=random_state,
        reproducible=path is not None,
    )
    # Split by split, so that cells finished before an interruption can be compared.
    places = [(name, k) for k in range(len(splits)) for name in estimators]
    files: dict[Place, Path] = {}
    if path:
        folder, keys = cell_folder(path), _keys(estimators, X, y, given, splits, scorers)
        files = {place: folder / f"{keys[place]}.json" for place in places}
    stored = {place: read_cell(file) for place, file in files.items()}
    cells = {place: cell for place, cell in stored.items() if cell is not None}
    if verbose and cells:
        print(f"[compare] {len(cells)} of {len(places)} cells were finished before")
    raising, interrupted = error_score == "raise", False
    try:
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(_computed)(
                (name, k),
                estimators[name],
                X,
                y,
                given,
                splits[k],
                scorers,
                raising,
                files.get((name, k)),
            )
            for name, k in places
            if (name, k) not in cells
        )
        with closing(results):
            for place, cell in results:
                cells[place] = cell
                if verbose:
                    print(_line(place, cell, len(cells), len(places)))
    except KeyboardInterrupt:
        if not cells:
            raise
        interrupted = True
    scorings = _names_of(scorers, cells)
    result = Comparison(
        names=list(estimators),
        scorings=scorings,
        splits=splits,
        design=FIVE_BY_TWO if isinstance(cv, str) else RESAMPLED,
        cells={place: cells[place] for place in places if place in cells},
        ranges={
            name: range_of(scorers if callable(scorers) else scorers[name]) for name in scorings
        },
        groups=numbers,
    )
    if interrupted:
        _warn_of_interruption(len(cells), len(places), path)
    _warn_of_failures(result)
    return result


def _keys(
    methods: dict[str, BaseEstimator],
    X: Table,
    y: np.ndarray,
    groups: np.ndarray | None,
    splits: list[Split],
    scoring: Any,
) -> dict[Place, str]:
    """Return the fingerprints of all cells."""
    of_methods = {}
    for name, estimator in methods.items():
        try:
            of_methods[name] = fingerprint(estimator)
        except TypeError as error:
            raise TypeError(
                f"Results of method {name!r} cannot be stored in path: {error} Do not pass "
                "path, or change this parameter of the method."
            ) from error
    of_data = fingerprint(X, y) if groups is None else fingerprint(X, y, groups)
    of_scoring = fingerprint(scoring)
    return {
        (name, k): key_of(of_methods[name], of_data, split, of_scoring)
        for k, split in enumerate(splits)
        for name in methods
    }


def _computed(
    place: Place,
    estimator: BaseEstimator,
    X: Table,
    y: np.ndarray,
    groups: np.ndarray | None,
    split: Split,
    scoring: Any,
    raising: bool,
    file: Path | None,
) -> tuple[Place, Cell]:
    """Compute a cell, and write it to its file, if there is one, unless it failed."""
    name, k = place
    try:
        cell = measured(estimator, X, y, split, scoring, strict=raising, groups=groups)
    except Exception as error:
        if raising:
            error.add_note(f"Raised by method {name!r} on split {k} of compare.")
            raise
        return place, Cell.failed(error)
    if file is not None:
        write_cell(file, cell, method=name, split=k)
    return place, cell


# -- checks and messages ---------------------------------------------------------------------


def _names_of(scorers: Any, cells: dict[Place, Cell]) -> list[str]:
    """Return the names of the scores; those of a function are the ones that it returned."""
    if not callable(scorers):
        return list(scorers)
    names = dict.fromkeys(name for cell in cells.values() for name in cell.scores)
    return list(names) or [name_of(scorers)]


def _line(place: Place, cell: Cell, n_done: int, n_all: int) -> str:
    scores = ", ".join(f"{name} {score:.4g}" for name, score in cell.scores.items())
    outcome = f"{scores} ({cell.fit_time:.2g} s)" if cell.failure is None else cell.failure
    return f"[compare] {n_done}/{n_all}  {place[0]}, split {place[1]}: {outcome}"


def _warn_of_interruption(n_done: int, n_all: int, path: object) -> None:
    rest = (
        "the same call continues from there."
        if path
        else "with path=..., the same call could have continued from there."
    )
    warn_caller(f"compare was interrupted after {n_done} of {n_all} cells; {rest}", RuntimeWarning)


def _warn_of_failures(result: Comparison) -> None:
    """Warn of methods that failed; raise if all failed."""
    failures, n_cells = result.failures, len(result.cells)
    if not failures:
        return
    listed = "; ".join(
        f"{name!r} on {len(splits)} of {len(result.splits)} splits ({message})"
        for name, splits, message in result.failures_by_method()
    )
    if all(cell.failure is not None for cell in result.cells.values()):
        raise ValueError(f"All {n_cells} cells of compare failed: {listed}.")
    warn_caller(
        f"{len(failures)} of {n_cells} cells of compare failed: {listed}.", FitFailedWarning
    )


# -- Fingerprints of methods and data -------------------------------------------------------------
#
# They depend on contents only, and are the same in every process. ``pickle`` does not guarantee
# this: its output depends on shared objects and on the order of sets. Therefore the contents are
# traversed, and every value is hashed with its type and its length, so that different contents
# have different fingerprints. Objects of other types are decomposed as by pickle. A function is
# identified by its code, its defaults and its closure; a class by its name.


def fingerprint(*contents: object) -> str:
    """Return the hexadecimal digest of values of any type.

    Raises
    ------
    TypeError
        For objects without contents that can be hashed, such as an open file.
    """
    walk = _Walk()
    walk.add(contents)
    return walk.digest.hexdigest()


class _Walk:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        # Objects being traversed, to stop at objects that contain themselves.
        self._inside: set[int] = set()

    def write(self, kind: str, content: Any = b"") -> None:
        content = memoryview(content)
        self.digest.update(f"{kind}:{content.nbytes}:".encode())
        self.digest.update(content)

    def add(self, value: Any) -> None:
        if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
            value = value.item()
        if value is None or isinstance(value, bool | int | float | complex):
            self.write(type(value).__name__, repr(value).encode())
        elif isinstance(value, str):
            self.write("str", value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes | bytearray):
            self.write("bytes", value)
        elif isinstance(value, np.ndarray):
            self._add_array(value)
        elif id(value) in self._inside:
            self.write("again")
        else:
            self._inside.add(id(value))
            self._add_object(value)
            self._inside.remove(id(value))

    def _add_all(self, kind: str, *values: Any) -> None:
        self.write(kind, str(len(values)).encode())
        for value in values:
            self.add(value)

    def _add_array(self, array: np.ndarray) -> None:
        # The buffer of objects and of variable-length strings contains pointers only.
        if array.dtype.hasobject or array.dtype.kind == "T":
            self._add_all("array of objects", array.shape, *array.ravel().tolist())
        else:
            self.write("array", f"{array.dtype.str} {array.dtype} {array.shape}".encode())
            self.write("entries", np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def _add_object(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            self._add_all(type(value).__name__, *value)
        elif isinstance(value, KernelStack):
            samples = value.row_samples, value.col_samples
            self._add_all("stack", value.names, value.shape, value.views, value.features, samples)
            for name in value.names:
                self.add(value.kernel(name))
        elif isinstance(value, Views):
            self._add_all("views", value.labels, value.present, *value.items())
        elif sparse.issparse(value):
            table = sparse.csr_array(value)
            table.sum_duplicates()
            self._add_all("sparse", table.shape, table.indptr, table.indices, table.data)
        elif is_frame(value):
            index = np.asarray(value.index) if hasattr(value, "index") else None
            columns, kinds = list(value.columns), [str(kind) for kind in value.dtypes]
            self._add_all("frame", columns, kinds, index, value.to_numpy())
        elif isinstance(value, Mapping):
            self._add_all("mapping", *value.items())
        elif isinstance(value, set | frozenset):
            self._add_all("set", *sorted(map(fingerprint, value)))
        elif isinstance(value, type | BuiltinFunctionType):
            self._add_all("name", value.__module__, value.__qualname__)
        elif isinstance(value, FunctionType | MethodType | CodeType | partial):
            self._add_callable(value)
        elif hasattr(value, "get_params"):
            self._add_all("estimator", type(value), sorted(value.get_params(deep=False).items()))
        else:
            self._add_all("object", type(value), *_reduced(value))

    def _add_callable(self, value: Any) -> None:
        if isinstance(value, CodeType):
            self._add_all(
                "code", value.co_code, value.co_consts, value.co_names, value.co_varnames
            )
        elif isinstance(value, MethodType):
            self._add_all("method", value.__func__, value.__self__)
        elif isinstance(value, partial):
            self._add_all("partial", value.func, value.args, value.keywords)
        else:
            closed = [cell.cell_contents for cell in value.__closure__ or ()]
            self._add_all("function", value.__code__, value.__defaults__, value.__kwdefaults__)
            self._add_all("closure", *closed)


def _reduced(value: Any) -> list[Any]:
    """Decompose an object as by pickle: constructor, state and items."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        parts: Any = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except Exception as error:
        raise TypeError(
            f"A {type(value).__name__} has no fingerprint, since it cannot be pickled: {error}."
        ) from error
    if isinstance(parts, str):
        return [parts]
    constructor, state = parts[:2], parts[2] if len(parts) > 2 else None
    # The order of attributes does not matter, that of items does.
    state = sorted(state.items()) if isinstance(state, dict) else state
    return [constructor, state, *([] if items is None else list(items) for items in parts[3:])]


# -- Folder of finished cells: a JSON file for each, named by its fingerprint ---------------------


# Version of the files. It is part of the fingerprint, so that files of other versions are ignored.
_FORMAT = 1


def cell_folder(path: str | PathLike[str]) -> Path:
    """Return the folder of finished cells; create it if it does not exist."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"path must be a folder for finished cells; {str(path)!r} cannot be created or "
            f"used: {error}."
        ) from error
    return folder.resolve()


def key_of(method: str, data: str, split: Split, scoring: str) -> str:
    """Return the fingerprint of a cell, from those of its parts and the versions."""
    package = sys.modules[__name__.partition(".")[0]]
    versions = package.__version__, sklearn.__version__
    return fingerprint(_FORMAT, versions, method, data, split, scoring)


def read_cell(file: Path) -> Cell | None:
    """Return a finished cell, or None; warn if its file cannot be read."""
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["key"] != file.stem:
            raise ValueError("it belongs to another cell")
        return _converted(content["cell"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        warn_caller(
            f"{file} is damaged ({type(error).__name__}: {error}); the cell is computed again.",
            RuntimeWarning,
        )
        return None


def write_cell(file: Path, cell: Cell, **remarks: object) -> None:
    """Write a finished cell, with remarks for readers of the file."""
    content = {**remarks, "key": file.stem, "cell": _plain(asdict(cell))}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()
    with replacing(file, len(text)) as stream:
        stream.write(text)


def _plain(value: object) -> object:
    """Replace NaN and infinite numbers, which JSON lacks, by their names."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _converted(content: dict[str, Any]) -> Cell:
    """Return a cell, with all fields converted to their types."""
    if sorted(content) != sorted(entry.name for entry in fields(Cell)):
        raise ValueError(f"it has the fields {', '.join(content)}")
    if not content["scores"] or content["failure"] is not None:
        raise ValueError("it has no scores")
    optional = {"n_kernels": int, "n_used": int, "n_support": int, "rel_gap": float}
    return Cell(
        scores={str(name): float(score) for name, score in content["scores"].items()},
        unscored={str(name): str(reason) for name, reason in content["unscored"].items()},
        fit_time=float(content["fit_time"]),
        predict_time=float(content["predict_time"]),
        converged=content["converged"],
        **{
            name: None if content[name] is None else convert(content[name])
            for name, convert in optional.items()
        },
    )

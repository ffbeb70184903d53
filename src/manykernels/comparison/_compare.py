"""Methods side by side, on the same splits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.utils.parallel import Parallel, delayed

from .._scoring import range_of
from .._warnings import warn_caller
from ..estimators._inputs import groups_of
from ..metrics.comparison import Split
from .cells import Cell, measured, name_of
from .fingerprint import fingerprint
from .inputs import Design, checked_data, checked_methods, checked_scoring, of_classes
from .keeping import CellFolder, key_of
from .result import Comparison

Place = tuple[str, int]


def compare(
    methods: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    path: Any = None,
    n_jobs: int | None = None,
    error_score: Any = np.nan,
    random_state: Any = 0,
    verbose: bool = False,
) -> Comparison:
    """Compare methods on the same splits: scores, sparsity, times, and whether they differ.

    Parameters
    ----------
    methods : dict of str to estimator, or list of estimators or of pairs (name, estimator)
        Ours, or any of scikit-learn that take the same X: for views, pipelines that begin with
        ``FunctionTransformer(Views.joined)``. They are copied, not fitted.
    X, y : as for the ``fit`` of the methods
        A table, a dict of tables or :class:`~manykernels.Views`, or for methods with
        ``kernels="precomputed"`` a :class:`~manykernels.KernelStack`; classes or numbers.
    cv : int, splitter, iterable of splits, "5x2" or None, default=None
        How samples are held out: a number of folds, "5x2" for five replications of two folds, or
        as in scikit-learn. By default five folds, twice. Folds are drawn at random, stratified for
        classifiers, and rows that repeat others are in the same one.
    scoring : str, list of str, dict, callable or None, default=None
        What larger is better of, as in scikit-learn's ``cross_validate``. By default accuracy, or
        R² for numbers.
    path : str or Path, optional
        A folder where every finished cell, a method on a split, is kept. The same call finds them
        again and goes on where it was interrupted, however it was.
    n_jobs : int, optional
        How many cells are computed at once, as in scikit-learn.
    error_score : NaN or "raise", default=NaN
        What becomes of a method that raises on a split: the cell is kept as failed, with its
        message, or the error is raised.
    random_state : int, RandomState or None, default=0
        Draws the folds by default and those of "5x2".
    verbose : bool, default=False
        Print a line per cell.

    Returns
    -------
    comparison : Comparison
        ``print(comparison)`` shows it, ``comparison.plot()`` draws it, ``comparison.to_frame()``
        is a table, ``comparison.tests()`` are the tests of all pairs.

    Notes
    -----
    *Table.* ± is the standard deviation over splits. *kernels*: how many have more than 1e-4 of
    the weights, in the mean over splits; of several weight vectors, those that any uses. *support
    vectors*: their share of the training samples. *gap*: the largest relative duality gap of a
    split. They are blank for methods that have no weights, support vectors or certificate. A
    search, such as GridSearchCV, is looked at behind, and a pipeline at its end. Times are means
    on the clock; that of predictions includes their scoring.

    *Tests.* Scores of different splits depend on each other, since training sets overlap, and
    an ordinary t test finds differences where there are none. With ``cv="5x2"`` the combined F
    test of Alpaydın (1999) is used, else the corrected resampled t test of Nadeau and Bengio
    (2003). In the table each method is tested against the best, or against another one,
    ``comparison.versus(name)``, with Holm's correction for the number of methods. A test against
    the method that happened to be best finds a little too many differences; for one that was
    named before, it does not.

    *Failures.* A method that fails on a split is shown with the number of its failures, is told of
    by a warning, and is not the best unless all fail. Its mean is that of the other splits, and it
    is tested on the splits that are left (by the F test not at all). If every cell fails, the
    first error is raised.

    *Interruption.* After Ctrl-C, a comparison of what is finished is returned, with a warning.
    With `path` the same call completes it; without, the rest is lost. Cells are computed split by
    split, so that what is finished can be compared.

    *What is found again.* A cell is known by the parameters of the method, the data, the rows of
    the split, the scoring and the versions of manykernels and scikit-learn, not by the name of
    the method. If any of these differs, the cell is computed and kept beside the others, which
    are left alone. Functions among the parameters are known by their code; classes of your own
    by their names, so that after a change of their code another folder is needed. Failed cells
    are not kept: they are tried again. Files are JSON; one that is damaged is told of by a
    warning and computed again.

    References
    ----------
    E. Alpaydın. Combined 5 × 2 cv F test for comparing supervised classification learning
    algorithms. Neural Computation 11, 1999.
    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.

    Examples
    --------
    Two views that complement each other, both of them or one alone:

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
    _check_options(error_score)
    estimators = checked_methods(methods)
    classes = of_classes(estimators)
    scorers = checked_scoring(scoring, estimators)
    X, y = checked_data(estimators, X, y)
    options = {"classes": classes, "random_state": random_state, "again": path is not None}
    design = Design.of(cv, y, groups_of(X), **options)
    table = _Table(estimators, X, y, design.splits, scorers, CellFolder.at(path) if path else None)
    cells: dict[Place, Cell] = table.found()
    places, n_found = table.places, len(cells)
    if verbose and n_found:
        print(f"[compare] {n_found} of {len(places)} cells were finished before")
    interrupted = False
    try:
        for place, cell in table.computed(
            [place for place in places if place not in cells], n_jobs, error_score == "raise"
        ):
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
        splits=design.splits,
        design=design.kind,
        cells={place: cells[place] for place in places if place in cells},
        ranges={
            name: range_of(scorers if callable(scorers) else scorers[name]) for name in scorings
        },
    )
    if interrupted:
        _warn_of_interruption(len(cells), len(places), path)
    _tell_failures(result)
    return result


@dataclass(frozen=True)
class _Table:
    """All cells of a comparison: methods and splits, and what they are computed from."""

    methods: dict[str, Any]
    X: Any
    y: np.ndarray
    splits: list[Split]
    scoring: Any
    folder: CellFolder | None

    @property
    def places(self) -> list[Place]:
        """All cells, split by split."""
        return [(name, k) for k in range(len(self.splits)) for name in self.methods]

    @cached_property
    def keys(self) -> dict[Place, str]:
        """Fingerprints of all cells; none without a folder."""
        if self.folder is None:
            return {}
        of_methods = {}
        for name, estimator in self.methods.items():
            try:
                of_methods[name] = fingerprint(estimator)
            except TypeError as error:
                raise TypeError(
                    f"Method {name!r} cannot be kept under path: {error} Leave out path, or "
                    "change this parameter."
                ) from error
        data, scoring = fingerprint(self.X, self.y), fingerprint(self.scoring)
        return {
            (name, k): key_of(of_methods[name], data, self.splits[k], scoring)
            for name, k in self.places
        }

    def found(self) -> dict[Place, Cell]:
        """Cells that were finished before."""
        folder = self.folder
        known = {place: folder.find(key) for place, key in self.keys.items() if folder}
        return {place: cell for place, cell in known.items() if cell is not None}

    def computed(
        self, places: list[Place], n_jobs: int | None, raising: bool
    ) -> Iterator[tuple[Place, Cell]]:
        """The cells at some places, each as soon as it is finished."""
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        results = parallel(
            delayed(_computed)(
                place,
                self.methods[place[0]],
                self.X,
                self.y,
                self.splits[place[1]],
                self.scoring,
                raising,
                self.folder,
                self.keys.get(place),
            )
            for place in places
        )
        with closing(results):
            yield from results


def _computed(
    place: Place,
    estimator: Any,
    X: Any,
    y: np.ndarray,
    split: Split,
    scoring: Any,
    raising: bool,
    folder: CellFolder | None,
    key: str | None,
) -> tuple[Place, Cell]:
    """One cell, kept if there is a folder and it did not fail."""
    name, k = place
    try:
        cell = measured(estimator, X, y, split, scoring, strict=raising)
    except Exception as error:
        if raising:
            error.add_note(f"Raised by method {name!r} on split {k} of compare.")
            raise
        return place, Cell.failed(error)
    if folder is not None and key is not None:
        folder.keep(key, cell, method=name, split=k)
    return place, cell


# -- what is passed, and what is told --------------------------------------------------------


def _check_options(error_score: Any) -> None:
    is_nan = isinstance(error_score, float) and np.isnan(error_score)
    if not is_nan and not (isinstance(error_score, str) and error_score == "raise"):
        raise ValueError(
            f'error_score must be NaN or "raise", got {error_score!r}: a failure has no score.'
        )


def _names_of(scorers: Any, cells: dict[Place, Cell]) -> list[str]:
    """Names of the scores; those that a function returns are known once it has returned."""
    if not callable(scorers):
        return list(scorers)
    found = dict.fromkeys(name for cell in cells.values() for name in cell.scores)
    return list(found) or [name_of(scorers)]


def _line(place: Place, cell: Cell, n_done: int, n_all: int) -> str:
    said = ", ".join(f"{name} {score:.4g}" for name, score in cell.scores.items())
    said = f"{said} ({cell.fit_time:.2g} s)" if cell.failure is None else cell.failure
    return f"[compare] {n_done}/{n_all}  {place[0]}, split {place[1]}: {said}"


def _warn_of_interruption(n_done: int, n_all: int, path: Any) -> None:
    rest = (
        "the same call goes on from there."
        if path
        else "with path=..., the same call could have gone on from there."
    )
    warn_caller(f"compare was interrupted after {n_done} of {n_all} cells; {rest}", RuntimeWarning)


def _tell_failures(result: Comparison) -> None:
    """Warn of methods that failed; raise if nothing else is there."""
    failures, n_cells = result.failures, len(result.cells)
    if not failures:
        return
    told = "; ".join(
        f"{name!r} on {len(splits)} of {len(result.splits)} splits ({message})"
        for name, splits, message in result.failures_by_method()
    )
    if all(cell.failure is not None for cell in result.cells.values()):
        raise ValueError(f"All {n_cells} cells of compare failed: {told}.")
    warn_caller(f"{len(failures)} of {n_cells} cells of compare failed: {told}.", FitFailedWarning)

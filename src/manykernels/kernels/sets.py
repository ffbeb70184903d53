"""Kernels of sets of columns, such as gene sets, and the reader of GMT files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from ..utils.files import text_lines
from ..utils.sklearn import warn_caller
from .adapters import as_kernel
from .base import Kernel
from .composition import names_its_views
from .standard import Linear
from .tables import Table, as_view, is_frame, naming, refuse_repeated_names
from .union import KernelUnion
from .views import are_views, as_views, holds_modalities

# Name of the kernel of the columns in no set.
_REST = "rest"
# Number of names, or of sets, that a message lists as examples.
_SHOWN = 3
# Version at the end of an identifier, as in ENSG00000141510.12.
_VERSION = re.compile(r"\.\d+$")


def read_gmt(path: str | Path) -> dict[str, list[str]]:
    """Read the sets of a GMT file, plain or compressed by gzip.

    A line is a set: its name, a description, and the names of its members, separated by tabs, as
    in the files of MSigDB. Descriptions are dropped, and so are empty lines and repeated members.

    Parameters
    ----------
    path : str or path
        File to read.

    Returns
    -------
    sets : dict of str to list of str
        Members of each set, in the order of the file. See
        :func:`~manykernels.kernels_of_sets`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from manykernels.datasets import read_gmt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sets.gmt"
    ...     _ = path.write_text("REPAIR\\tDNA repair\\tBRCA1\\tATM\\nDEATH\\t\\tBAX\\tTP53\\n")
    ...     read_gmt(path)
    {'REPAIR': ['BRCA1', 'ATM'], 'DEATH': ['BAX', 'TP53']}
    """
    sets: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    for number, line in text_lines(path):
        if not line.strip():
            continue
        name, *fields = (field.strip() for field in line.split("\t"))
        place = f"{path}, line {number}"
        if not fields:
            raise ValueError(
                f"{place}: a set must be a name, a description and members, separated by tabs; "
                f"got {line.strip()[:40]!r} without a tab."
            )
        if not name:
            raise ValueError(f"{place}: the set has no name: the line begins with a tab.")
        members = list(dict.fromkeys(filter(None, fields[1:])))
        if not members:
            raise ValueError(
                f"{place}: the set {name!r} is empty: there are no members after its description."
            )
        if name in sets:
            raise ValueError(
                f"{place}: the set of line {lines[name]} has the same name, {name!r}; names must "
                "differ."
            )
        sets[name], lines[name] = members, number
    if not sets:
        raise ValueError(f"{path} is empty: it has no sets.")
    return sets


def kernels_of_sets(
    X: object,
    sets: Mapping[str, Iterable[Any]] | str | Path,
    kernel: object = None,
    *,
    view: str | None = None,
    rest: bool = False,
    min_columns: int = 1,
    max_columns: int | None = None,
) -> KernelUnion:
    """Return a kernel for each of several sets of columns, such as gene sets or pathways.

    Sets may overlap. Learnt weights of the kernels then select sets: with linear kernels and
    ``p=1`` this is a group lasso of the sets.

    Parameters
    ----------
    X : dataframe, AnnData, MuData, dict of tables, Views or array
        Training rows, of which only the names of the columns are read: those of data frames, and
        ``var_names`` of AnnData. Columns of an array have no names; its sets have positions.
    sets : dict of str to list, or path
        Names of the columns of each set, or a GMT file (see
        :func:`~manykernels.datasets.read_gmt`).
    kernel : kernel, str or callable, optional
        Kernel of the columns of a set. None means a linear kernel of standardised columns,
        ``Linear().after(StandardScaler())``.
    view : str, optional
        With several tables: the view that the sets belong to. The default is the only view, and
        "X" of AnnData.
    rest : bool, default=False
        Whether to add a kernel of the columns that are in none of the other kernels, named
        "rest".
    min_columns, max_columns : int, default=1 and None
        Sets with fewer or more columns in X are left out.

    Returns
    -------
    union : KernelUnion
        The kernels, not fitted, named after the sets.

    Warns
    -----
    UserWarning
        If names in the sets match no column, or sets are left out: how many, and examples. An
        error is raised if no name matches.

    See Also
    --------
    manykernels.datasets.read_gmt : Read a GMT file, to choose some of its sets.
    manykernels.view_importance : Importance of each set, or of groups of sets.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from manykernels import MKFDA, kernels_of_sets
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.standard_normal((80, 5)), columns=["A", "B", "C", "D", "E"])
    >>> y = X["A"] + X["B"] > 0
    >>> sets = {"repair": ["A", "B", "C"], "growth": ["C", "D"]}
    >>> kernels = kernels_of_sets(X, sets, rest=True)
    >>> dict(kernels.kernels)["growth"]
    After(columns=['C', 'D'], kernel=Linear(), transformer=StandardScaler())
    >>> model = MKFDA(kernels, p=1).fit(X, y)
    >>> dict(zip(model.kernel_names_, model.weights_.round(2).tolist()))
    {'repair': 0.85, 'growth': 0.08, 'rest': 0.07}
    """
    members = _checked_sets(sets)
    least, most = _checked_sizes(min_columns, max_columns)
    columns = _columns_of(X, view)
    base = _checked_kernel(kernel, columns.is_sparse)
    place_of = {name: place for place, name in enumerate(columns.names)}
    matched = {
        name: sorted({place_of[member] for member in listed if member in place_of})
        for name, listed in members.items()
    }
    if not any(matched.values()):
        raise ValueError(_nothing_matches(members, columns))
    used = {name: places for name, places in matched.items() if least <= len(places) <= most}
    if not used:
        raise ValueError(
            f"No set is left: {_left_out(matched, least, most)}. Choose other bounds min_columns "
            "and max_columns."
        )
    if messages := [
        *_unmatched(members, place_of, columns),
        *_about_left_out(matched, least, most),
    ]:
        warn_caller(" ".join(messages), UserWarning)
    if rest:
        if _REST in used:
            raise ValueError(f"A set is called {_REST!r}, as the kernel of rest=True: rename it.")
        in_sets = {place for places in used.values() for place in places}
        if others := [place for place in range(len(columns.names)) if place not in in_sets]:
            used[_REST] = others
    pairs = [(name, base.on(columns.labels(places))) for name, places in used.items()]
    if columns.view is not None:
        pairs = [(name, selected.of(columns.view)) for name, selected in pairs]
    return KernelUnion(pairs)


# -- parameters ------------------------------------------------------------------------------


def _checked_sets(sets: Any) -> dict[str, list[Any]]:
    """Return the members of each set, without repetitions."""
    if isinstance(sets, str | Path):
        sets = read_gmt(sets)
    if not isinstance(sets, Mapping):
        raise TypeError(
            "sets must be a dict of column names by the names of sets, or the path of a GMT file; "
            f"got {type(sets).__name__}."
        )
    if not sets:
        raise ValueError("sets is empty: at least one set is needed.")
    members = {}
    for name, listed in sets.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"Names of sets must be texts, got {name!r}.")
        if "__" in name or name == "kernels":
            raise ValueError(
                f"The name {name!r} of a set cannot name a kernel: rename it, without two "
                'underscores in a row, which separate names of parameters, and not to "kernels".'
            )
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise TypeError(f"Set {name!r} must be a list of column names, got {listed!r}.")
        members[name] = list(dict.fromkeys(listed))
        if not members[name]:
            raise ValueError(f"Set {name!r} is empty: leave it out.")
    return members


def _checked_sizes(least: Any, most: Any) -> tuple[int, float]:
    """Return the bounds of the number of columns."""
    for name, bound in (("min_columns", least), ("max_columns", 1 if most is None else most)):
        if not isinstance(bound, Integral) or isinstance(bound, bool) or int(bound) < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {bound!r}.")
    low, high = int(least), np.inf if most is None else int(most)
    if low > high:
        raise ValueError(f"min_columns={low} is larger than max_columns={high}.")
    return low, high


def _checked_kernel(kernel: object, is_sparse: bool) -> Kernel:
    """Return the kernel of the columns of a set, by default linear."""
    if kernel is None:
        # Sparse columns are not centred, which would make them dense; estimators centre kernels.
        scaler = StandardScaler(with_mean=False) if is_sparse else StandardScaler()
        return Linear().after(scaler)
    base = as_kernel(kernel)
    if names_its_views(base) or base.columns is not None:
        raise ValueError(
            f"kernel must not choose columns or views, which the sets do; got {base!r}."
        )
    return base


# -- columns of X ----------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Names of the columns of a table; `named` is False if these are positions."""

    names: list[Any]
    named: bool
    is_sparse: bool
    view: str | None

    @property
    def of_view(self) -> str:
        return "X" if self.view is None else f"view {self.view!r}"

    def labels(self, places: list[int]) -> list[Any]:
        """Return what selects the columns at these places: their names, if these are strings."""
        names = [self.names[place] for place in places]
        by_name = self.named and not self.is_sparse and all(isinstance(n, str) for n in names)
        return names if by_name else places


def _columns_of(X: Table, view: str | None) -> _Columns:
    """Return the columns of X, or of one of its views."""
    if not are_views(X):
        if view is not None:
            raise ValueError(f"view={view!r}, but X is one table without views: leave view out.")
        with naming("X"):
            table = as_view(X)
        names = list(table.columns) if is_frame(table) else None
        return _columns_of_table(table, names, None)
    views = as_views(X, join="outer")
    if view is None and holds_modalities(X) and "X" in views:
        view = "X"
    if view is None and len(views.names) == 1:
        (view,) = views.names
    known = ", ".join(map(repr, views.names))
    if view is None:
        raise ValueError(
            f"X has the views {known}: say which one the sets belong to, as in "
            f"view={views.names[0]!r}."
        )
    if view not in views:
        raise ValueError(f"view={view!r}, but X has no such view; its views are {known}.")
    return _columns_of_table(views[view], views.column_names(view), view)


def _columns_of_table(table: Any, names: Any, view: str | None) -> _Columns:
    if len(table.shape) != 2:
        where = "X" if view is None else f"view {view!r}"
        raise ValueError(f"{where} has single objects, such as texts, and no columns.")
    is_sparse = sparse.issparse(table)
    if names is None:
        return _Columns(list(range(table.shape[1])), False, is_sparse, view)
    with naming("X" if view is None else f"view {view!r}"):
        refuse_repeated_names(names)
    return _Columns(names, True, is_sparse, view)


# -- messages --------------------------------------------------------------------------------


def _examples(names: Iterable[Any]) -> str:
    """Return the first names as text."""
    names = list(names)
    return ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")


def _nothing_matches(members: dict[str, list[Any]], columns: _Columns) -> str:
    """Return the message of the error that no name in the sets is a column."""
    names = list(dict.fromkeys(member for listed in members.values() for member in listed))
    if columns.named:
        there = f"the columns are {_examples(columns.names)}"
        hint = _hint(names, columns)
    else:
        there = f"its {len(columns.names)} columns have no names"
        hint = (
            " Pass a data frame, pd.DataFrame(X, columns=names), or sets of positions."
            if columns.view is None
            else " Pass a data frame as this view, or sets of positions."
        )
    return (
        f"No name in the sets matches a column of {columns.of_view}: the sets have "
        f"{_examples(names)}, {there}.{hint}"
    )


def _unmatched(
    members: dict[str, list[Any]], place_of: dict[Any, int], columns: _Columns
) -> list[str]:
    """Return a message about names that match no column, if there are any."""
    absent = {
        name: [member for member in listed if member not in place_of]
        for name, listed in members.items()
    }
    absent = {name: listed for name, listed in absent.items() if listed}
    if not absent:
        return []
    names = Counter(member for listed in absent.values() for member in listed)
    total = len({member for listed in members.values() for member in listed})
    worst = max(absent, key=lambda name: len(absent[name]))
    return [
        f"{len(names)} of {total} names in the sets match no column of {columns.of_view}, such "
        f"as {_examples(names)}. Sets with such names: {len(absent)} of {len(members)}, most in "
        f"{worst!r} ({len(absent[worst])} of {len(members[worst])})." + _hint(list(names), columns)
    ]


def _hint(unmatched: list[Any], columns: _Columns) -> str:
    """Return how many more names match without regard to case or to versions."""
    ways: list[tuple[Callable[[str], str], str, str]] = [
        (str.casefold, "in another case", "X.columns.str.upper()"),
        (
            lambda name: _VERSION.sub("", name),
            "without versions such as '.12'",
            r"X.columns.str.replace(r'\.\d+$', '', regex=True)",
        ),
        (
            lambda name: _VERSION.sub("", name).casefold(),
            "in another case and without versions such as '.12'",
            r"X.columns.str.upper().str.replace(r'\.\d+$', '', regex=True)",
        ),
    ]
    texts = [name for name in unmatched if isinstance(name, str)]
    for changed, how, code in ways:
        known = {changed(name) for name in columns.names if isinstance(name, str)}
        number = sum(changed(name) in known for name in texts)
        if number:
            return (
                f" {number} of them would match {how}: rename the columns, such as by {code}, or "
                "the names in the sets."
            )
    return ""


def _about_left_out(matched: dict[str, list[int]], least: int, most: float) -> list[str]:
    """Return a message about sets that are left out, if there are any."""
    number = sum(not least <= len(places) <= most for places in matched.values())
    if not number:
        return []
    verb = "is" if number == 1 else "are"
    reasons = _left_out(matched, least, most)
    return [f"{number} of {len(matched)} sets {verb} left out: {reasons}."]


def _left_out(matched: dict[str, list[int]], least: int, most: float) -> str:
    """Return how many sets are too small or too large, with examples."""
    sizes = {name: len(places) for name, places in matched.items()}
    reasons = {
        "no column in X": [name for name, size in sizes.items() if size == 0],
        f"fewer columns in X than min_columns={least}": [
            name for name, size in sizes.items() if 0 < size < least
        ],
        f"more columns in X than max_columns={most:g}": [
            name for name, size in sizes.items() if size > most
        ],
    }
    texts = [
        f"{len(names)} with {reason} ({_examples(names)})"
        for reason, names in reasons.items()
        if names
    ]
    return ", ".join(texts)

"""Types of columns in training, and conversion of new rows to these types.

The same column may be read with another type from a file of new rows: with the entries 1, 2 and A
it is text, with 1 and 2 it is numeric. New rows are converted to the types of training, entry by
entry, so that a prediction does not depend on the other rows. If that is impossible, an error
names the view and the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from numbers import Number
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from scipy import sparse

from ..utils.sklearn import warn_caller
from ..utils.storable import storable
from .tables import Table, column_label, copied, is_frame, is_missing, is_numeric, naming
from .views import Views

if TYPE_CHECKING:
    from .union import KernelUnion

NUMBERS, TRUTH, TEXT, DATES, OTHERS = "numbers", "truth values", "text", "dates", "objects"

# Number of categories listed in a warning.
_SHOWN = 5
# Spellings of booleans, as pandas reads and other programs write them.
_TRUTHS = {True: ("True", "TRUE", "true"), False: ("False", "FALSE", "false")}
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)
# Larger integers are not represented exactly as a float.
_EXACT = 2**53


def kind_of(entry: object) -> str:
    """Return the kind of a single entry."""
    if isinstance(entry, bool | np.bool_):
        return TRUTH
    if isinstance(entry, str | bytes):
        return TEXT
    if isinstance(entry, _TIMES):
        return DATES
    return NUMBERS if isinstance(entry, Number | np.number) else OTHERS


# -- columns of any table --------------------------------------------------------------------


def odd_columns(table: Any) -> list[int]:
    """Return the positions of columns without a numeric or boolean dtype."""
    if sparse.issparse(table) or len(table.shape) != 2:
        return []
    if is_frame(table):
        if all(map(is_numeric, set(table.dtypes))):
            return []
        return [j for j, dtype in enumerate(table.dtypes) if not is_numeric(dtype)]
    return [] if is_numeric(table.dtype) else list(range(table.shape[1]))


def entries_of(table: Any, position: int) -> np.ndarray:
    """Return the entries of one column of a frame or array."""
    if not is_frame(table):
        return np.asarray(table[:, position])
    column = table.iloc[:, position] if hasattr(table, "iloc") else table[:, position]
    if hasattr(column.dtype, "tz") or getattr(column.dtype, "kind", "") in "Mm":
        return np.array(list(column), dtype=object)
    return np.asarray(column.to_numpy())


def _truth_columns(table: Any) -> list[int]:
    """Return the positions of columns with a boolean dtype."""
    if sparse.issparse(table) or len(table.shape) != 2:
        return []
    dtypes = list(table.dtypes) if is_frame(table) else [table.dtype] * table.shape[1]
    truths = {dtype for dtype in set(dtypes) if str(dtype).lower() in ("bool", "boolean")}
    return [j for j, dtype in enumerate(dtypes) if dtype in truths] if truths else []


def _with_columns(table: Any, columns: dict[int, np.ndarray]) -> Table:
    """Return the table with some columns replaced."""
    if not columns:
        return table
    if hasattr(table, "with_columns"):  # polars
        series = type(table[:, 0])
        replaced = [
            series(table.columns[j], entries.tolist(), strict=False)
            for j, entries in columns.items()
        ]
        return table.with_columns(replaced)
    is_pandas = is_frame(table)
    table = copied(table) if is_pandas else table.astype(object)
    for j, entries in columns.items():
        if is_pandas:
            table.isetitem(j, entries)
        else:
            table[:, j] = entries
    return table


# -- training --------------------------------------------------------------------------------


@storable
@dataclass(frozen=True)
class TrainedColumns:
    """Kinds and categories of the compared columns of one training table.

    Numeric columns are not listed, unless a kernel compares them as categories.

    Attributes
    ----------
    positions : ndarray of int
        Positions of the columns in the table.
    kinds : list of str
        Kind of each column, such as "text"; several kinds are joined by " and ".
    categories : ndarray of bool
        Whether a kernel compares the column as categories.
    known : list
        Unique entries of the columns, one column after the other.
    stops : ndarray of int
        End of the entries of each column in `known`; a column may have none.
    """

    positions: np.ndarray
    kinds: list[str]
    categories: np.ndarray
    known: list[Any]
    stops: np.ndarray

    @classmethod
    def of(cls, table: object, compared: dict[int, bool]) -> Self:
        """Describe the columns of a training table that are `compared`, some as categories."""
        listed = {*odd_columns(table), *_truth_columns(table)}
        listed |= {j for j, as_categories in compared.items() if as_categories}
        positions = sorted(listed & compared.keys())
        kinds: list[str] = []
        known: list[Any] = []
        stops: list[int] = []
        for j in positions:
            entries = entries_of(table, j)
            different = _different(entries)
            column_kinds = set(map(kind_of, different))
            kinds.append(" and ".join(sorted(column_kinds)))
            # Texts that are mostly different, such as sequences, are no categories.
            few = TEXT in column_kinds and len(different) <= len(entries) / 2
            if (compared[j] or few) and not {DATES, OTHERS} & column_kinds:
                known += map(_plain, different)
            stops.append(len(known))
        categories = np.array([compared[j] for j in positions], dtype=bool)
        return cls(
            np.array(positions, np.intp), kinds, categories, known, np.array(stops, np.intp)
        )

    def known_of(self, place: int) -> list[Any]:
        """Return the unique training entries of the column ``positions[place]``."""
        start = int(self.stops[place - 1]) if place else 0
        return self.known[start : int(self.stops[place])]


def _different(entries: np.ndarray) -> list[Any]:
    """Return the unique entries, without missing ones."""
    if entries.dtype.kind in "biuf":
        values = np.unique(entries)
        return list(values[~np.isnan(values)] if values.dtype.kind == "f" else values)
    unique: Iterable[Any]
    try:
        unique = dict.fromkeys(entries.tolist())
    except TypeError:  # unhashable objects
        unique = {id(entry): entry for entry in entries}.values()
    return [entry for entry in unique if not is_missing(entry)]


def trained_columns(union: KernelUnion, X: object) -> dict[str, TrainedColumns]:
    """Describe the columns of training rows by view; "" for a single table."""
    tables = dict(X.items()) if isinstance(X, Views) else {"": X}
    odd = any(odd_columns(table) or _truth_columns(table) for table in tables.values())
    compared = compared_columns(union, X, only_categories=not odd)
    trained = {
        view: TrainedColumns.of(table, compared[view])
        for view, table in tables.items()
        if view in compared
    }
    return {view: columns for view, columns in trained.items() if len(columns.positions)}


def compared_columns(
    union: KernelUnion, X: object, *, only_categories: bool = False
) -> dict[str, dict[int, bool]]:
    """Return the columns that kernels compare, by view, and whether as categories."""
    compared: dict[str, dict[int, bool]] = {}
    for view, positions, as_categories in union.compared_columns(X):
        if only_categories and not as_categories:
            continue
        columns = compared.setdefault(view, {})
        for j in positions:
            columns[j] = columns.get(j, False) or as_categories
    return compared


# -- new rows --------------------------------------------------------------------------------


def like_training(
    X: object, model: Any, trained: dict[str, TrainedColumns], compared: Callable[[], Any]
) -> Table:
    """Convert new rows to the types of training, with one warning about unseen categories.

    `model` are some or all training rows. `compared` returns :func:`compared_columns`.
    """
    unseen: list[str] = []
    if not isinstance(X, Views):
        X = _table_like(X, model, trained.get(""), lambda: compared().get("", {}), unseen, "")
    else:
        tables = {}
        for view, table in X.items():
            of_view = lambda view=view: compared().get(view, {})  # noqa: E731
            with naming(f"view {view!r}"):
                tables[view] = _table_like(
                    table, model[view], trained.get(view), of_view, unseen, f" of view {view!r}"
                )
        X = X.with_tables(tables)
    if unseen:
        warn_caller("; ".join(unseen) + ". They match no training category.", UserWarning)
    return X


def _table_like(
    table: Any,
    model: Any,
    trained: TrainedColumns | None,
    compared: Callable[[], dict[int, bool]],
    unseen: list[str],
    suffix: str,
) -> Table:
    """Convert the columns of one table; add messages about unseen categories to `unseen`."""
    if sparse.issparse(table) or len(table.shape) != 2 or len(model.shape) != 2:
        return table
    changed: dict[int, np.ndarray] = {}
    positions = [] if trained is None else trained.positions.tolist()
    model_odd = set(odd_columns(model))
    others = [j for j in odd_columns(table) if j not in positions and j not in model_odd]
    others = [j for j in others if j in compared()] if others else []
    for j in others:
        entries = entries_of(table, j)
        numbers = _converted(entries, _Expected(NUMBERS, []), column_label(model, j))
        changed[j] = np.array([np.nan if is_missing(value) else float(value) for value in numbers])
    for place, j in enumerate(positions):
        assert trained is not None
        expected = _Expected(trained.kinds[place], trained.known_of(place))
        entries, label = entries_of(table, j), column_label(model, j)
        converted = _converted(entries, expected, label)
        if converted is not entries:
            changed[j] = converted
        if trained.categories[place] and expected.known:
            unseen += _unseen(converted, expected.known, label + suffix)
    return _with_columns(table, changed)


def _unseen(entries: np.ndarray, known: list[Any], label: str) -> list[str]:
    """Return a message about entries that did not occur in training, if there are any."""
    seen = set(known)
    new = [entry for entry in _different(entries) if entry not in seen]
    if not new:
        return []
    unknown = set(new)
    count = sum(entry in unknown for entry in entries.tolist() if not is_missing(entry))
    listed = ", ".join(map(repr, map(_plain, new[:_SHOWN]))) + (", …" if len(new) > _SHOWN else "")
    return [
        f"{label}: {count} of {len(entries)} rows have categories that training did not: {listed}"
    ]


def _plain(entry: object) -> Any:
    return entry.item() if isinstance(entry, np.generic) else entry


class _Expected:
    """Kinds of a column in training, and its unique entries if they are stored."""

    def __init__(self, kinds: str, known: list[Any]) -> None:
        self.kinds, self.known = kinds, known
        self.each = set(kinds.split(" and ")) if kinds else set()
        self.every = set(known)
        self.texts = {entry for entry in known if isinstance(entry, str)}

    @property
    def numbers(self) -> dict[float, list[str]]:
        """Training texts that are numbers, by their values."""
        texts: dict[float, list[str]] = {}
        for text in self.texts:
            if (number := exact_number(text)) is not None:
                texts.setdefault(number, []).append(text)
        return texts


def _converted(entries: np.ndarray, expected: _Expected, label: str) -> np.ndarray:
    """Convert the entries of a new column to the kinds of training."""
    if not expected.each or _is_as_expected(entries, expected):
        return entries
    cache: dict[Any, Any] = {}
    converted = np.empty(len(entries), dtype=object)
    for row, entry in enumerate(entries.tolist()):
        key = type(entry), entry
        if is_missing(entry):
            converted[row] = entry
            continue
        if key not in cache:
            cache[key] = _as_expected(entry, expected, label, row)
        converted[row] = cache[key]
    return converted


def _is_as_expected(entries: np.ndarray, expected: _Expected) -> bool:
    """Return True if the entries already have the kind of training."""
    if len(expected.each) > 1:
        return False
    kind = entries.dtype.kind
    if kind in "iuf":
        return NUMBERS in expected.each or (
            TRUTH in expected.each and bool(np.isin(entries, (0, 1)).all())
        )
    if kind == "b":
        return TRUTH in expected.each
    return {kind_of(entry) for entry in entries.tolist() if not is_missing(entry)} <= expected.each


def _as_expected(entry: Any, expected: _Expected, label: str, row: int) -> Any:
    """Convert an entry to one of the kinds of training."""
    kind = kind_of(entry)
    if kind in expected.each:
        return entry if len(expected.each) == 1 else _as_known(entry, expected)
    if kind == TEXT:
        if NUMBERS in expected.each and (number := exact_number(entry)) is not None:
            return int(number) if number.is_integer() and abs(number) < _EXACT else number
        if TRUTH in expected.each:
            for truth, texts in _TRUTHS.items():
                if entry in texts:
                    return truth
    elif kind == TRUTH and NUMBERS in expected.each:
        return int(entry)
    elif kind == NUMBERS and TRUTH in expected.each and entry in (0, 1):
        return bool(entry)
    elif kind in (NUMBERS, TRUTH) and TEXT in expected.each:
        return _as_text(entry, expected, label, row)
    _refuse(entry, kind, expected, label, row)


def _as_known(entry: object, expected: _Expected) -> Any:
    """Convert an entry to another kind if only that form occurred in training."""
    if entry in expected.every:
        return entry
    if kind_of(entry) == TEXT:
        number = exact_number(entry)
        return number if number is not None and number in expected.every else entry
    seen = [form for form in _forms(entry) if form in expected.texts]
    return seen[0] if len(seen) == 1 else entry


def _forms(entry: Any) -> list[str]:
    """Return the texts that a number or boolean may have been read from."""
    if kind_of(entry) == TRUTH:
        return list(_TRUTHS[bool(entry)])
    if kind_of(entry) == NUMBERS and float(entry).is_integer():
        return [str(int(entry)), str(float(entry))]
    return [str(entry)]


def _as_text(entry: Any, expected: _Expected, label: str, row: int) -> str:
    """Return the text that a number or boolean was read from, inferred from training texts."""
    forms = _forms(entry)
    seen = [form for form in forms if form in expected.texts]
    if len(seen) == 1:
        return seen[0]
    if kind_of(entry) == NUMBERS and not seen:
        numbers = expected.numbers
        if numbers and float(entry) not in numbers:
            return forms[0]
        seen = numbers.get(float(entry), [])
    if seen:
        raise ValueError(
            f"{label} was text in training, and the number {entry!r} at row {row} may stand for "
            f"{' or '.join(map(repr, sorted(seen)))}: read the column as text, for example with "
            "read_csv(..., dtype=str)."
        )
    _refuse(entry, kind_of(entry), expected, label, row)


def _refuse(entry: object, kind: str, expected: _Expected, label: str, row: int) -> NoReturn:
    ways_out = {
        NUMBERS: "correct entries that are no numbers; pd.to_numeric(column, errors='coerce') "
        "shows which",
        TEXT: "read it as text, as in training, for example with read_csv(..., dtype=str)",
        TRUTH: "convert it to bool",
        DATES: "convert it with pd.to_datetime",
    }
    way_out = next((text for target, text in ways_out.items() if target in expected.each), "")
    raise ValueError(
        f"{label} held {expected.kinds} in training, and holds {kind} now, the first {entry!r} at "
        f"row {row}: {way_out or 'convert it to the type of training'}."
    )


def exact_number(text: Any) -> float | None:
    """Return the number that a text represents; None if it is no finite number."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    # Python reads 1_000 as a thousand, which is unlikely in a file.
    if "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


# -- Text columns that are no categories: unique texts, numbers and dates -------------------------


# Maximal length of an example in an error message.
_LONGEST_SHOWN = 40

# A category is informative because several rows share it. Names, texts, molecules and measurements
# are nearly always unique. With fewer than 20 rows, more than 90% unique entries may be chance.
_FEWEST_TEXTS, _MOSTLY_DIFFERENT = 20, 0.9
# Numbers and dates stored as text are no categories if there are more unique ones than this.
_MOST_LEVELS = 20
# Smallest number that may be a string of zeros and ones: eight digits.
_MANY_DIGITS = 1e7

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[AaPp][Mm]|[-+]\d{2}:?\d{2})?)?"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
# A unit begins with a letter or a sign of a currency or an angle, and may have powers: kg/m2.
_WITH_UNIT = rf"{_NUMBER}\s*(?P<unit>[^\W\d_][^\s]*|[$€£¥°][^\s]*)"
_PLAIN, _BITS = "plain numbers", "strings of zeros and ones"
# Patterns of texts that are no categories, with their descriptions and the way out.
_DISGUISES = (
    (r"[01]{16,}", _BITS, "make a column of every digit, "
     "pd.DataFrame([list(map(int, text)) for text in column]), for the kernel Jaccard"),
    (_NUMBER, _PLAIN, "pd.to_numeric(column)"),
    (rf"{_NUMBER}\s*%", "percentages", "pd.to_numeric(column.str.rstrip('% '))"),
    (r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", "numbers with commas between thousands",
     "pd.to_numeric(column.str.replace(',', ''))"),
    (r"[-+]?(\d{1,3}([.\s]\d{3})*|\d+),\d+", "numbers with a decimal comma",
     "read_csv(..., decimal=','), or pd.to_numeric(column.str.replace(r'[.\\s]', '', regex=True)"
     ".str.replace(',', '.'))"),
    (r"[-+]?\d{1,3}(\s\d{3})+(\.\d+)?", "numbers with spaces between thousands",
     "pd.to_numeric(column.str.replace(r'\\s', '', regex=True))"),
    (r"[-+]?\d{1,3}(['’]\d{3})+([.,]\d+)?", "numbers with apostrophes between thousands",
     "pd.to_numeric(column.str.replace(r\"['’]\", '', regex=True))"),
    (rf"[<>≤≥~]=?\s*{_NUMBER}", "numbers with limits of a measurement",
     "pd.to_numeric(column.str.lstrip('<>≤≥~= ')), if a limit may replace the number"),
    (rf"(\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](\d{{4}}|\d{{2}})|"
     rf"\d{{1,2}}\.? {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}}){_TIME}", "dates",
     "(pd.to_datetime(column) - pd.Timestamp('2000-01-01')) / pd.Timedelta('1D')"),
)  # fmt: skip


class NoCategoriesError(ValueError):
    """Error for a column of text that is not accepted as categories.

    `advice`, the end of the message, is about Python code; the command line replaces it.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.advice = advice


def refuse_no_categories(entries: np.ndarray, label: str, name: object) -> None:
    """Raise an error if texts are no categories: nearly all different, numbers or dates."""
    texts = [entry.strip() for entry in entries if isinstance(entry, str)]
    different = list(dict.fromkeys(texts))
    nearly_all = len(texts) >= _FEWEST_TEXTS and len(different) > _MOSTLY_DIFFERENT * len(texts)
    if nearly_all or len(different) > _MOST_LEVELS:
        # Codes such as 01234 look like numbers, but may be categories if they repeat.
        refuse_disguised(different, label, plain=nearly_all)
    if nearly_all:
        shown = different[0][:_LONGEST_SHOWN] + "…" * (len(different[0]) > _LONGEST_SHOWN)
        raise NoCategoriesError(
            f"{label} is text, and {len(different)} of {len(texts)} entries are different, such "
            f"as {shown!r}: these are no categories.",
            f"Compare them with a kernel of strings, Spectrum(3).on({name!r}), or of words, "
            f"Cosine().on({name!r}).after(TfidfVectorizer()); or leave the column out, with "
            f"X.drop(columns={name!r}) or kernels of other columns, .on(columns). If it names "
            "the samples, make it the index, by which several tables are matched: "
            f"X.set_index({name!r}), of a polars frame X.to_pandas().set_index({name!r}). If "
            "these are categories, declare them: .astype('category').",
        )


def refuse_disguised(texts: list[str], label: str, *, plain: bool) -> None:
    """Raise an error if all texts are numbers or dates; plain numbers only with `plain`."""
    detected = disguise(texts)
    if detected is None or (detected[1] == _PLAIN and not plain):
        return
    example, content, way_out = detected
    raise NoCategoriesError(
        f"{label} holds {content}, such as {example!r}, as text, which would be taken for "
        f"{len(texts)} categories.",
        f"Convert it: {way_out}. If these are categories, declare them: .astype('category').",
    )


def disguise(texts: list[str]) -> tuple[str, str, str] | None:
    """Return an example, a description and a way out if texts are no categories."""
    plain = re.compile(_NUMBER)
    for pattern, content, way_out in _DISGUISES:
        matches = re.compile(pattern, re.IGNORECASE).fullmatch
        # Plain numbers may be among the others.
        if all(matches(text) or plain.fullmatch(text) for text in texts):
            example = next((text for text in texts if matches(text)), None)
            if example is not None and (content != _BITS or all(map(matches, texts))):
                return example, content, way_out
    return _with_unit(texts)


def _with_unit(texts: list[str]) -> tuple[str, str, str] | None:
    """Return an example, a description and a way out if all texts are numbers with one unit."""
    for pattern, method in ((rf"(?P<unit>[$€£¥])\s*{_NUMBER}", "prefix"), (_WITH_UNIT, "suffix")):
        matches = [re.fullmatch(pattern, text) for text in texts]
        units = {match["unit"] for match in matches if match is not None}
        if len(units) == 1 and None not in matches:
            (unit,) = units
            return (
                texts[0],
                f"numbers with the unit {unit!r}",
                f"pd.to_numeric(column.str.remove{method}({unit!r}).str.strip())",
            )
    return None


def is_plain_number(text: str) -> bool:
    """Return whether a text is a finite number in the usual notation."""
    return re.fullmatch(_NUMBER, text) is not None


def refuse_letters_read_as_digits(values: np.ndarray, labels: Callable[[int], str]) -> None:
    """Raise an error for columns of numbers that were read from strings of zeros and ones."""
    if not values.size:
        return
    for j in np.flatnonzero(values.max(axis=0) >= _MANY_DIGITS):
        if _count_of_ones(values[0, j]) is None:  # as in nearly all columns
            continue
        ones = [_count_of_ones(value) for value in np.unique(values[:, j])]
        # Powers of ten, such as doses, have a single one.
        if None not in ones and np.median(ones) >= 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{labels(int(j))} holds numbers of zeros and ones only, such as "
                f"{values[:, j].max():.4g}: probably strings such as fingerprints that were read "
                "as one number. Read it as text, for example with read_csv(..., dtype=str), and "
                "make a column of every digit, for the kernel Jaccard."
            )


def _count_of_ones(value: float) -> int | None:
    """Count the ones among the significant digits of a number; None if it has others than 0, 1."""
    if value < 0.0 or value % 1.0:
        return None
    digits = f"{value:.14e}".partition("e")[0].replace(".", "")
    return digits.count("1") if set(digits) <= {"0", "1"} else None

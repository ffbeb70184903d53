"""Reading of survival targets: whether the event was observed, and when."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Words in names of columns. A name with a word of the first set is a time ("days_to_death").
_TIME_WORDS = {
    *("time", "times", "day", "days", "week", "weeks", "month", "months", "year", "years"),
    *("duration", "futime", "followup"),
}
_EVENT_WORDS = {
    *("event", "events", "status", "died", "death", "dead", "deceased", "failure", "failed"),
    *("relapse", "relapsed", "recurrence", "progression"),
}
# Names of columns that are True where the event was not observed.
_NOT_EVENT_WORDS = {"censored", "censoring", "alive", "living", "survived"}
# Names that have either meaning. In data sets of scikit-survival, fields with these names are
# True where the event was observed, so structured arrays may have them.
_UNCLEAR_WORDS = {"cens", "censor"}

_FORMS = (
    "y must be a structured array with the fields event and time, a data frame with these two "
    "columns, a pair (event, time), or an array with the columns event and time"
)


class SurvivalTargetError(ValueError):
    """Error for a survival target that cannot be used.

    `way_out`, the end of the message, is about Python code; the command line replaces it.
    """

    def __init__(self, message: str, way_out: str) -> None:
        super().__init__(f"{message} {way_out}")
        self.way_out = way_out


class SurvivalTarget(NamedTuple):
    """Whether the event was observed, the time, and the index of pandas objects."""

    event: np.ndarray
    time: np.ndarray
    index: Any = None


class _Column(NamedTuple):
    """A column of y: its description in messages, its name if it has one, and its values."""

    label: str
    name: str
    values: np.ndarray


def survival_target(y: ArrayLike) -> SurvivalTarget:
    """Read the events and times of a survival target.

    Parameters
    ----------
    y : array-like, data frame or pair
        One of

        - a structured array with two fields, a boolean and a number, such as scikit-survival's
          ``Surv.from_arrays(event, time)`` and :func:`survival_array` return;
        - a data frame of pandas or polars with two columns, in any order;
        - a tuple ``(event, time)`` of two arrays;
        - an array with two columns, the event and the time.

        The event is boolean, or 0 and 1; True or 1 if it was observed, not if the sample was
        censored. If both columns contain only 0 and 1, names such as "status" and "months" of the
        columns of a data frame tell them apart; else make the event boolean. Times are finite and
        not negative.

    Returns
    -------
    event : ndarray of shape (n_samples,), bool
    time : ndarray of shape (n_samples,), float
    index : pandas Index or None
        The row labels of a pandas data frame, or of a pair of pandas Series, which must have the
        same.

    Examples
    --------
    >>> from manykernels.survival import survival_target
    >>> event, time, _ = survival_target(([1, 0, 1], [12.0, 30.0, 7.5]))
    >>> event, time
    (array([ True, False,  True]), array([12. , 30. ,  7.5]))
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"months": [12, 30], "died": [True, False]}, index=["anna", "ben"])
    >>> survival_target(frame).index.to_list()
    ['anna', 'ben']
    """
    index = None
    if isinstance(y, tuple) and len(y) == 2:
        form, columns = "pair", _named_columns(*y)
        index = _common_index(*y)
    elif hasattr(y, "columns") and hasattr(type(y), "dtypes"):
        form, columns = "frame", _frame_columns(y)
        index = getattr(y, "index", None)
    else:
        array = _array(y)
        form = "array" if array.dtype.names is None else "structured"
        columns = _array_columns(array) if form == "array" else _fields(array)
    first, second = _checked_columns(columns, index)
    event, time = _told_apart(first, second, form)
    return SurvivalTarget(event.values != 0.0, _checked_times(time, index), index)


def survival_array(y: ArrayLike) -> np.ndarray:
    """Return a survival target as a structured array with the fields "event" and "time".

    scikit-learn can split this array by rows, as scikit-survival's ``Surv.from_arrays``.

    Parameters
    ----------
    y : array-like, data frame or pair
        As in :func:`survival_target`, such as a tuple ``(event, time)``.

    Returns
    -------
    y : ndarray of shape (n_samples,)
        With the fields ``"event"`` (bool) and ``"time"`` (float).

    Examples
    --------
    >>> from manykernels.survival import survival_array
    >>> survival_array(([1, 0, 1], [12.0, 30.0, 7.5]))
    array([( True, 12. ), (False, 30. ), ( True,  7.5)],
          dtype=[('event', '?'), ('time', '<f8')])
    """
    event, time, _ = survival_target(y)
    array = np.empty(len(event), dtype=[("event", np.bool_), ("time", np.float64)])
    array["event"], array["time"] = event, time
    return array


def check_survival(event: ArrayLike, time: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return events as booleans and times as floats, given by these names."""
    events, times = _checked_columns(_named_columns(event, time), None)
    if not _is_indicator(events.values):
        _refuse_no_indicator(events, times)
    return events.values != 0.0, _checked_times(times, None)


def survival_table(y: ArrayLike) -> Any:
    """Return a survival target in a form that can be matched with other rows by label.

    A pandas data frame with the columns event and time if y has row labels, else an array as
    :func:`survival_array`.
    """
    event, time, index = survival_target(y)
    if index is None:
        return survival_array((event, time))
    import pandas as pd

    return pd.DataFrame({"event": event, "time": time}, index=index)


def check_entry(entry: ArrayLike, time: np.ndarray) -> np.ndarray:
    """Return the times from which on samples were observed, each before its `time`."""
    entries = check_risk(entry, len(time), "entry")
    if (entries >= time).any():
        row = int(np.argmax(entries >= time))
        raise ValueError(
            f"entry is {entries[row]:g} and time is {time[row]:g} in row {row}: a sample must "
            "come under observation before its event or its last observation."
        )
    return entries


def check_strata(strata: ArrayLike, n_samples: int) -> tuple[np.ndarray, list[Any]]:
    """Return the number of the stratum of each sample, and the labels of the strata.

    Labels may be of any kind; they are in the order of their first samples.
    """
    labels = _one_dimensional(strata, "strata").tolist()
    if len(labels) != n_samples:
        raise ValueError(f"strata has {len(labels)} entries for {n_samples} samples.")
    for row, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(
                f"strata is missing in row {row}: give the sample a stratum, or leave it out."
            )
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels]), list(numbers)


def check_informative(
    event: np.ndarray,
    time: np.ndarray,
    *,
    sample_weight: np.ndarray | None = None,
    strata: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> None:
    """Raise an error if a Cox model cannot learn anything from a survival target.

    It learns from comparisons of samples with an event to others that were still under
    observation. So there must be an event time at which a sample of the same stratum, and of
    positive weight, is at risk and has no event.
    """
    counted = np.ones(len(time), bool) if sample_weight is None else np.asarray(sample_weight) > 0
    event, time = event[counted], time[counted]
    if not event.any():
        raise SurvivalTargetError(
            f"y has no events among {len(event)} samples"
            f"{' of positive weight' if not counted.all() else ''}: all are censored, so nothing "
            "can be learnt.",
            "If True or 1 means censored in your data, pass the opposite.",
        )
    if len(time) < 2:
        raise ValueError("There is only 1 sample. A Cox model compares samples: pass two or more.")
    groups = np.zeros(len(time), int)
    if strata is not None:
        groups = check_strata(strata, len(counted))[0][counted]
    entries = np.full(len(time), -np.inf) if entry is None else np.asarray(entry)[counted]
    keys = np.unique(np.column_stack([groups[event], time[event]]), axis=0)
    for group, moment in keys:
        at_risk = (groups == group) & (time >= moment) & (entries < moment)
        if (at_risk & ~(event & (time == moment))).any():
            return
    where = "" if strata is None else " of its stratum"
    if len(np.unique(time[event])) == 1 and strata is None:
        what = f"All events are at one time, {time[event][0]:g}, when"
    else:
        what = "At every event time,"
    raise ValueError(
        f"{what} no other sample{where} was under observation: there is nothing to compare. "
        "A Cox model needs events at different times, or samples that were censored after an "
        "event."
    )


def check_risk(risk: ArrayLike, n_samples: int | None, name: str = "risk") -> np.ndarray:
    """Return finite numbers, one per sample."""
    values = _one_dimensional(risk, name)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got {values.dtype}.")
    values = values.astype(np.float64)
    if n_samples is not None and len(values) != n_samples:
        raise ValueError(f"{name} has {len(values)} entries for {n_samples} samples.")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{name} must be finite, but is {values[row]} in row {row}.")
    return values


# -- columns of y ---------------------------------------------------------------------------


def _named_columns(event: Any, time: Any) -> list[_Column]:
    return [
        _Column(label, "", _one_dimensional(values, label))
        for label, values in (("event", event), ("time", time))
    ]


def _common_index(event: Any, time: Any) -> Any:
    """Return the row labels of a pair; None if neither of the two has some."""
    indices: list[Any] = [getattr(values, "index", None) for values in (event, time)]
    known = [index for index in indices if hasattr(index, "equals")]
    if len(known) == 2 and not known[0].equals(known[1]):
        raise ValueError(
            "event and time have different row labels: pass two columns of one data frame, or "
            "arrays, such as (event.to_numpy(), time.to_numpy())."
        )
    return known[0] if known else None


def _frame_columns(frame: Any) -> list[_Column]:
    names = [str(name) for name in frame.columns]
    if len(names) != 2:
        raise ValueError(
            f"y is a data frame with {len(names)} columns ({', '.join(map(repr, names[:6]))}"
            f"{', …' if len(names) > 6 else ''}): select the event and the time, "
            'y[["event", "time"]].'
        )
    if names[0] == names[1]:
        raise ValueError(f"Both columns of y are called {names[0]!r}: give them different names.")
    return [
        _Column(f"column {name!r} of y", name, np.asarray(frame[key].to_numpy()))
        for name, key in zip(names, frame.columns, strict=True)
    ]


def _fields(array: np.ndarray) -> list[_Column]:
    names = array.dtype.names or ()
    if len(names) != 2 or array.ndim != 1:
        raise ValueError(
            f"y is a structured array of shape {array.shape} with the fields "
            f"{', '.join(map(repr, names))}: it must have one dimension and two fields, the "
            "event (bool) and the time (float)."
        )
    columns = [_Column(f"field {name!r} of y", name, array[name]) for name in names]
    for column in columns:
        _one_dimensional(column.values, column.label)
    return columns


def _array_columns(array: np.ndarray) -> list[_Column]:
    if array.ndim == 1:
        raise ValueError(f"{_FORMS}; got one entry per sample.")
    if array.ndim != 2 or array.shape[1] != 2:
        way = ""
        if array.ndim == 2 and array.shape[0] == 2:
            way = " Two arrays are passed as a tuple, (event, time)."
        raise ValueError(f"{_FORMS}; got an array of shape {array.shape}.{way}")
    return [
        _Column(f"the {place} column of y", "", array[:, i])
        for i, place in enumerate(("first", "second"))
    ]


def _array(values: Any) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).view(bool).any():
        raise ValueError("y has masked entries: leave out these samples.")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{_FORMS}; got rows of different lengths.") from error
    if array.ndim == 0:
        raise ValueError(f"{_FORMS}; got {type(values).__name__}.")
    return array


def _one_dimensional(values: Any, label: str) -> np.ndarray:
    array = values.to_numpy() if hasattr(values, "to_numpy") else _array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{label} must have one entry per sample; got the shape {array.shape}.")
    return array


def _checked_columns(columns: list[_Column], index: Any) -> list[_Column]:
    """Return columns of booleans or finite numbers, of the same length."""
    sizes = [len(column.values) for column in columns]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"event has {sizes[0]} entries and time has {sizes[1]}: there must be an event and a "
            "time for each sample."
        )
    if sizes[0] == 0:
        raise ValueError("Found array with 0 sample(s): there is no event and no time.")
    return [column._replace(values=_numbers(column, index)) for column in columns]


def _numbers(column: _Column, index: Any) -> np.ndarray:
    """Return a column as booleans or floats without missing values."""
    values = column.values
    if values.dtype.kind == "O":
        entries = values.tolist()
        for row, entry in enumerate(entries):
            if is_missing(entry):
                _refuse_value(column, row, "missing", index)
            if not isinstance(entry, bool | np.bool_ | int | float | np.number):
                _refuse_kind(column, entry)
        all_boolean = all(isinstance(entry, bool | np.bool_) for entry in entries)
        values = values.astype(bool if all_boolean else float)
    if values.dtype.kind not in "biuf":
        _refuse_kind(column, values[0])
    if values.dtype.kind == "b":
        return values
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        _refuse_value(column, row, "missing (NaN)" if np.isnan(values[row]) else "inf", index)
    return values


def is_missing(entry: Any) -> bool:
    """Return True if an entry is None, NaN, NaT or NA."""
    try:
        return entry is None or bool(entry != entry)
    except TypeError:  # a comparison with pandas.NA has no truth value
        return True


def _refuse_value(column: _Column, row: int, value: str, index: Any) -> None:
    raise ValueError(
        f"{column.label} is {value} in row {_row_name(row, index)}: leave out samples without a "
        "known event and time."
    )


def _row_name(row: int, index: Any) -> str:
    if index is None or type(index).__name__ == "RangeIndex":
        return str(row)
    return f"{row} ({index[row]!r})"


def _refuse_kind(column: _Column, example: Any) -> None:
    kind, way = type(example).__name__, "Convert it first."
    if isinstance(example, str | bytes):
        name = f"y[{column.name!r}]" if column.name else "event"
        kind, example = "text", str(example)
        way = (
            f"Make an event of two words boolean by {name} == {example!r}, with the word for an "
            "observed event; convert numbers by .astype(float)."
        )
    elif kind in ("datetime64", "timedelta64", "Timestamp", "Timedelta", "date", "datetime"):
        kind, example = "dates or differences of dates", str(example)
        way = "Take differences to the first observation, and divide by np.timedelta64(1, 'D')."
    raise SurvivalTargetError(
        f"{column.label} has {kind}, such as {example!r}: the event must be boolean or 0 and 1, "
        "and the time a number.",
        way,
    )


def _is_indicator(values: np.ndarray) -> bool:
    """Return True if all values are booleans, or 0 and 1."""
    return values.dtype.kind == "b" or bool(((values == 0.0) | (values == 1.0)).all())


def _kind_of_name(name: str) -> str:
    """Return "time", "event", "not event" or "unclear", or "" for other names of columns."""
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    for kind, known in (
        ("time", _TIME_WORDS),
        ("not event", _NOT_EVENT_WORDS),
        ("unclear", _UNCLEAR_WORDS),
        ("event", _EVENT_WORDS),
    ):
        if words & known:
            return kind
    return ""


def _told_apart(first: _Column, second: _Column, form: str) -> tuple[_Column, _Column]:
    """Return the column with the event, then the column with the time.

    Pairs and arrays have the event first. `form` is "pair", "array", "frame" or "structured".
    """
    ordered = form in ("pair", "array")
    boolean = [column.values.dtype.kind == "b" for column in (first, second)]
    if all(boolean):
        raise ValueError(
            f"{first.label} and {second.label} are both boolean: one of them must be the time, a "
            "number."
        )
    indicators = [_is_indicator(column.values) for column in (first, second)]
    if not any(indicators):
        _refuse_no_indicator(first, second)
    kinds = [_kind_of_name(column.name) for column in (first, second)]
    if any(boolean):
        is_first = boolean[0]
    elif indicators[0] != indicators[1]:
        is_first = indicators[0]
    elif not ordered and (kinds[0] == "time") != (kinds[1] == "time"):
        is_first = kinds[1] == "time"
    elif not ordered and (kinds[0] == "event") != (kinds[1] == "event"):
        is_first = kinds[0] == "event"
    else:
        way = "" if ordered else ', or call the columns "event" and "time"'
        raise ValueError(
            f"{first.label} and {second.label} contain only 0 and 1, so that both could be the "
            f"event. Make the event boolean, by .astype(bool){way}."
        )
    if ordered and not is_first:
        _refuse_exchanged(first, second)
    event, time = (first, second) if is_first else (second, first)
    kind_of_event, kind_of_time = kinds if is_first else kinds[::-1]
    if kind_of_event == "time" or (kind_of_event != "event" and kind_of_time == "event"):
        raise ValueError(
            f"To judge by its values, {event.label} is the event and {time.label} the time, which "
            'contradicts their names. Rename them "event" and "time", or exchange their values.'
        )
    if kind_of_event == "not event" or (kind_of_event == "unclear" and form == "frame"):
        opposite = f"~y[{event.name!r}]" if any(boolean) else f"1 - y[{event.name!r}]"
        raise SurvivalTargetError(
            f"{event.label} seems to be True or 1 if the event was not observed. The event must "
            "be True or 1 if it was observed.",
            f'Replace it by {opposite}, called "event", or only rename it to "event" if it is so '
            "already.",
        )
    return event, time


def _refuse_no_indicator(first: _Column, second: _Column) -> None:
    if _is_indicator(second.values):
        _refuse_exchanged(first, second)
    columns = [column for column in (first, second) if _kind_of_name(column.name) != "time"]
    few = [column for column in columns if len(np.unique(column.values)) <= 2] or columns
    column = (few or [first])[0]
    label = f'y["{column.name}"]' if column.name else "event"
    values = np.unique(column.values)
    raise SurvivalTargetError(
        f"The event must be boolean or 0 and 1, but {column.label} has the values "
        f"{_examples(column.values)}.",
        f"Pass it as booleans, such as {label} == {values[-1]:g}, with the value that stands for "
        "an observed event.",
    )


def _refuse_exchanged(first: _Column, second: _Column) -> None:
    raise ValueError(
        f"event and time seem to be exchanged: {first.label}, which should be boolean or 0 and 1, "
        f"has the values {_examples(first.values)}, and {second.label} is boolean or 0 and 1. "
        "Pass the event first, then the time."
    )


def _examples(values: np.ndarray) -> str:
    distinct = np.unique(values)
    listed = ", ".join(f"{value:g}" for value in distinct[:4])
    return listed + (", …" if len(distinct) > 4 else "")


def _checked_times(column: _Column, index: Any) -> np.ndarray:
    if column.values.dtype.kind == "b":
        raise ValueError(f"{column.label} is boolean: the time must be a number.")
    if (column.values < 0.0).any():
        row = int(np.argmax(column.values < 0.0))
        raise ValueError(
            f"{column.label} is {column.values[row]:g} in row {_row_name(row, index)}: times are "
            "counted from the beginning of the observation, and are not negative."
        )
    return column.values

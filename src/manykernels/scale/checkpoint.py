"""Checkpoints of a long pass: its state in a file, from which an interrupted pass goes on.

A state is written between two blocks, never while one is being added: `accumulate` may change
arrays in place, and half a block would be added twice. So Ctrl-C waits for the end of the block
that is being added; while rows are being read it acts at once.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from .._files import replacing
from .._warnings import warn_caller
from ..kernels import Views
from .stacking import rows_of

if TYPE_CHECKING:
    from .base import Block, RowBlocks

# Of the files; older files are refused by it if what is written changes.
_FORMAT = 1
# Seconds between checkpoints: a state of 100 MiB takes about one to write.
_EVERY = 60.0
# Rows by which data are known again: cheap to compare, and unlikely to be the same elsewhere.
_ROWS_KNOWN = 5
# Entry of the file that says what the arrays belong to; no array of a state has this name.
_ABOUT = "checkpoint"


class SavableState(Protocol):
    """A state that can be written to a file."""

    def to_arrays(self) -> dict[str, np.ndarray]: ...

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self: ...


Savable = TypeVar("Savable", bound=SavableState)


class Checkpoint:
    """Where and how often the state of a pass is kept.

    Parameters
    ----------
    path : str or Path
        The file. It is removed when the pass is finished.
    state : type
        Class of the state, with ``to_arrays()`` and the class method ``from_arrays(arrays)``.
    job : dict of str to value, optional
        What the state depends on besides the rows: parameters, seeds. Values are told apart as
        they are printed. A checkpoint of another job is refused; block size, number of rows and,
        where rows can be read again, the first of them are compared too.
    every : float, default=60
        Seconds between checkpoints.

    Examples
    --------
    >>> import os
    >>> import numpy as np
    >>> from manykernels.scale import Checkpoint, row_blocks
    >>> class Total:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def to_arrays(self):
    ...         return {"value": np.array(self.value)}
    ...     @classmethod
    ...     def from_arrays(cls, arrays):
    ...         return cls(float(arrays["value"]))
    >>> def add(total, block):
    ...     return Total((total.value if total else 0.0) + float(block.X.sum()))
    >>> blocks = row_blocks(np.ones((10, 2)), block_size=4)
    >>> checkpoint = Checkpoint("pass.npz", Total, {"power": 1})
    >>> blocks.reduce(add, None, checkpoint=checkpoint).value
    20.0
    >>> os.path.exists("pass.npz")
    False
    """

    def __init__(
        self,
        path: str | Path,
        state: type[Savable],
        job: Mapping[str, Any] | None = None,
        every: float = _EVERY,
    ) -> None:
        self.path, self.every = Path(path), every
        self._state = state
        self._job = {str(name): repr(value) for name, value in (job or {}).items()}
        self._works = True

    def reduce(self, rows: RowBlocks, accumulate: Callable[[Any, Block], Any]) -> Any:
        """The state after all blocks, from the last checkpoint on if there is one."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"The checkpoint {self.path} cannot be written: there is no folder "
                f"{self.path.parent}. Create it, or name another file."
            )
        about = {"block_size": repr(rows.block_size), "n_rows": repr(rows.n_rows), **self._job}
        state, done, known = self._resumed(about)
        about["first rows"] = known
        # An iterator would not give its first rows again.
        if known and not rows.one_shot and (first := next(rows.blocks(), None)) is not None:
            self._compare({"first rows": known}, {"first rows": first_rows(first)})
        saved = time.monotonic()
        with _interruptions() as interruption:
            try:
                for block in rows.blocks(done):
                    about["first rows"] = about["first rows"] or first_rows(block)
                    with interruption.deferred():
                        state = accumulate(state, block)
                        done = block.number + 1
                    if time.monotonic() - saved >= self.every:
                        self._save(state, done, about)
                        saved = time.monotonic()
                    interruption.act()
            except BaseException:
                # After an error in `accumulate`, half a block may be in the state.
                if not interruption.adding:
                    self._save(state, done, about)
                raise
        self.path.unlink(missing_ok=True)
        return state

    # -- the file --------------------------------------------------------------------------

    def _save(self, state: Any, done: int, about: dict[str, str]) -> None:
        if state is None or not self._works:
            return
        header = {"format": _FORMAT, "blocks": done, "job": about}
        try:
            content = BytesIO()
            np.savez(content, **{_ABOUT: np.array(json.dumps(header)), **state.to_arrays()})
            with replacing(self.path, content.getbuffer().nbytes) as file:
                file.write(content.getbuffer())
        except OSError as error:
            self._works = False
            warn_caller(
                f"The checkpoint {self.path} cannot be written ({error}). The pass goes on "
                "without checkpoints: nothing is lost, but if it is interrupted it begins again "
                "from the last one that was written.",
                RuntimeWarning,
            )

    def _resumed(self, about: dict[str, str]) -> tuple[Any, int, str]:
        """State, number of blocks that are in it, and the first rows, if there is a file."""
        if not self.path.exists():
            return None, 0, ""
        try:
            # NumPy would leave a damaged file open.
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays.pop(_ABOUT)))
            job, done = dict(header["job"]), int(header["blocks"])
            known = str(job.pop("first rows"))
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"{self.path} is no checkpoint of a pass, or damaged ({error}). Remove it to "
                "begin anew, or name another file."
            ) from error
        self._compare({"format": str(header["format"]), **job}, {"format": str(_FORMAT), **about})
        return self._state.from_arrays(arrays), done, known

    def _compare(self, then: dict[str, str], now: dict[str, str]) -> None:
        """Refuse the checkpoint of a job with other parameters or data."""
        names = [*now, *(name for name in then if name not in now)]
        differing = [name for name in names if then.get(name) != now.get(name)]
        if differing:
            told = "; ".join(
                f"{name} was {then.get(name, 'not given')} and is {now.get(name, 'not given')}"
                for name in differing
            )
            raise ValueError(
                f"{self.path} is the checkpoint of another pass: {told}. Remove it to begin anew, "
                "or name another file."
            )


def first_rows(block: Block) -> str:
    """The beginning of a block as text, by which data are known again."""
    return _text(rows_of(block.X, slice(0, min(_ROWS_KNOWN, len(block)))))


def _text(table: Any) -> str:
    if isinstance(table, Views):
        return repr({name: _text(one) for name, one in table.items()})
    if sparse.issparse(table):
        return repr((table.shape[1], table.indices.tolist(), table.data.tolist()))
    names = list(getattr(table, "columns", ()))
    return repr((names, np.asarray(table).tolist()))


# -- Ctrl-C ----------------------------------------------------------------------------------


class _Interruption:
    """Whether Ctrl-C was pressed while a block was being added."""

    def __init__(self) -> None:
        self.adding = self._pending = False

    def handle(self, number: int, frame: Any) -> None:
        # A second one does not wait.
        if not self.adding or self._pending:
            raise KeyboardInterrupt
        self._pending = True

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Ctrl-C waits for the end. After an exception inside, `adding` stays true."""
        self.adding = True
        yield
        self.adding = False

    def act(self) -> None:
        """Raise what was waiting."""
        if self._pending:
            raise KeyboardInterrupt


@contextmanager
def _interruptions() -> Iterator[_Interruption]:
    """Watches for Ctrl-C, which reaches only the main thread."""
    interruption = _Interruption()
    before = signal.getsignal(signal.SIGINT)
    # Another handler, such as one that ignores it, is left alone.
    if (
        threading.current_thread() is not threading.main_thread()
        or before is not signal.default_int_handler
    ):
        yield interruption
        return
    signal.signal(signal.SIGINT, interruption.handle)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)

"""Progress of a fit: reported to scikit-learn's callbacks, and printed if `verbose`."""

from __future__ import annotations

from typing import Any


class FitTask:
    """A fit or a part of it: begun, perhaps divided into subtasks, ended.

    Calling it with a record of progress tells the callbacks that one subtask is done. That makes
    it the observer of solvers, descents and grids: a true answer asks them to stop. A record has a
    number, ``iteration``, and is printed by ``str``. `stopped` is whether a callback has asked to
    stop in this task.
    """

    def __init__(
        self, estimator: Any, context: Any, X: Any = None, y: Any = None, label: str = ""
    ):
        self._estimator, self._context, self._label = estimator, context, label
        self._data = {"X": X, "y": y}
        self.stopped = False
        context.call_on_fit_task_begin(estimator=estimator, **self._data)

    @classmethod
    def begin(cls, estimator: Any, X: Any, y: Any, max_subtasks: int | None) -> FitTask:
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
        """One step is done."""
        if self._estimator.verbose:
            print(f"[{type(self._estimator).__name__}] {self._label}{progress}")
        asked = self.subtask(f"iteration {progress.iteration}").end()
        self.stopped |= asked
        return asked

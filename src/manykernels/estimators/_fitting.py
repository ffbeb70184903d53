"""A fit that fails changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Decorator of ``fit``: what ends in an exception, Ctrl-C included, leaves things as before.

    A model that was fitted stays whole and predicts as it did; one that was not is not. For this
    a fit binds new objects to its attributes and never changes those of the fit before.
    """

    @wraps(fit)
    def complete_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(estimator))
        try:
            return fit(estimator, *args, **kwargs)
        except BaseException:
            # One assignment, so that a second Ctrl-C cannot leave half of it.
            estimator.__dict__ = before
            raise

    return complete_fit  # type: ignore[return-value]

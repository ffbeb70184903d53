"""The models that are compared, and the table of what they tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._folds import about_repeats
from .intervals import UNKNOWN, Intervals, Mean
from .learners import at_chosen_norm, of_plain_sum, without_search
from .result import ViewImportance
from .stability import resampled_shares, shares_of_views
from .study import Study
from .views import ViewKernels


class Models:
    """All models that are compared; what is not yet computed is None."""

    def __init__(
        self, study: Study, learner: Any, fitted: Any, views: list[ViewKernels], verbose: bool
    ) -> None:
        self.study, self.fitted, self.views, self.verbose = study, fitted, views, verbose
        self.plain, self.learner = without_search(learner, fitted), at_chosen_norm(learner, fitted)
        self.done = 0
        self.all = study.losses(self.learner, slice(None), fitted)
        self.without: list[np.ndarray | None] = [None] * len(views)
        self.alone: list[np.ndarray | None] = [None] * len(views)
        self.plain_sum: np.ndarray | None = None
        self.shares: list[np.ndarray] = []
        self._note("all views", self.all)

    def learn(self, resamples: Iterator[np.ndarray]) -> None:
        """Everything, in an order that an interruption leaves the most important part of."""
        study, every = self.study, np.arange(self.study.stack.n_kernels)
        for j, view in enumerate(self.views):
            rest = np.setdiff1d(every, view.kernels)
            self.without[j] = self._losses(f"without {view.name!r}", self.learner, rest)
        equal = of_plain_sum(self.learner, len(every))
        self.plain_sum = self.all if equal is None else self._losses("plain sum", equal, every)
        for j, view in enumerate(self.views):
            if len(view.own):
                self.alone[j] = self._losses(f"only {view.name!r}", self.learner, view.own)
        for k, shares in enumerate(resampled_shares(study, self.plain, self.views, resamples)):
            self.shares.append(shares)
            self._note(f"half-sample {k + 1}")

    def _losses(self, title: str, learner: Any, kernels: np.ndarray) -> np.ndarray:
        try:
            losses = self.study.losses(learner, kernels)
        except ValueError as error:
            raise ValueError(f"Model {title}: {error}") from error
        self._note(title, losses)
        return losses

    def _note(self, title: str, losses: np.ndarray | None = None) -> None:
        if losses is not None:
            self.done += 1
        if not self.verbose:
            return
        scoring = self.study.scoring
        told = (
            "" if losses is None else f"  {scoring.name} {scoring.best - np.nanmean(losses):.4f}"
        )
        print(f"[view_importance] {title}{told}")

    def result(self, confidence: float) -> ViewImportance:
        """The table of what is known."""
        study, scoring = self.study, self.study.scoring
        # At a minimum F grows quadratically: a relative gap determines weights, and with them
        # outputs, to its square root.
        slack = float(np.sqrt(self.fitted.tol))
        intervals = Intervals(
            study.weights,
            confidence,
            study.train_share,
            scoring.hit_or_miss,
            slack,
            study.groups,
        )

        def scored(losses: np.ndarray | None) -> Mean:
            return UNKNOWN if losses is None else scoring.score(intervals.of(losses))

        def worse(losses: np.ndarray | None) -> Mean:
            return UNKNOWN if losses is None else intervals.of_difference(losses, self.all)

        score, plain_sum, gain = scored(self.all), scored(self.plain_sum), worse(self.plain_sum)
        falls, alone = list(map(worse, self.without)), list(map(scored, self.alone))
        return ViewImportance(
            names=[view.name for view in self.views],
            scoring=scoring.name,
            method=_described(study),
            confidence=confidence,
            score=score.value,
            score_interval=score.interval,
            fall=np.array([fall.value for fall in falls]),
            fall_interval=np.array([fall.interval for fall in falls]),
            alone=np.array([own.value for own in alone]),
            alone_interval=np.array([own.interval for own in alone]),
            weight=shares_of_views(self.fitted, study.stack.names, self.views),
            resampled_weights=np.array(self.shares).reshape(-1, len(self.views)),
            negligible=slack,
            plain_sum=plain_sum.value,
            plain_sum_interval=plain_sum.interval,
            gain=gain.value,
            gain_interval=gain.interval,
        )


def _described(study: Study) -> str:
    n_folds = study.n_folds if study.splits is None else len(study.splits)
    how = f"{n_folds} folds held out" if n_folds > 1 else "samples left out in closed form"
    repeats = about_repeats(study.groups)
    return f"{how}; {repeats}" if repeats else how

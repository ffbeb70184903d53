"""Samples that lack kernels: their images are filled in, learnt on training samples.

A sample lacks a kernel if its whole row and column of it, diagonal included, are NaN. Let φ(x) be
the images in the feature space of one kernel, and let the training samples that have it have the
(weighted) mean μ. A completion replaces the image of every sample x by

    ψ(x) = μ + s(x) (φ(x) − μ)                   if x has the kernel,
    ψ(x) = μ + s(x) Σ_i w_i(x) (φ(x_i) − μ)      if x lacks it,

with training samples x_i that have the kernel. Both are sums of images whose coefficients add up
to one, so the completed kernels ⟨ψ(x), ψ(x')⟩ are positive semi-definite, or become so by
centring, whenever the given ones are, and they are defined for new samples. For a sample with all
kernels nothing changes: s = 1 and ψ = φ.

* :class:`MeanCompletion`: ``w = 0``, the image is the mean.
* :class:`ConditionalCompletion`: w(x) is a kernel ridge regression of φ on the kernels of the
  other views (:mod:`manykernels.kernels._reconstruction`).

The factor s keeps the length of a sample. An image that is filled in is nearer to the mean than
one that is there, so a sample with few views would be nearer to a decision boundary than others
for this reason alone. With ρ_v(x) the share of the squared distance from the mean that is known
of the image in the kernels of view v,

    s(x)² = (number of views) / Σ_v ρ_v(x).

ρ is 1 for a view that is there. For an image that is filled in at the squared distance l, with an
expected squared error e, it is l/(l + e): 0 for the mean, 1 for a reconstruction without error.
"""

from __future__ import annotations

import numpy as np

from .._rounding import ACCUMULATED
from ._completing import Completion, Images, Sums, filled_kernel, refuse_samples_without_kernels
from ._reconstruction import Reconstruction
from .stack import KernelStack
from .transforms import Chain, preparation


class MeanCompletion(Completion):
    """The image of a sample in a kernel that it lacks is the mean; its length is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.kernels.completion import MeanCompletion
    >>> K = np.array([[2.0, 0.0, np.nan], [0.0, 2.0, np.nan], [np.nan, np.nan, np.nan]])
    >>> stack = KernelStack.from_arrays([K, np.eye(3)], missing=True)
    >>> MeanCompletion().fit_transform(stack).kernel(0)
    array([[2., 0., 1.],
           [0., 2., 1.],
           [1., 1., 1.]])
    """

    def _images(self, stack: KernelStack, present: np.ndarray) -> Images:
        return Images(present, self._stretch(present, np.zeros(present.shape)), {})


class ConditionalCompletion(Completion):
    """The image of a sample in a kernel that it lacks is reconstructed from its other views.

    By a kernel ridge regression on the mean kernel of the other views. Its λ has the least error
    on training samples that are left out. The fitted transform keeps the kernels of the training
    samples.
    """

    def _learn_more(self, stack: KernelStack, weights: np.ndarray) -> None:
        self._stack, self._weights = stack, weights
        # By view and by the training samples that have the kernel, learnt when first needed.
        self._reconstructions: dict[tuple[int, bytes], Reconstruction] = {}

    def _images(self, stack: KernelStack, present: np.ndarray) -> Images:
        filled, sums = np.zeros(present.shape), {}
        lacking = np.flatnonzero(self._can_be_reconstructed() & ~present.all(axis=1)).tolist()
        if lacking:
            similar = self._view_kernels(stack, present)
            self._learn_reconstructions(lacking, similar if stack is self._stack else None)
        for j in lacking:
            others = self._others(similar, self.views_[j], present)[~present[j]]
            found = self._reconstructions[self._key(j)]
            sums[j] = Sums.of(found.coefficients(others), filled_kernel(self._stack, j))
            known = np.maximum(sums[j].squares * self.inverse_variances_[j], 0.0)
            filled[j, ~present[j]] = known / (known + max(found.error, ACCUMULATED))
        return Images(present, self._stretch(present, filled), sums)

    def _view_kernels(self, stack: KernelStack, present: np.ndarray) -> np.ndarray:
        """The mean of the kernels of each view, centred, of unit variance, zero where lacking."""
        total = np.zeros((self.views_.max() + 1, *stack.shape[:2]))
        for j in np.flatnonzero(self.inverse_variances_ > 0.0).tolist():
            K, view = filled_kernel(stack, j), self.views_[j]
            K -= (K @ self.shares_[j])[:, None]
            K -= self.means_[j] - self.grand_means_[j]
            K *= np.outer(present[j], self.present_[j])
            total[view] += K * (self.inverse_variances_[j] / np.sum(self.views_ == view))
        return total

    def _others(self, similar: np.ndarray, view: int, present: np.ndarray) -> np.ndarray:
        """Mean kernel of the views but one, with the length of every sample kept."""
        rows, columns = (self._stretch_without(view, has) for has in (present, self.present_))
        others: np.ndarray = (similar.sum(axis=0) - similar[view]) * np.outer(rows, columns)
        return others

    def _stretch_without(self, view: int, present: np.ndarray) -> np.ndarray:
        others = present[self.known_ & (self.views_ != view)]
        counts = others.sum(axis=0)
        return np.sqrt(len(others) / np.maximum(counts, 1))

    def _can_be_reconstructed(self) -> np.ndarray:
        """Kernels that another view may tell something about."""
        telling = np.unique(self.views_[self.inverse_variances_ > 0.0])
        return self.known_ & (len(telling) - np.isin(self.views_, telling) > 0)

    def _key(self, j: int) -> tuple[int, bytes]:
        return int(self.views_[j]), self.present_[j].tobytes()

    def _learn_reconstructions(self, kernels: list[int], similar: np.ndarray | None) -> None:
        """Learn how these kernels follow from other views; `similar` are those of training."""
        for j in kernels:
            key, view = self._key(j), self.views_[j]
            if key in self._reconstructions:
                continue
            if similar is None:
                similar = self._view_kernels(self._stack, self.present_)
            others = self._others(similar, view, self.present_)
            weights = self._weights * self.present_[j]
            self._reconstructions[key] = Reconstruction.learn(others, similar[view], weights)


__all__ = [
    "COMPLETIONS",
    "Completion",
    "ConditionalCompletion",
    "MeanCompletion",
    "preparation_with",
    "refuse_samples_without_kernels",
]

#: The completions, by the name that the parameter `missing` of estimators takes.
COMPLETIONS: dict[str, type[Completion]] = {
    "mean": MeanCompletion,
    "conditional": ConditionalCompletion,
}


def preparation_with(missing: str, normalize: str | None, *, center: bool = True) -> Chain:
    """The preparation of an estimator with these parameters, not yet fitted."""
    completion = COMPLETIONS[missing]() if missing != "error" else None
    return preparation(normalize, center=center, completion=completion)

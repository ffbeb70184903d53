"""Gates that are constant in groups: one set of kernel weights for each cluster or sample.

Yang et al. learn weights for clusters of the training samples (2009) or for every training
sample (2010), in the words of Gönen & Alpaydın (2013, section 4.5):

    k_η(x_i, x_j) = Σ_p η_p(c_i) k_p(x_i, x_j) η_p(c_j)        with c_i the cluster of x_i.

Samples of different clusters are compared too, by the kernels that count in both. This is a gate
whose features are indicators: x_ic = 1 if sample i is of cluster c, else 0. The score of kernel p
in cluster c is a parameter of its own, V_pc, and there is no bias, which would be redundant:

    A = x Vᵀ            ∂J/∂V = Rᵀ x            η = softmax of A.

The outputs are those of competing kernels: not negative, with sum one in each cluster. The
authors alternate between a machine and a program in its kernel weights; here these follow the
gradient of J, as in all gates.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._sklearn import num_samples
from ..kernels._threads import one_blas_thread
from .features import GatingFeatures
from .gates import Array, Gate

# Decimals to which features, whose deviation is one, are told apart: the squares of smaller
# differences are lost in the rounding errors of squared distances.
_DECIMALS = 8
# k-means is started this often, and the best result kept. It costs little beside a descent.
_N_STARTS = 10


@dataclass(frozen=True)
class GroupGate(Gate):
    """A gate on indicators of groups: V has a column for each group, and no bias."""

    parts: ClassVar[tuple[str, ...]] = ("outputs",)

    def row_length(self, n_features: int) -> int:
        """One parameter for each group."""
        return n_features

    def coefficients(self, theta: ArrayLike, n_features: int) -> dict[str, Array]:
        """``{"outputs": (P × groups)}``: how much each kernel counts in each group."""
        V = self._clipped(self._matrix(theta, n_features))
        return {"outputs": self._link(V.T).T}

    def _constant(self, scores: Array, n_features: int) -> Array:
        return np.tile(scores[:, None], n_features)

    def _scores(self, V: Array, x: Any) -> Array:
        return np.asarray(x @ V.T)

    def _scores_gradient(self, V: Array, x: Any, R: Array) -> Array:
        return np.asarray(R.T @ x)


@dataclass(frozen=True)
class PerCluster(GroupGate):
    """Kernels count the same in all samples of a cluster (Yang et al. 2009).

    Clusters are those of the gating features of the training samples. A new sample belongs to the
    cluster with the nearest centre, however far away.

    Parameters
    ----------
    scale : float, default=0.01
        As in :class:`Gate`.
    n_clusters : int, default=5
        Number of clusters by k-means, which is the same at every fit. There are fewer if fewer of
        the training samples differ.
    clusterer : object with ``fit`` and ``predict``, default=None
        Clusters in the place of k-means, such as scikit-learn's ``GaussianMixture``, fitted as a
        clone on standardised gating features. Kernels count the same in new samples of a cluster
        without training samples.

    Notes
    -----
    Groups that are known are clusters, too: ``gating_features=(["site"], OneHotEncoder())``
    with at least as many clusters as there are sites has one for each of them.

    References
    ----------
    J. Yang, Y. Li, Y. Tian, L. Duan, W. Gao. Group-sensitive multiple kernel learning for object
    categorization. International Conference on Computer Vision, 2009.

    Examples
    --------
    Two straight lines, each of which is right on one side:

    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.gating import PerCluster
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> side = np.repeat([0, 1], 100)
    >>> X = np.column_stack([20.0 * side, rng.uniform(-1, 1, (200, 2))])
    >>> y = np.where(side, X[:, 1], X[:, 2]) > 0
    >>> model = LocalizedSVC(
    ...     [("b", Linear().on([1])), ("c", Linear().on([2]))],
    ...     gating=PerCluster(n_clusters=2),
    ...     gating_features=[0],
    ...     normalize=None,
    ...     C=100.0,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> model.gate(X[[0, 199]]).argmax(axis=1)
    array([1, 0])
    >>> model.gating_coef_["outputs"].shape
    (2, 2)
    """

    n_clusters: int = 5
    clusterer: Any = None

    name: ClassVar[str] = "cluster"

    def __post_init__(self) -> None:
        super().__post_init__()
        number = self.n_clusters
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"n_clusters must be an integer of at least 1, got {number!r}.")
        clusterer = self.clusterer
        unfit = isinstance(clusterer, type) or not (
            hasattr(clusterer, "fit") and hasattr(clusterer, "predict")
        )
        if clusterer is not None and unfit:
            raise TypeError(
                "A clusterer has the methods fit and predict, which says of new samples where "
                f"they belong, such as KMeans(3) or GaussianMixture(3); got {clusterer!r}."
            )

    def features(self, what: Any) -> Any:
        """Indicators of clusters."""
        clusterer = Centres(self.n_clusters) if self.clusterer is None else self.clusterer
        return ClusterIndicators(what, clusterer)


@dataclass(frozen=True)
class PerSample(GroupGate):
    """Kernels count differently in every training sample, and the same in new ones.

    Yang et al. (2010). Whatever was learnt of single samples does not tell how much kernels count
    in others: in a new sample all P of them count 1/P, as in the paper. The training samples are
    new ones, too, when they are passed to ``predict`` or ``gate``; what was learnt of them is in
    ``gating_coef_["outputs"]``, one column for each training sample (of positive weight).
    ``gating_features`` are not looked at.

    Parameters
    ----------
    scale : float, default=0.01
        As in :class:`Gate`.

    Notes
    -----
    There are as many gates as samples, so that the objective can fall far without any gain for
    new samples; :class:`PerCluster` learns from several samples at a time. A sample of weight two
    has one gate, unlike two samples that are equal.

    References
    ----------
    J. Yang, Y. Li, Y. Tian, L. Duan, W. Gao. Per-sample multiple kernel approach for visual
    concept learning. EURASIP Journal on Image and Video Processing, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVR
    >>> from manykernels.kernels import RBF
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> kernels = [("wide", RBF(0.1)), ("narrow", RBF(1.0))]
    >>> model = LocalizedSVR(kernels, gating="instance", random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.gating_coef_["outputs"].shape
    (2, 30)
    >>> model.gate([[1.5]])
    array([[0.5, 0.5]])
    """

    name: ClassVar[str] = "instance"

    def features(self, what: Any) -> Any:
        """Indicators of the training samples themselves."""
        return RowIndicators()


# -- indicators ----------------------------------------------------------------------------------


class ClusterIndicators(TransformerMixin, BaseEstimator):
    """To which cluster a row belongs: a sparse row with a single 1.

    Parameters
    ----------
    what : default=None
        What is clustered, as in :class:`GatingFeatures`.
    clusterer : object with ``fit`` and ``predict``, default=None
        By default :class:`Centres`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_clusters,)
        Labels of the clusters that have training rows. Rows of other clusters are zero.
    """

    reads_table: ClassVar[bool] = True

    def __init__(self, what: Any = None, clusterer: Any = None) -> None:
        self.what = what
        self.clusterer = clusterer

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the clusters of the training rows."""
        self._features = GatingFeatures(self.what).fit(X, y, sample_weight)
        clusterer = Centres() if self.clusterer is None else clone(self.clusterer)
        weighted = has_fit_parameter(clusterer, "sample_weight")
        weights = {"sample_weight": sample_weight} if weighted else {}
        self._clusterer = clusterer.fit(self._features.transform(X), **weights)
        self.labels_ = np.unique(self._labels(X))
        return self

    def transform(self, X: Any) -> Any:
        """Indicators (rows × clusters) of the rows of `X`."""
        check_is_fitted(self, "labels_")
        labels = self._labels(X)
        rows, columns = np.nonzero(labels[:, None] == self.labels_)
        return _indicators(rows, columns, (len(labels), len(self.labels_)))

    def _labels(self, X: Any) -> np.ndarray:
        features = self._features.transform(X)
        # Scikit-learn's clusterers refuse a table without rows.
        return np.asarray(self._clusterer.predict(features)) if len(features) else np.empty(0)


class RowIndicators(TransformerMixin, BaseEstimator):
    """Which training row a row is: a 1 for each of them, and zeros for new rows.

    Rows are told by their position alone: ``fit_transform`` sees the training rows, ``transform``
    new ones, whatever they hold.

    Attributes
    ----------
    n_rows_ : int
        Number of training rows.
    """

    reads_table: ClassVar[bool] = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Count the training rows."""
        self.n_rows_ = num_samples(X)
        if self.n_rows_ < 2:
            raise ValueError(f"A gate cannot be learnt from {self.n_rows_} sample(s).")
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Indicators of the training rows, each its own."""
        every = np.arange(self.fit(X).n_rows_)
        return _indicators(every, every, (len(every), len(every)))

    def transform(self, X: Any) -> Any:
        """Zeros (rows × training rows)."""
        check_is_fitted(self, "n_rows_")
        none = np.empty(0, dtype=np.intp)
        return _indicators(none, none, (num_samples(X), self.n_rows_))


class Centres(BaseEstimator):
    """Clusters by k-means: a row belongs to the nearest of the centres.

    Unlike that of scikit-learn's ``KMeans``, the answer for a row never depends on the rows next
    to it, nor on how far away it is.

    Attributes
    ----------
    centres_ : ndarray of shape (n_centres, n_features)
        At most `n_clusters`: no more than there are rows that differ.
    """

    def __init__(self, n_clusters: int = 5) -> None:
        self.n_clusters = n_clusters

    def fit(self, x: Array, sample_weight: Any = None) -> Self:
        """Find the centres of standardised features."""
        from sklearn.cluster import k_means  # slow to import

        # Rows that are equal are one row with their weight together: the order of rows does not
        # matter, nor whether a row is repeated or has a weight of two.
        distinct, which = np.unique(x.round(_DECIMALS), axis=0, return_inverse=True)
        weights = np.bincount(which.ravel(), weights=sample_weight).astype(np.float64)
        if len(distinct) <= self.n_clusters:
            self.centres_ = distinct
        else:
            options = {"n_init": _N_STARTS, "random_state": 0}
            # scikit-learn limits BLAS to one thread here, and would put back the limit of
            # another fit that happens to run at the same time.
            with one_blas_thread():
                found = k_means(distinct, self.n_clusters, sample_weight=weights, **options)
            self.centres_ = found[0]
        return self

    def predict(self, x: Array) -> np.ndarray:
        """Positions of the nearest centres."""
        # ½‖x − c‖² without ½‖x‖², in which the rest would be lost for rows very far away. Sums
        # of einsum, unlike those of a matrix product, do not depend on the number of rows.
        products = np.einsum("ij,kj->ik", x, self.centres_)
        distances = 0.5 * (self.centres_**2).sum(axis=1) - products
        return np.asarray(distances.argmin(axis=1))


def _indicators(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)

"""
Kernels computed elsewhere
==========================

Similarities often come as matrices. A :class:`~manykernels.KernelStack` holds several of the
same samples and is split by scikit-learn like any X: here in a search for p, λ and the
normalisation.
"""

# %%
# Three matrices of very different scale. ``from_arrays`` refuses what is not a kernel:
# values that are not finite, matrices that are not symmetric or not positive semi-definite.

import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import scale

from manykernels import MKFDA, KernelStack

X, y = load_wine(return_X_y=True)
matrices = {
    "raw": linear_kernel(X),
    "cosine": cosine_similarity(scale(X)),
    "gaussian": rbf_kernel(scale(X)),
}
stack = KernelStack.from_arrays(list(matrices.values()), names=list(matrices))
print(stack)
print("traces:", ", ".join(f"{np.trace(K):.3g}" for K in matrices.values()))

# %%
# A stack is indexed by rows and columns: training samples against themselves to fit, test
# against training samples to predict.

train, test = train_test_split(np.arange(len(y)), stratify=y, random_state=0)
search = GridSearchCV(
    MKFDA(kernels="precomputed"),
    {"p": [1, 2, np.inf], "reg": [0.01, 0.1, 1.0]},
    cv=5,
)
search.fit(stack[np.ix_(train, train)], y[train])
print(f"\nbest of {len(search.cv_results_['params'])} settings: {search.best_params_}")
print(f"accuracy in cross-validation {search.best_score_:.3f}, ", end="")
print(f"held out {search.score(stack[np.ix_(test, train)], y[test]):.3f}")

# %%
# Without normalisation a weight says little: "raw" makes up nearly all of the sum, whatever
# its weight. The other choices make kernels comparable: unit variance in feature space, unit
# length of every sample, or unit trace. The last is the first divided by the number of
# samples, so with λ divided too the weights are the same.

print(f"\n{'normalize':<16}{'reg':>8}" + "".join(f"{name:>10}" for name in stack.names))
for normalize in (None, "multiplicative", "spherical", "trace"):
    reg = 1.0 / len(train) if normalize == "trace" else 1.0
    model = MKFDA("precomputed", p=1, reg=reg, normalize=normalize)
    model.fit(stack[np.ix_(train, train)], y[train])
    weights = "".join(f"{weight:>10.3f}" for weight in model.weights_)
    print(f"{normalize!s:<16}{reg:>8.4f}{weights}")

"""
Precomputed kernels
===================

A :class:`~manykernels.KernelStack` holds several kernel matrices of the same samples. scikit-learn
can split it like any other X, here in a grid search for p and λ.
"""

# %%
# Three matrices of very different scale. ``from_arrays`` raises an error if a matrix contains
# values that are not finite, is not symmetric, or is not positive semi-definite.

import matplotlib.pyplot as plt
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
# A stack is indexed by rows and columns: training rows and columns to fit, test rows and training
# columns to predict.

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
# Without normalisation the weights cannot be compared: "raw" dominates the sum for any weight. The
# other options make the kernels comparable: unit variance in feature space, unit norm of each
# sample, or unit trace. "trace" is "multiplicative" divided by the number of samples, so the
# weights are the same if λ is divided as well.

weights = {}
print(f"\n{'normalize':<16}{'reg':>8}" + "".join(f"{name:>10}" for name in stack.names))
for normalize in (None, "multiplicative", "spherical", "trace"):
    reg = 1.0 / len(train) if normalize == "trace" else 1.0
    model = MKFDA("precomputed", p=1, reg=reg, normalize=normalize)
    model.fit(stack[np.ix_(train, train)], y[train])
    weights[normalize] = model.weights_
    numbers = "".join(f"{weight:>10.3f}" for weight in model.weights_)
    print(f"{normalize!s:<16}{reg:>8.4f}{numbers}")

# %%
# Figure
# ------

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
places = np.arange(len(weights))
for j, name in enumerate(stack.names):
    shares = [learnt[j] / learnt.sum() for learnt in weights.values()]
    ax.bar(places + 0.27 * (j - 1), shares, 0.25, label=name)
ax.set_xticks(places, map(repr, weights))
ax.set(xlabel="normalize", ylim=(0, 1.2), title="share of each matrix in the weights")
ax.legend(frameon=False, ncols=3, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

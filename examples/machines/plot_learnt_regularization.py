"""
Learning the regularisation with the kernels
============================================

With ``reg="joint"`` the regularisation λ is the weight of an additional kernel, the identity, and
is learnt together with the other weights (Ye et al. 2008, section 4). This is one convex problem,
without a grid search. This example applies it to training labels with an increasing share of
errors.
"""

# %%
# In two dimensions no Gaussian kernel of reasonable width fits single samples, so λ has to account
# for the noise. In thirty dimensions all samples are far from each other, and the kernels can
# replace the identity: the learnt λ is zero.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from manykernels import MKFDA, rbf_grid

REGS = np.logspace(-4, 2, 13)
NOISES = [0.0, 0.1, 0.2, 0.3]
N_TRAIN = 200

moons = make_moons(2200, noise=0.15, random_state=0)
cancer = load_breast_cancer(return_X_y=True)
problems = {
    "two moons": (*moons, rbf_grid([0.1, 1.0], gamma=1.0)),
    "breast cancer": (scale(cancer[0]), cancer[1], rbf_grid([0.05, 0.5, 5.0])),
}

# %%
# λ and the weights scale together, so λ is shown relative to the sum of the weights.

results = {}
for name, (X, y, kernels) in problems.items():
    print(
        f"{name:<16}{'λ by search':>12}{'accuracy':>10}{'λ learnt':>12}{'accuracy':>10}  weights"
    )
    results[name] = []
    for noise in NOISES:
        rng = np.random.default_rng(0)
        order = rng.permutation(len(y))
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        labels = np.where(rng.random(N_TRAIN) < noise, 1 - y[train], y[train])
        search = GridSearchCV(MKFDA(kernels, p=1), {"reg": REGS}, cv=5).fit(X[train], labels)
        learnt = MKFDA(kernels, p=1, reg="joint").fit(X[train], labels)
        scores = [model.score(X[test], y[test]) for model in (search, learnt)]
        ratio = learnt.reg_ / learnt.weights_.sum()
        print(
            f"{noise:>8.0%} wrong  {search.best_params_['reg']:>12.1e}{scores[0]:>10.1%}", end=""
        )
        shares = "  ".join(f"{w:.2f}" for w in learnt.weights_ / learnt.weights_.sum())
        print(f"{ratio:>12.1e}{scores[1]:>10.1%}  {shares}")
        results[name].append(scores)

# %%
# On the second problem λ = 0 does not reduce the accuracy: the weights move to the widest kernel
# as the labels get worse. On the first problem the learnt λ increases with the noise. Neither is
# true in general. The objective is a training error; if the result depends much on λ, compare with
# a search.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
for ax, (name, scores) in zip(axes, results.items(), strict=True):
    for label, color, values in zip(
        ["search", "learnt"], ["#7f7f7f", "#1f4e79"], np.transpose(scores), strict=True
    ):
        ax.plot(NOISES, values, "o-", color=color, label=label)
    ax.set_title(name, loc="left", weight="bold")
    ax.set_xlabel("share of wrong training labels")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("accuracy on clean labels")
axes[0].legend(frameon=False)
plt.show()

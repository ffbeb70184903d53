"""
Choosing the norm and the penalty of a support vector machine
=============================================================

:class:`MKSVCCV` evaluates a small grid of norms p and penalties C by five-fold cross-validation.
The kernel weights and the machines are learnt again in each fold. Each fit is warm-started from
its neighbours, so the whole grid of twelve points takes the time of about thirty fits.
"""

# %%
# Six views of digits and three views of noise. Other points of the grid are nearly as good as the
# best: ``one_standard_error`` selects the largest p within one standard error of the best.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manykernels import MKSVCCV
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

views, y = load_digit_views(noise=3)
X_train, X_test, y_train, y_test = train_test_split(
    views, y, train_size=300, stratify=y, random_state=0
)
kernel = RBF(gamma="median")
models = {
    "best": MKSVCCV(kernel).fit(X_train, y_train),
    "simplest": MKSVCCV(kernel, one_standard_error=True).fit(X_train, y_train),
}
for name, model in models.items():
    n_kernels = np.count_nonzero(model.weights_)
    print(f"{name}: p = {model.p_:.3g}, C = {model.C_:.3g}, {n_kernels} kernels of 9")
    print(
        f"  accuracy in folds {model.best_score_:.1%}, held-out {model.score(X_test, y_test):.1%}"
    )

# %%
# The decision values of held-out samples are unbiased. They are also used to calibrate
# probabilities.

loss = log_loss(y_test, models["best"].predict_proba(X_test))
print(f"log loss {loss:.3f}; of equal probabilities it is {np.log(10):.3f}")

# %%
# Scores of the grid, with standard errors over the five folds.

results = models["best"].cv_results_
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for p, color in zip(np.unique(results["param_p"]), ["#c55a11", "#7f7f7f", "#1f4e79"], strict=True):
    at_p = results["param_p"] == p
    ax.errorbar(
        results["param_C"][at_p],
        results["mean_test_score"][at_p],
        results["se_test_score"][at_p],
        color=color,
        marker="o",
        capsize=3,
        label=f"p = {p:.3g}" if p < np.inf else "p = ∞, the plain sum",
    )
ax.set(xscale="log", xlabel="C", ylabel="accuracy of held-out samples")
ax.legend(frameon=False)
plt.show()

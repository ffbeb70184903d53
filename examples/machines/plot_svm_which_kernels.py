"""
Which kernels does a support vector machine use?
================================================

:class:`~manykernels.MKSVC` learns kernel weights together with a support vector machine on the
weighted sum of the kernels. Here the kernels are six views of handwritten digits and three views
of noise. The norm p controls how many of them are used, and ``multi_class`` whether all digits
share the weights or each digit has its own.
"""

# %%
# One Gaussian kernel per view, with 500 training images and the others for testing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from manykernels import MKSVC, kernels_for
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

views, y = load_digit_views(noise=3)
X_train, X_test, y_train, y_test = train_test_split(
    views, y, train_size=500, stratify=y, random_state=0
)
union = kernels_for(X_train, RBF(gamma="median")).fit(X_train)
train, test = union(X_train), union(X_test, X_train)
is_noise = np.array([name.startswith("noise") for name in views])

# %%
# Three norms
# -----------
# For each p, the certificate proves that no other weights lower the objective by more than the
# relative gap. The cost is the number of SVM solves; each of them trains ten machines, one per
# digit.

NORMS = {"1": 1, "2": 2, "∞": np.inf}
shared = {name: MKSVC("precomputed", p=p, C=1.0).fit(train, y_train) for name, p in NORMS.items()}
print(f"{'p':<4}{'kernels used':>14}{'test accuracy':>15}{'certified gap':>15}{'SVM solves':>12}")
for name, model in shared.items():
    print(
        f"{name:<4}{np.count_nonzero(model.weights_):>14d}{model.score(test, y_test):>15.1%}"
        f"{model.certificate_.rel_gap:>15.0e}{model.n_inner_solves_:>12d}"
    )

# %%
# Weights for each digit
# ----------------------
# ``multi_class="separate"`` learns ten weight vectors instead of one.

separate = MKSVC("precomputed", p=1, C=1.0, multi_class="separate").fit(train, y_train)
print(f"\nweights shared, p = 1:    test accuracy {shared['1'].score(test, y_test):.1%}")
print(f"weights separate, p = 1:  test accuracy {separate.score(test, y_test):.1%}")

# %%
# At p = 1 the weights of the noise are zero. At p = 2 they are as large as that of the weakest
# view, at p = ∞ as large as all others. Separate weights differ between the digits; each digit has
# less data to learn from, and some digits give a little weight to noise.

BLUE, PALE = "#2a6f97", "#b8b8b8"
fig = plt.figure(figsize=(11, 3.8), layout="constrained")
*axes, wide = fig.subplots(1, 4, sharey=True, width_ratios=[1, 1, 1, 2.4])
for ax, (name, model) in zip(axes, shared.items(), strict=True):
    share = 100 * model.weights_ / model.weights_.sum()
    bars = ax.barh(range(len(views.names)), share, 0.72, color=np.where(is_noise, PALE, BLUE))
    ax.bar_label(bars, [f"{part:.0f}" if part else "0" for part in share], padding=3)
    ax.set_title(f"p = {name}", loc="left", weight="bold", fontsize=10)
    ax.set_xlim(0, 48)
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
axes[0].set_yticks(range(len(views.names)), views.names)
axes[0].invert_yaxis()

percent = 100 * separate.weights_.T
wide.imshow(percent, cmap="Blues", vmin=0, vmax=100, aspect="auto")
for (row, column), value in np.ndenumerate(percent):
    color = "white" if value > 55 else "#1b1b1b"
    text = f"{value:.0f}" if value >= 0.5 else "·"
    wide.text(column, row, text, ha="center", va="center", color=color, fontsize=9)
wide.set_xticks(range(10), separate.classes_)
wide.set_xlabel("digit")
wide.tick_params(length=0)
wide.spines[:].set_visible(False)
wide.set_title("p = 1, weights of each digit", loc="left", weight="bold", fontsize=10)
fig.suptitle("Share of each kernel in the weights, per cent", x=0.01, ha="left")
plt.show()

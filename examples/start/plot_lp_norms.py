"""
From few kernels to the plain sum
=================================

The weights satisfy ``‖weights‖_p ≤ 1``, so the norm p controls their sparsity: p = 1 selects a few
kernels, p = ∞ is the plain sum of all kernels. The values in between are those of Yan et al.
(2012).
"""

# %%
# The kernel matrices are computed once and passed to all fits.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from manykernels import MKFDA, kernels_for
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

NORMS = [1, *(1 + 2.0**-k for k in range(6, 0, -1)), 2, 3, 4, 8, np.inf]

views, y = load_digit_views(noise=3)
X_train, X_test, y_train, y_test = train_test_split(
    views, y, train_size=400, stratify=y, random_state=0
)
union = kernels_for(X_train, RBF(gamma="median")).fit(X_train)
train = union(X_train)
test = union(X_test, X_train)

# %%
# The sum of the weights depends on p, so we compare the share of each weight in the sum.

shares = []
print(f"{'p':<10}{'above 0.01%':>13}{'share of noise':>16}{'accuracy':>10}")
for p in NORMS:
    model = MKFDA("precomputed", p=p, reg=3.0).fit(train, y_train)
    share = model.weights_ / model.weights_.sum()
    noise = sum(share[train.names.index(name)] for name in views if name.startswith("noise"))
    accuracy = model.score(test, y_test)
    print(f"{p:<10.7g}{np.count_nonzero(share > 1e-4):>13d}{noise:>16.1%}{accuracy:>10.1%}")
    shares.append(share)

# %%
# The share of noise increases with p, up to a third for the plain sum. The accuracy does not
# decrease, because the sum of the weights grows from 1 to 9, so the same λ regularises less. For a
# fair comparison, tune λ for each p, for example by a grid search.

percent = 100 * np.array(shares).T
fig, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
ax.imshow(percent, cmap="Blues", vmin=0, vmax=45, aspect="auto")
for (row, column), value in np.ndenumerate(percent):
    color = "white" if value > 27 else "#1b1b1b"
    text = f"{value:.0f}" if value >= 0.5 else "·"
    ax.text(column, row, text, ha="center", va="center", color=color, fontsize=9)
ax.set_xticks(range(len(NORMS)), [f"{p:.3g}" if p < np.inf else "∞" for p in NORMS])
ax.set_yticks(range(len(views.names)), views.names)
ax.axhline(len(views.names) - 3.5, color="white", linewidth=4)
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
ax.set_xlabel("p")
ax.set_title("Share of each kernel in the weights, per cent", loc="left", weight="bold")
plt.show()

"""
Choosing the norm and the regularisation
========================================

The best sparsity of the weights depends on the data: p = 1 is suitable if few kernels matter,
p = ∞ if all do. :class:`MKFDACV` evaluates a grid of norms and regularisations by five-fold
cross-validation. The weights are learnt again in each fold, along a certified path.
"""

# %%
# Six views of digits, with and without three additional views of noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from manykernels import MKFDACV
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF
from manykernels.solvers.path import PAPER_NORMS

models = {}
for noise in (0, 3):
    views, y = load_digit_views(noise=noise)
    X_train, X_test, y_train, y_test = train_test_split(
        views, y, train_size=300, stratify=y, random_state=0
    )
    model = MKFDACV(RBF(gamma="median"), ps=PAPER_NORMS, scoring="neg_log_loss")
    model.fit(X_train, y_train)
    models[noise] = model
    results = model.cv_results_
    print(f"{noise} views of noise: p = {model.p_:.4g}, λ = {model.reg_:.3g}")
    print(f"  held-out accuracy {model.score(X_test, y_test):.1%}")
    print(f"  {len(results['params'])} models, {results['n_inner_solves'].sum()} factorisations")
    print(f"  largest relative gap {results['rel_gap'].max():.0e}")

# %%
# Each point of the grid is solved to a certified gap in each fold. So differences between scores
# are due to the models and not to the accuracy of the solver.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, (noise, model) in zip(axes, models.items(), strict=True):
    curve = -model.validation_curve()
    image = ax.imshow(np.log10(curve), cmap="Blues_r", aspect="auto")
    best = np.unravel_index(np.argmin(curve), curve.shape)
    ax.plot(best[1], best[0], "o", color="#c55a11", markersize=9)
    ps = np.unique(model.cv_results_["param_p"])
    regs = np.unique(model.cv_results_["param_reg"])
    ax.set_xticks(range(0, len(regs), 3), [f"{reg:.0e}" for reg in regs[::3]])
    ax.set_yticks(range(len(ps)), [f"{p:.4g}" if p < np.inf else "∞" for p in ps])
    ax.set_title(f"{noise} views of noise", loc="left", weight="bold")
    ax.set_xlabel("λ")
axes[0].set_ylabel("p")
fig.colorbar(image, ax=axes, label="log loss of held-out samples, log10")
plt.show()

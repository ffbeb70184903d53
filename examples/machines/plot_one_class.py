"""
Outlier detection with several kernel widths
============================================

:class:`~manykernels.MKOneClassSVM` finds a boundary around most of the samples, without labels of
outliers. How tight the boundary is depends on the width of the kernel. With several widths, the
weights are learnt: p = 1 selects the wide kernels, under which the samples are most similar. With
larger p the narrow kernels contribute, and the boundary follows the shape of the data.
"""

# %%
# Two half circles with a little noise, and ten outliers at some distance from them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import pairwise_distances_argmin_min

from manykernels import MKOneClassSVM
from manykernels.kernels import RBF

WIDTHS = [0.15, 0.3, 0.6, 1.2]

rng = np.random.default_rng(0)
normal, _ = make_moons(240, noise=0.07, random_state=0)
anywhere = rng.uniform([-1.6, -1.1], [2.6, 1.6], (100, 2))
_, distance = pairwise_distances_argmin_min(anywhere, normal)
outliers = anywhere[distance > 0.25][:10]
X = np.vstack([normal, outliers])
kernels = [(f"{width:g}", RBF(0.5 / width**2)) for width in WIDTHS]

# %%
# ν bounds the share of samples outside of the boundary; 4% of the samples are outliers. All norms
# find the same number of outliers. At p = 1, where only the widest kernel is used, more of the
# normal samples are outside.

NORMS = {"1": 1, "4": 4, "∞": np.inf}
models = {name: MKOneClassSVM(kernels, p=p, nu=0.06).fit(X) for name, p in NORMS.items()}
print(f"{'p':<4}{'outliers found':>16}{'normal left outside':>22}{'certified gap':>15}")
for name, model in models.items():
    found = np.count_nonzero(model.predict(outliers) < 0)
    lost = np.count_nonzero(model.predict(normal) < 0)
    print(
        f"{name:<4}{f'{found} of 10':>16}{f'{lost} of 240':>22}{model.certificate_.rel_gap:>15.0e}"
    )

# %%
# The inside of the boundary is shaded, and support vectors are circled. The boundary of the plain
# sum has a hole, and an island next to two outliers. The bars show the weight of each width.

BLUE, ORANGE, INK = "#2a6f97", "#c55a11", "#1b1b1b"
x1, x2 = np.meshgrid(np.linspace(-1.9, 2.9, 180), np.linspace(-1.4, 1.9, 140))
grid = np.column_stack([x1.ravel(), x2.ravel()])
fig, axes = plt.subplots(2, 3, figsize=(11, 4.8), height_ratios=[3, 1], layout="constrained")
for (ax, bars), (name, model) in zip(axes.T, models.items(), strict=True):
    values = model.decision_function(grid).reshape(x1.shape)
    ax.contourf(x1, x2, values, levels=[0, np.inf], colors=[BLUE], alpha=0.15)
    ax.contour(x1, x2, values, levels=[0], colors=[BLUE], linewidths=2)
    ax.plot(*normal.T, ".", ms=4, color="#767676", label="normal")
    ax.plot(*outliers.T, "X", ms=7, mec="white", color=ORANGE, label="outlier")
    ax.plot(*X[model.support_].T, "o", ms=9, mfc="none", mec=INK, mew=0.8, label="support vector")
    ax.set_title(f"p = {name}", loc="left", weight="bold", fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal")
    drawn = bars.bar([kernel for kernel, _ in kernels], model.weights_, color=BLUE)
    bars.bar_label(drawn, [f"{weight:.2f}" for weight in model.weights_], padding=2, fontsize=8)
    bars.set_ylim(0, 1.25)
    bars.set_yticks([])
    bars.set_xlabel("width of the kernel")
    bars.spines[["top", "right", "left"]].set_visible(False)
axes[1, 0].set_ylabel("weight")
fig.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False
)
plt.show()

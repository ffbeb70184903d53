"""
How many localized kernels are needed?
======================================

How many copies of a kernel should be passed to :class:`~manykernels.LocalizedSVC`? On the four
Gaussians of figure 1 of Gönen and Alpaydın (2013), three linear kernels are enough. Their figure 2
shows that more kernels do no harm, except that they take more time. This example reproduces that
figure.
"""

# %%
# One to eight linear kernels on five data sets of 200 points, from one random start. Three kernels
# are also fitted with the best of five starts.

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

from manykernels import LocalizedSVC
from manykernels.datasets import make_gauss4
from manykernels.gating import Softmax
from manykernels.kernels import Polynomial

NUMBERS = np.arange(1, 9)
REPEATS = 5


# Settings of the paper: gates of all columns, learnt until the objective converges.
PAPER = {"features": slice(None), "penalty": 0.0, "early_stopping": 0, "quasi_newton": False}


def evaluate(number, n_init, repeat):
    """Return test accuracy and share of support vectors, in per cent, and seconds of one fit."""
    rng = np.random.default_rng(repeat)
    (X, y), (X_test, y_test) = (make_gauss4(n, random_state=rng) for n in (200, 3000))
    lines = [(f"line {j}", Polynomial(1, gamma=1.0)) for j in range(number)]
    gate = Softmax(n_init=n_init, random_state=repeat, **PAPER)
    model = LocalizedSVC(lines, C=10.0, gating=gate, normalize="spherical", tol=1e-3)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return 100 * model.score(X_test, y_test), 100 * len(model.support_) / len(X), seconds


evaluate(1, 1, 0)  # loads compiled code before times are measured
results = np.array([[evaluate(n, 1, repeat) for repeat in range(REPEATS)] for n in NUMBERS])
three = np.median([evaluate(3, 5, repeat) for repeat in range(REPEATS)], axis=0)

print(f"{'kernels':<18}{'test accuracy':>14}{'support vectors':>17}{'seconds':>9}   (medians)")
medians = np.median(results, axis=1)
labels = [*(str(number) for number in NUMBERS), "3, best of 5"]
for label, (accuracy, support, seconds) in zip(labels, [*medians, three], strict=True):
    print(f"{label:<18}{accuracy:>13.1f}%{support:>16.1f}%{seconds:>9.2f}")

# %%
# Each dot is one data set, and the line is the median. One or two linear kernels are not enough.
# With three, a random start may end in a poor local minimum; more starts find a better one
# (diamond), and so do more kernels. From three kernels on, the time hardly increases here.

TITLES = ["Test accuracy, %", "Support vectors, %", "Training time, seconds"]
BLUE, ORANGE = "#2a6f97", "#c55a11"
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for i, (ax, title) in enumerate(zip(axes, TITLES, strict=True)):
    ax.plot(NUMBERS, results[..., i], "o", ms=4, mew=0, color="#9a9a9a")
    ax.plot(NUMBERS, medians[:, i], "o-", color=BLUE, lw=2, label="median")
    ax.plot(3, three[i], "D", ms=8, color=ORANGE, mec="white", label="median, best of five starts")
    ax.set_title(title, loc="left", weight="bold", fontsize=10)
    ax.set_xlabel("linear kernels")
    ax.set_xticks(NUMBERS)
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_ylim(bottom=0)
axes[2].set_ylim(bottom=0)
draws = Line2D([], [], color="#9a9a9a", ls="", marker="o", ms=4, label="one draw")
handles = [draws, *axes[0].get_legend_handles_labels()[0]]
fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
plt.show()

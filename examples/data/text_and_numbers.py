"""
Texts and numbers together
==========================

Offers of flats have a text, some numbers and a district, all in one data frame. Each kernel has
its own columns and its own preprocessing, which is fitted again in every split of a search.
"""

# %%
# Offers
# ------
# Whether a flat is let quickly depends on its price per square metre, on its district, and on
# words in the text.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

from manykernels import MKSVC, view_importance
from manykernels.kernels import RBF, Categorical, Cosine

rng = np.random.default_rng(0)
n = 300
good = ["bright", "balcony", "quiet street", "garden", "renovated", "near the park"]
bad = ["basement", "busy road", "needs work", "no lift", "shared bath", "noisy"]
plain = ["two rooms", "kitchen", "available now", "first floor", "heating included", "cellar"]

quality = rng.normal(size=n)
texts = []
for value in quality:
    is_good = rng.random(4) < 1 / (1 + np.exp(-1.5 * value))
    words = [rng.choice(good if flag else bad) for flag in is_good]
    words += list(rng.choice(plain, 4, replace=False))
    texts.append(", ".join(rng.permutation(words)))
size = rng.uniform(25, 120, n)
district = rng.choice(["centre", "harbour", "hills", "station"], n)
liked = pd.Series(district).map({"centre": 0.8, "harbour": 0.4, "hills": 0.0, "station": -1.2})
price = size * rng.normal(14, 3, n)
offers = pd.DataFrame({"text": texts, "size": size, "price": price, "district": district})
appeal = 1.2 * quality + liked.to_numpy() - 0.5 * (price / size - 14) + rng.normal(0, 0.5, n)
quick = np.where(appeal > 0, "quick", "slow")
print(offers.head(3).to_string(max_colwidth=44))

# %%
# One kernel for each type of column
# ----------------------------------

kernels = {
    "text": Cosine().on("text").after(TfidfVectorizer()),
    "numbers": RBF().on(["size", "price"]).after(StandardScaler()),
    "district": Categorical().on(["district"]),
}
model = MKSVC(kernels)
print("\naccuracy in five folds")
for name, kernel in kernels.items():
    print(f"  {name + ' alone':<18}{cross_val_score(MKSVC(kernel), offers, quick).mean():.1%}")
print(f"  {'all three':<18}{cross_val_score(model, offers, quick).mean():.1%}")

# %%
# Parameters of transformers are parameters of the model
# ------------------------------------------------------

grid = {
    "C": [1.0, 10.0],
    "kernels__text__transformer__ngram_range": [(1, 1), (1, 2)],
    "kernels__numbers__kernel__width": [1.0, 3.0],
}
search = GridSearchCV(model, grid).fit(offers, quick)
print(f"\nbest of {len(search.cv_results_['params'])} settings: {search.best_score_:.1%}")
for name, value in search.best_params_.items():
    print(f"  {name} = {value}")

# %%
# Importance of each kernel
# -------------------------

importance = view_importance(search.best_estimator_, offers, quick, random_state=0)
print(f"\n{importance}")

importance.plot()
plt.show()

"""
A table with missing cells
==========================

Numbers, labels and booleans in one data frame, a third of the numbers missing. Missing cells are
integrated out; nothing is imputed or dropped.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bnpstream import StreamingMixture
from bnpstream.evaluation import agreement

rng = np.random.default_rng(0)
kind = rng.integers(3, size=900)
table = pd.DataFrame(
    {
        "weight": np.array([20.0, 35.0, 60.0])[kind] + 4.0 * rng.normal(size=900),
        "height": np.array([1.2, 1.6, 1.4])[kind] + 0.1 * rng.normal(size=900),
        "colour": np.where(rng.random(900) < 0.8, np.array(["red", "green", "blue"])[kind], "grey"),
        "sold": rng.random(900) < np.array([0.2, 0.5, 0.8])[kind],
    }
)
for name in ("weight", "height"):
    table.loc[rng.random(900) < 1 / 3, name] = np.nan
table.head()

# %%

model = StreamingMixture().fit(table)
clusters = model.predict(table)
print(f"{model.n_clusters_} clusters")
agreement(kind, clusters)

# %%
# Clusters in the plane of the two numbers. Rows with one missing number are drawn at the edge.

_, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
weight, height = table["weight"].fillna(2.0), table["height"].fillna(0.8)
for k in np.argsort(-model.weights_)[:3]:
    ax.scatter(weight[clusters == k], height[clusters == k], s=8, label=f"{model.weights_[k]:.0%}")
ax.set(xlabel="weight (missing at the left)", ylabel="height (missing at the bottom)")
ax.legend(frameon=False, title="share", loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

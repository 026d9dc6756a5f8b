"""
Which rows are new?
===================

``novelty`` is the probability that a row belongs to no cluster so far. ``novelty_quantile``
compares a row with the last rows of the stream, so a threshold of .99 means the same on any
data.
"""

import matplotlib.pyplot as plt
import numpy as np

from bnpstream import StreamingMixture

rng = np.random.default_rng(0)
centres = np.array([[-4.0, -2.0], [3.0, 3.0], [4.0, -4.0]])
rows = centres[rng.integers(3, size=3000)] + rng.normal(size=(3000, 2)) * [1.0, 0.6]
model = StreamingMixture().fit(rows)

# %%
# Both, on a grid:

x, y = np.meshgrid(np.linspace(-10, 10, 120), np.linspace(-9, 9, 108))
grid = np.column_stack([x.ravel(), y.ravel()])
_, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), sharey=True, layout="constrained")
for ax, method in zip(axes, (model.novelty, model.novelty_quantile), strict=True):
    shade = ax.pcolormesh(x, y, method(grid).reshape(x.shape), cmap="Blues", vmin=0, vmax=1)
    ax.plot(*rows[:600].T, ".", color="#d55e00", markersize=1.5)
    ax.set_title(method.__name__, fontsize="medium")
plt.colorbar(shade, ax=axes)
plt.show()

# %%
# About 1 % of further rows from the same source exceed .99; rows from elsewhere all do:

same = centres[rng.integers(3, size=2000)] + rng.normal(size=(2000, 2)) * [1.0, 0.6]
other = rng.normal([-6.0, 6.0], 1.0, size=(200, 2))
for name, some in (("same source", same), ("elsewhere", other)):
    print(f"{name}: {np.mean(model.novelty_quantile(some) > 0.99):.1%}")

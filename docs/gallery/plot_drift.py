"""
A stream that changes
=====================

Four kinds of rows; every 1 000 rows one of them is replaced by another. With a half-life,
clusters of kinds that have gone lose their mass and are retired, and the model stays small.
"""

import matplotlib.pyplot as plt
import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture

rng = np.random.default_rng(0)
kinds = rng.dirichlet(np.full(60, 0.1), size=8)
active = [range(step, step + 4) for step in range(5) for _ in range(1000)]
rows = np.array([rng.multinomial(30, kinds[rng.choice(list(now))]) for now in active])

# %%
# The same stream with and without forgetting, 100 rows at a time:

models = {
    "keeps everything": StreamingMixture(likelihood=DirichletMultinomial(0.1)),
    "half-life of 100 rows": StreamingMixture(likelihood=DirichletMultinomial(0.1), half_life=100),
}
history = {name: [] for name in models}
for batch in np.split(rows, 50):
    for name, model in models.items():
        model.partial_fit(batch)
        history[name].append(dict(zip(model.cluster_ids_.tolist(), model.weights_, strict=True)))

_, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
seen = np.arange(100, 5001, 100)
for name, shares in history.items():
    axes[0].plot(seen, [len(then) for then in shares], label=name)
axes[0].set(xlabel="rows seen", ylabel="clusters", ylim=(0, None))
axes[0].legend(frameon=False)
shares = history["half-life of 100 rows"]
ids = sorted(set().union(*shares))
axes[1].stackplot(seen, [[then.get(id, 0.0) for then in shares] for id in ids])
axes[1].set(xlabel="rows seen", ylabel="share of each cluster", title="half-life of 100 rows")
axes[1].set(xlim=(100, 5000), ylim=(0, 1))
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# ``lineage_frame`` tells when clusters were born and retired:

events = models["half-life of 100 rows"].lineage_frame()
events[events["level"] == "cluster"][["row", "kind", "id", "mass"]].round(1)

"""
How many clusters?
==================

The prior says how the number of clusters grows with the number of rows: like the logarithm under
a Dirichlet process, like a power under processes with a discount. State what you expect instead
of choosing parameters.
"""

import matplotlib.pyplot as plt
import numpy as np

from bnpstream import (
    PitmanYor,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)

priors = {
    "Dirichlet process": dirichlet_process(),
    "normalized inverse Gaussian": normalized_inverse_gaussian(),
    "Pitman-Yor, discount .3": PitmanYor(concentration=1.0, discount=0.3),
}
rows = np.unique(np.logspace(0, 6, 40).astype(int))
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, prior in priors.items():
    prior = prior.with_expected_clusters(200, n=10_000)
    ax.loglog(rows, [prior.expected_clusters(int(n)) for n in rows], label=name)
ax.plot(10_000, 200, "o", color="0.2")
ax.annotate("200 clusters in 10 000 rows", (10_000, 200), (14_000, 90))
ax.set(xlabel="rows", ylabel="expected clusters")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# By default the concentration is learnt from the stream, so the number follows from the data:

for true in (3, 10, 30):
    rng = np.random.default_rng(true)
    centres = 12.0 * rng.normal(size=(true, 5))
    drawn = centres[rng.integers(true, size=3000)] + rng.normal(size=(3000, 5))
    found = np.sum(StreamingMixture().fit(drawn).weights_ > 0.005)
    print(f"{true:2} groups drawn, {found:2} clusters with more than .5 % of the rows")

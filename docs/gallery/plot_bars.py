"""
One pass over bars
==================

The synthetic data of the paper: images of 8 x 8 pixels with one bar each, 16 bars in all, as
counts of ink. One pass finds the bars without being told how many there are.
"""

import matplotlib.pyplot as plt

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars
from bnpstream.plots import plot_means

images = bars(n_images=200, seed=0)
side = int(images.counts.shape[1] ** 0.5)
rows = images.counts[:8].toarray().reshape(-1, side, side)
_, axes = plt.subplots(1, 8, figsize=(8, 1.3), layout="constrained")
for ax, image in zip(axes, rows, strict=True):
    ax.imshow(image, cmap="gray_r")
    ax.set_axis_off()
plt.suptitle("the first eight images", fontsize="medium")
plt.show()

# %%
# The posterior means of the clusters, with their shares of the stream:

model = StreamingMixture(
    prior=normalized_inverse_gaussian(concentration=10, tilt=100),
    likelihood=DirichletMultinomial(alpha=0.5),
    merge_threshold=0.0,
).fit(images.counts)
plot_means(model.means_, model.weights_, (side, side))
# sphinx_gallery_thumbnail_number = 2
plt.show()

# %%
# The number of clusters and the log evidence of every row, one step ahead, show how fast it
# learnt them.

seen, clusters = [], []
stream = StreamingMixture(prior=model.prior, likelihood=model.likelihood)
for start in range(0, 200, 10):
    stream.partial_fit(images.counts[start : start + 10])
    seen.append(start + 10)
    clusters.append(stream.n_clusters_)
whole = StreamingMixture(prior=model.prior, likelihood=model.likelihood).fit(images.counts)
_, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
axes[0].step(seen, clusters, where="post")
axes[0].axhline(16, color="0.6", linestyle=":")
axes[0].set(xlabel="images seen", ylabel="clusters")
axes[1].plot(whole.log_evidence_, ".", markersize=3)
axes[1].set(xlabel="image", ylabel="log evidence (nats)")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

"""
Handwritten digits
==================

scikit-learn's 1 797 handwritten digits, each a document of ink over 64 pixels. There are more
clusters than digits, because people write a digit in several ways.
"""

import matplotlib.pyplot as plt
import numpy as np

from bnpstream import StreamingMixture
from bnpstream.datasets import digits
from bnpstream.evaluation import agreement, majority_labels
from bnpstream.plots import plot_means

data = digits()
order = np.random.default_rng(0).permutation(data.counts.shape[0])
images, labels = data.counts[order], data.labels[order]
model = StreamingMixture().fit(images)

# %%
# The 32 largest clusters, each with its share of the stream and the digit that most of its images
# show:

positions = model.predict(images)
digit, _ = majority_labels(labels, positions, model.n_clusters_)
largest = np.argsort(-model.weights_)[:32]
captions = [f"mostly {digit[k]}" if digit[k] >= 0 else "" for k in largest]
plot_means(model.means_[largest], model.weights_[largest], (8, 8), captions)
plt.show()

# %%
# Agreement of the clusters with the digits, which the model never saw:

agreement(labels, positions)

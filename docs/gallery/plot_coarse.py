"""
From fine to coarse
===================

Prediction prefers many small clusters. ``coarsened`` merges them into as many groups as you want
to look at, two at a time, each time those whose merge costs the least log evidence. The model
itself does not change.
"""

import matplotlib.pyplot as plt

from bnpstream import StreamingMixture
from bnpstream.datasets import synthetic_corpus
from bnpstream.evaluation import agreement
from bnpstream.plots import plot_tree

corpus = synthetic_corpus(n_documents=1500, n_words=400, mean_length=60, seed=0)
model = StreamingMixture().fit(corpus.counts)
print(f"{model.n_clusters_} clusters")
plot_tree(model.merge_tree(), levels=(3, 6, 12))
plt.show()

# %%
# Any level of the tree is a model that predicts:

for n_groups in (3, 6, 12):
    coarse = model.coarsened(n_groups)
    nmi = agreement(corpus.labels, coarse.predict(corpus.counts)).nmi
    print(f"{coarse.n_clusters_:2} groups: NMI {nmi:.2f} with the components drawn")

"""
Topics of texts
===============

Cluster the descriptions of functions and classes in the installed NumPy, SciPy and scikit-learn,
with default settings. The model sees text only, no module names.
"""

import matplotlib.pyplot as plt

from bnpstream import DocumentMixture
from bnpstream.datasets import docstrings
from bnpstream.evaluation import agreement

found = docstrings()
texts = [one.text for one in found]
model = DocumentMixture().fit(texts)
print(f"{len(texts)} texts, {model.n_clusters_} clusters, {model.topics_.size} topics")

# %%
# Clusters are fine-grained; topics are groups of clusters for people to read. ``topics_frame``
# lists the words that distinguish each topic from the others.

topics = model.topics_frame().sort_values("share", ascending=False).head(12)
names = [", ".join(words[:4]) for words in topics["words"]]
_, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.barh(names, topics["share"], color="#0072b2")
ax.invert_yaxis()
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_xlabel("share of the texts")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How well do topics agree with the modules that the texts come from?

modules = [one.module for one in found]
agreement(modules, model.predict_topics(texts))

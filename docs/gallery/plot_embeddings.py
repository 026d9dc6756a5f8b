"""
Embeddings
==========

Vectors of unit length are recognised as directions. Here texts are turned into vectors by tf-idf
and a singular value decomposition; any sentence encoder can take their place.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from bnpstream import StreamingMixture
from bnpstream.datasets import docstrings

texts = docstrings()
words = TfidfVectorizer(stop_words="english", min_df=3).fit_transform(one.text for one in texts)
vectors = normalize(TruncatedSVD(50, random_state=0).fit_transform(words)).astype(np.float32)
kept = np.linalg.norm(vectors, axis=1) > 0
vectors = vectors[kept]

model = StreamingMixture()
for batch in np.array_split(vectors, 5):  # the split does not matter
    model.partial_fit(batch)
print(f"{len(vectors)} vectors, {model.n_clusters_} clusters, {model.topics_.size} topics")

# %%
# The six largest topics, each with the module that most of its texts come from, in the plane that
# separates them best:

modules = np.array([one.module for one in texts])[kept]
topics = model.predict_topics(vectors)
ids, sizes = np.unique(topics, return_counts=True)
largest = ids[np.argsort(-sizes)[:6]]
some = np.isin(topics, largest)
plane = LinearDiscriminantAnalysis(n_components=2).fit(vectors[some], topics[some])
_, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
for id in largest:
    x, y = plane.transform(vectors[topics == id]).T
    names, counts = np.unique(modules[topics == id], return_counts=True)
    ax.scatter(x, y, s=6, label=f"topic {id}: {names[counts.argmax()]}")
ax.legend(frameon=False, markerscale=3, loc="center left", bbox_to_anchor=(1, 0.5))
ax.set_axis_off()
plt.show()

# %%
# A vector that points nowhere near the others is novel:

rng = np.random.default_rng(0)
odd = normalize(rng.normal(size=(1, 50))).astype(np.float32)
print("quantile of an ordinary vector:", model.novelty_quantile(vectors[:1]).round(2))
print("quantile of a random one:      ", model.novelty_quantile(odd).round(3))

"""Groups in the report, and as a picture."""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from bnpstream.inference.tree import MergeTree
from bnpstream.plots import plot_tree
from bnpstream.report import render_report
from bnpstream.runs.description import Feature, GroupDescription, TreeDescription
from run_examples import small_run

TREE = MergeTree(
    np.array([0, 1, 2, 3]),
    np.array([1.0, 4.0, 3.0, 2.0]),
    np.array([[0, 3], [1, 2], [4, 5]]),
    np.zeros(3),
)


def group(id, weight, n_clusters, parent, word):
    return GroupDescription(id, weight, n_clusters, parent, [Feature(word, 0.1, 2.0)], [])


def test_boxes_stand_on_what_they_are_made_of():
    ax = Figure().subplots()
    plot_tree(TREE, [2, 3], {1: "sea ship", 3: "sun"}, ax=ax)
    coarse, fine = (
        [(box.vertices[0, 0], box.vertices[1, 0]) for box in part.get_paths()]
        for part in ax.collections
    )
    lefts = [[left for left, _ in boxes] for boxes in (coarse, fine)]
    assert np.allclose(lefts[0], [0.0, 0.7])  # clusters 1 and 2 hold .7, 3 and 0 the rest
    assert np.allclose(lefts[1], [0.0, 0.4, 0.7])  # TREE joins 1 and 2 after 0 and 3
    assert [text.get_text() for text in ax.texts] == ["sea ship", "sun", "sea ship", "2", "sun"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2", "3"]


def test_a_thousand_clusters_stay_light():
    rng = np.random.default_rng(3)
    children = [[0, 1], *([j, 998 + j] for j in range(2, 1000))]
    tree = MergeTree(np.arange(1000), rng.random(1000), np.array(children), np.zeros(999))
    ax = Figure().subplots()
    plot_tree(tree, ax=ax)
    assert [len(part.get_paths()) for part in ax.collections] == [5, 20, 80]


def test_the_page_lists_groups_and_what_they_are_made_of():
    levels = [
        [group(1, 0.7, 2, 1, "water"), group(3, 0.3, 2, 1, "<i>light</i>")],
        [group(1, 0.4, 1, 1, "ship"), group(2, 0.3, 1, 1, "fish"), group(3, 0.3, 2, 3, "sun")],
    ]
    page = render_report(replace(small_run(), tree=TreeDescription(TREE, levels)))
    section = page[page.index('<section id="groups"') : page.index('<section id="rejects"')]
    assert "<i>light" not in section
    listed = section[section.index('<ul class="tree">') :]
    words = ("water", "ship", "fish", "&lt;i&gt;light&lt;/i&gt;", "sun")
    places = [listed.index(f"<bdi>{word}</bdi>") for word in words]
    assert places == sorted(places)
    assert 'id="groups"' not in render_report(small_run())

"""What is drawn is what was given."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from bnpstream.mixture import Event
from bnpstream.plots import (
    plot_clusters,
    plot_events,
    plot_evidence,
    plot_grid,
    plot_means,
    plot_trend,
    plot_weights,
)

ENDS = [100, 200, 250]
LOG = [
    Event("birth", 0, None, 1, 1.0),
    Event("birth", 1, None, 100, 1.0),
    Event("birth", 2, None, 101, 1.0),
    Event("merge", 2, 0, 220, 9.0),
    Event("death", 1, None, 250, 0.1),
]
CALLS = [
    lambda ax: plot_clusters(ENDS, [3, 5, 4], ax=ax),
    lambda ax: plot_evidence(ENDS, [-9.0, -6.0, -3.0], ax=ax),
    lambda ax: plot_trend(ENDS, [10, 40, 40], ax=ax),
    lambda ax: plot_events(ENDS, LOG, ax=ax),
    lambda ax: plot_weights([0.2, 0.5, 0.3], ax=ax),
    lambda ax: plot_means(np.eye(4), [0.1, 0.2, 0.3, 0.4], (2, 2), ax=ax),
]


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.mark.parametrize("call", CALLS)
def test_they_draw_where_they_are_told(call, ax):
    assert call(ax) is ax
    assert ax.has_data()
    ax.figure.savefig("/dev/null", format="svg")


@pytest.mark.parametrize("call", CALLS[:5])
def test_axes_are_labelled(call, ax):
    call(ax)
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_clusters_start_at_nothing(ax):
    (line,) = plot_clusters(ENDS, [3, 5, 4], ax=ax).lines
    assert line.get_xydata().tolist() == [[0, 0], [100, 3], [200, 5], [250, 4]]


def test_evidence_so_far_is_a_mean_of_rows_and_not_of_bins(ax):
    rows = np.random.default_rng((20, 1)).normal(size=250)
    parts = np.split(rows, ENDS[:-1])
    points, line = plot_evidence(ENDS, [part.mean() for part in parts], ax=ax).lines
    assert points.get_ydata() == pytest.approx([part.mean() for part in parts])
    assert line.get_ydata() == pytest.approx([rows[:end].mean() for end in ENDS])


def test_a_trend_is_a_share_of_every_bin(ax):
    plot_trend(ENDS, [10, 40, 40], ax=ax)
    data = ax.patches[-1].get_data()
    assert data.values.tolist() == [0.1, 0.4, 0.8]
    assert data.edges.tolist() == [0, 100, 200, 250]


def test_weights_are_in_order_and_thinned(ax):
    (line,) = plot_weights([0.2, 0.0, 0.5, 0.3], ax=ax).lines
    assert line.get_xydata().tolist() == [[1, 0.5], [2, 0.3], [3, 0.2]]
    many = np.random.default_rng((20, 2)).dirichlet(np.ones(50_000))
    (line,) = plot_weights(many, ax=Figure().subplots()).lines
    ranks, drawn = line.get_data()
    assert ranks.size <= 200
    assert ranks[[0, -1]].tolist() == [1, 50_000]
    assert drawn.tolist() == np.sort(many)[::-1][ranks - 1].tolist()


@pytest.mark.parametrize("weights", [[0.5, 0.375, 0.125], [0.25] * 4, [1.0], 0.5 ** np.arange(40)])
def test_weights_have_ticks_however_close_they_are(weights, ax):
    plot_weights(weights, ax=ax)
    ax.figure.canvas.draw()
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        ticks = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        assert 1 <= len(ticks) <= 8
    assert all(label.get_text() for label in ax.get_yticklabels())


def test_events_are_counted_in_their_bins(ax):
    plot_events(ENDS, LOG, ax=ax)
    born, lost, merged = (patch.get_data().values.tolist() for patch in ax.patches)
    assert born == [2, 1, 0]
    assert lost == [0, 0, -2]
    assert merged == [0, 0, -1]  # drawn over what was lost in any way


def test_an_event_after_the_last_row_is_in_the_last_bin(ax):
    plot_events(ENDS, [Event("death", 1, None, 300, 0.1)], ax=ax)
    assert ax.patches[1].get_data().values.tolist() == [0, 0, -1]


def test_means_are_images_heaviest_first(ax):
    plot_means(np.eye(4), [0.1, 0.2, 0.4, 0.3], (2, 2), captions=list("abcd"), ax=ax)
    assert [text.get_text() for text in ax.texts] == [
        "40.0%\nc",
        "30.0%\nd",
        "20.0%\nb",
        "10.0%\na",
    ]
    assert ax.images[0].get_array().tolist() == [[0, 0], [1, 0]]


def test_a_grid_has_a_panel_a_prior_and_numbers_in_order():
    panels = ["dp", "dp", "dp", "nig", "nig"]
    axes = plot_grid(
        panels,
        [100.0, 1.0, 1.0, "learn", 2e4],
        [0.1, 0.1, "learn", 0.1, 0.02],
        [-9.0, -9.25, -7.5, -20.0, -2007.5],
        Figure(),
    )
    assert [ax.get_title() for ax in axes] == ["dp", "nig"]
    ticks = [[label.get_text() for label in ax.get_xticklabels()] for ax in axes]
    assert ticks == [["1", "100"], ["20k", "learn"]]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["0.02", "0.1", "learn"]
    written = [{(t.get_position()): t.get_text() for t in ax.texts} for ax in axes]
    assert written == [
        {(1, 1): "1.5", (0, 1): "1.8", (0, 2): "best"},
        {(1, 1): "12", (0, 0): "2k"},
    ]
    cells = axes[0].images[0].get_array().filled(np.nan)  # what was not tried is empty
    np.testing.assert_array_equal(cells, [[np.nan, np.nan], [1.75, 1.5], [0.0, np.nan]])
    frame = axes[0].patches[0].get_bbox()
    assert (frame.x0 < 0 < frame.x1, frame.y0 < 2 < frame.y1) == (True, True)
    assert axes[1].patches[:] == []
    axes[0].figure.savefig("/dev/null", format="svg")


@pytest.mark.parametrize("scores", [[-5.0], [-5.0, -5.0, -5.0]])
def test_a_grid_without_differences_can_be_drawn(scores):
    n = len(scores)
    (ax,) = plot_grid(["dp"] * n, list(range(n)), [""] * n, scores, Figure())
    assert [text.get_text() for text in ax.texts] == ["best"] + ["0.00"] * (n - 1)
    assert ax.get_ylabel() == ""
    ax.figure.savefig("/dev/null", format="svg")


def test_nothing_to_draw_is_no_error():
    for call in (
        lambda ax: plot_clusters([], [], ax=ax),
        lambda ax: plot_evidence([], [], ax=ax),
        lambda ax: plot_trend([], [], ax=ax),
        lambda ax: plot_weights([], ax=ax),
        lambda ax: plot_events([], [], ax=ax),
    ):
        call(Figure().subplots())


def test_without_matplotlib_a_message_says_what_to_install():
    hide = "import sys; sys.modules['matplotlib'] = None; import bnpstream.plots"
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)
    assert "pip install 'bnpstream[plots]'" in done.stderr

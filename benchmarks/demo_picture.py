"""The picture of README.md: topics that `bnpstream demo` finds, drawn from its JSON.

``bnpstream demo --json > demo.json``, then
``python benchmarks/demo_picture.py demo.json docs/demo.svg``.
"""

import argparse
import json
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

SHOWN = 12
COLOURS = {"numpy": "#0072b2", "scipy": "#009e73", "sklearn": "#d55e00"}
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "demo", "font.size": 9}


def draw(found: dict, path: Path) -> None:
    """Draw the largest topics as bars: share, words, and where most of the texts are from."""
    topics = found["topics"][:SHOWN]
    with rc_context(SETTINGS):
        figure = Figure(figsize=(8.6, 3.9), layout="constrained")
        ax = figure.subplots()
        colours = [COLOURS[topic["module"].split(".")[0]] for topic in topics]
        ax.barh(range(len(topics)), [topic["share"] for topic in topics], color=colours, height=0.7)
        for place, topic in enumerate(topics):
            origin = f"{topic['module_share']:.0%} from {topic['module']}"
            ax.text(topic["share"] + 0.003, place, origin, va="center", color="#555555")
        words = [", ".join(topic["words"][:4]) for topic in topics]
        ax.set_yticks(range(len(topics)), words)
        ax.tick_params(left=False)
        ax.invert_yaxis()
        ax.set_xlim(0, 1.35 * topics[0]["share"])
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_title(
            f"{found['rows']:,} descriptions from NumPy, SciPy and scikit-learn, one pass, nothing "
            f"set: the {len(topics)} largest of {found['n_topics']} topics",
            fontsize=9.5,
            loc="right",
        )
        figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("found", type=Path, help="JSON of bnpstream demo")
    parser.add_argument("out", type=Path, help="SVG file")
    given = parser.parse_args()
    draw(json.loads(given.found.read_text()), given.out)

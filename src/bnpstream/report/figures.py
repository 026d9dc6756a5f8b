"""Charts as SVG inside the page: they use its fonts and colours, and have unique ids."""

import re
from collections.abc import Callable
from io import StringIO
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bnpstream.plots.style import BLUE, ORANGE, PURPLE, SIZE

INK = "#123456"
"""Placeholder for the colour of text and axes; no picture uses it otherwise."""

COLOURS = {
    INK: "var(--ink-soft)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    PURPLE: "var(--purple)",
}

SETTINGS = {
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and copied
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}

_REFERENCE = re.compile(r"#([A-Za-z][\w-]*)")


def chart(
    name: str, words: str, draw: Callable[[Axes], object], size: tuple[float, float] = SIZE
) -> Markup:
    """Return the drawing of `draw` as an element for an HTML page.

    Parameters
    ----------
    name : str
        Unique on the page; prefix of every id in the drawing.
    words : str
        Alternative text.
    draw : callable
        Draws on the axes that it is given.
    size : (width, height)
        Size in inches.
    """
    with style.context(["default", SETTINGS | {"svg.hashsalt": name}]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        file = StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing, transparent=True)
    return Markup(_embed(name, words, file.getvalue()))


def _embed(name: str, words: str, document: str) -> str:
    """Return an SVG document as an element, without namespaces and styles, and with unique ids."""
    root = ElementTree.fromstring(document)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            element.set(key.rpartition("}")[2], _adapt(name, key, value))
    for defs in root.iter("defs"):
        for sheet in defs.findall("style"):
            defs.remove(sheet)  # it would apply to the whole page
    for useless in ("width", "height", "version"):
        root.attrib.pop(useless, None)
    root.set("role", "img")
    root.set("aria-label", words)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(name: str, key: str, value: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "style":
        for colour, variable in COLOURS.items():
            value = value.replace(colour, variable)
        value = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", value)
    if key.endswith("href") or "url(#" in value:
        value = _REFERENCE.sub(rf"#{name}-\1", value)
    return value

"""A page as a browser's parser sees it: elements, attributes and text."""

from html.parser import HTMLParser

RAW = ("script", "style")


class Page(HTMLParser):
    """Collect what a page consists of."""

    def __init__(self, text):
        super().__init__()
        self.elements = []  # (tag, attributes)
        self.pieces = []
        self.raw = {tag: [] for tag in RAW}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open in RAW:
            self.raw[self._open].append(data)
        else:
            self.pieces.append(data)

    def count(self, tag):
        return sum(found == tag for found, _ in self.elements)

    def attributes(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    @property
    def text(self):
        return "".join(self.pieces)

    def words(self):
        """Return the text with one space between any two words or elements."""
        return " ".join(" ".join(self.pieces).split())

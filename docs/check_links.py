"""Check every internal link of a site: ``python docs/check_links.py site``.

A link is a page, a file or an anchor that another page of the folder names. Exit code 1 lists those
that lead nowhere; addresses of other sites are not asked for.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Page(HTMLParser):
    """The links of a page, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, and what it is called."""
        given = dict(attrs)
        link = given.get(LINKS.get(tag, ""))
        if link is not None:
            self.links.add(link)
        self.anchors |= {name for name in (given.get("id"), given.get("name")) if name}


def broken_links(site: Path) -> list[str]:
    """Return the links that lead nowhere, each with its page."""
    pages = {path: Page(path.read_text("utf-8")) for path in site.resolve().rglob("*.html")}
    broken = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (anchor and anchor not in anchors):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    sys.exit("\n".join(["links that lead nowhere:", *found]) if found else 0)

"""HTML of exports as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = {
    *["p", "div", "li", "ul", "ol", "table", "tr", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"]
}


class _MarkdownText(HTMLParser):
    """Reads HTML as text with the marks of Markdown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self._link: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS or tag == "br":
            self.text.append("\n" if tag in ("br", "li", "tr") else "\n\n")
        if tag == "li":
            self.text.append("- ")
        if tag == "emoji":  # Of Teams.
            self.text.append(dict(attrs).get("alt") or "")
        if tag == "a":
            self._link = dict(attrs).get("href")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link:
            self.text.append(f" ({self._link})")
            self._link = None
        if tag in _BLOCKS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def text_of_html(source: str) -> str:
    r"""The text of HTML.

    Example:
        >>> text_of_html("<p>The <b>Danube</b>.</p><ul><li>long</li></ul>")
        'The Danube.\n\n- long'
    """
    parser = _MarkdownText()
    parser.feed(source)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.text)).strip()

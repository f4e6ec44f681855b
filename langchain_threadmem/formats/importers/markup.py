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
        self.images: list[dict[str, str]] = []
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
        if tag == "img":
            self.images.append({name: value for name, value in attrs if value})

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link:
            self.text.append(f" ({self._link})")
            self._link = None
        if tag in _BLOCKS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _read(source: str) -> _MarkdownText:
    parser = _MarkdownText()
    parser.feed(source)
    parser.close()
    return parser


def text_of_html(source: str) -> str:
    r"""The text of HTML.

    Example:
        >>> text_of_html("<p>The <b>Danube</b>.</p><ul><li>long</li></ul>")
        'The Danube.\n\n- long'
    """
    return re.sub(r"\n{3,}", "\n\n", "".join(_read(source).text)).strip()


def images_of_html(source: str) -> list[dict[str, str]]:
    """The attributes of the images of HTML.

    Example:
        >>> images_of_html('<p>See <img src="https://example.com/1" alt="fig"></p>')
        [{'src': 'https://example.com/1', 'alt': 'fig'}]
    """
    return _read(source).images

"""Answers rendered as Markdown: trees of elements, which pages build without parsing HTML.

Messages are untrusted. A tree has only the elements and attributes that this module writes: HTML in a message
is text, a link has an address of the web or of mail, and an image is a link, since a browser that loads it
would tell another host that the message was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from langchain_threadmem.messages.text import escape, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from pygments.lexer import Lexer

MarkupNode = str | list[Any]
"""A text, or an element: its tag, its attributes by name, and its parts."""
LONGEST = 100_000
"""The length of a text, in characters, beyond which it is not parsed."""
LONGEST_BLOCK, BRACKETS = 20_000, 300
"""The length of a paragraph, and its number of brackets, beyond which its marks are text: the parser takes
quadratic time (3.4 s for 20,000 brackets)."""
NESTING = 30
"""The number of nested blocks beyond which a text is not parsed."""
DEPTH = 50
"""The number of nested elements of a tree; deeper marks are ignored."""
LONGEST_CODE, LONGEST_LINE = 5_000, 500
"""The lengths of a block of code and of a line, in characters, beyond which code has no colours: many lexers
take quadratic time (20,000 characters of one line: several seconds)."""
_GAP = re.compile(r"\s{100}")
"""Space for which the lexers of C, Java and Python take quadratic time."""
_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20]+", re.IGNORECASE)
_PATH = re.compile(r"[\w./#?=&%+~-]+")
"""An address without a host and without a scheme."""
_ALIGNED = {"text-align:left": "left", "text-align:center": "center", "text-align:right": "right"}
_FORMULA = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
"""The marks around formulas, whose text is no Markdown."""
_BLOCKS = frozenset({"p", "h4", "h5", "h6", "li", "blockquote", "pre", "tr", "hr", "br"})
_LINES = _BLOCKS | {"ul", "ol", "table", "td", "th"}
"""Elements that are followed by a line end."""
_MARKS = {"li": "• ", "td": "· ", "th": "· "}
_VOID = frozenset({"br", "hr"})
_STYLES = {
    "plain": "white-space:pre-wrap",
    "code": "white-space:pre-wrap;overflow-wrap:anywhere;margin:.4em 0;padding:.4em .6em;"
    "border-left:3px solid #8888",
    "right": "text-align:right",
    "center": "text-align:center",
    "left": "text-align:left",
    "comment": "color:#71777f;font-style:italic",
    "keyword": "color:#a05ad0",
    "string": "color:#2f8a4c",
    "number": "color:#c0631c",
    "name": "color:#2f7fc4",
    "deleted": "color:#cf4a55",
    "inserted": "color:#2f8a4c",
}
"""The styles of classes for pages without a style sheet: colours that are readable on light and on dark."""


def parts_of(text: str) -> list[MarkupNode]:
    r"""The tree of a Markdown text, with tables and coloured code.

    Args:
        text: The text; control characters are shown as escapes.

    Returns:
        Elements and texts. A text that is too long or too deep to be parsed is one element of plain text.

    Example:
        >>> parts_of("**Bold** <b>text</b>")
        [['p', {}, ['strong', {}, 'Bold'], ' <b>text</b>']]
        >>> parts_of("![a fig](https://example.org/fig.png)")[0][2][2]
        '[image: a fig]'
    """
    text = visible(text)
    tokens = _parser().parse(text) if len(text) <= LONGEST else None
    if tokens is None or any(token.level >= NESTING for token in tokens):
        return [["p", {"class": "plain"}, text]] if text else []
    return _tree(tokens)


def plain(text: str) -> str:
    r"""A Markdown text without its marks, on one line.

    Example:
        >>> plain("## Bread\n\n- *rye*\n- `spelt`")
        'Bread • rye • spelt'
    """
    return " ".join("".join(_words(parts_of(text))).split()).lstrip("•· ")


def to_html(parts: Sequence[MarkupNode], *, styled: bool = False) -> str:
    """Parts as HTML.

    Args:
        parts: Parts, as from `parts_of`.
        styled: Whether to write styles in place of classes, for pages without a style sheet.

    Example:
        >>> to_html(parts_of("Use `a < b`."))
        '<p>Use <code>a &lt; b</code>.</p>'
    """
    return "".join(_html(parts, styled))


def _html(parts: Sequence[MarkupNode], styled: bool) -> Iterator[str]:
    before = ""
    for part in parts:
        yield "\n" if before in _LINES else ""  # The text of the page has lines, too.
        before = part if isinstance(part, str) else part[0]
        if isinstance(part, str):
            yield escape(part)
            continue
        tag, attributes, *inner = part
        yield f"<{tag}{''.join(_attributes(attributes, styled))}{'/' * (tag in _VOID)}>"
        if tag not in _VOID:
            yield from _html(inner, styled)
            yield f"</{tag}>"


def _attributes(attributes: Mapping[str, str], styled: bool) -> Iterator[str]:
    for name, value in attributes.items():
        if styled and name == "class":
            yield f' style="{_STYLES[value]}"' if value in _STYLES else ""
        else:
            yield f' {name}="{escape(value)}"'


def _words(parts: Sequence[MarkupNode]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        tag, _, *inner = part
        yield " " if tag in _BLOCKS else ""
        words = "".join(_words(inner))
        yield _MARKS.get(tag, "") if words.strip() else ""
        yield words
        yield " " if tag in _BLOCKS or tag in _MARKS else ""


def _tree(tokens: Sequence[Token]) -> list[MarkupNode]:
    """The tree of tokens, of which an opening and a closing token enclose an element."""
    open_parts: list[list[Any]] = [[]]
    for token in tokens:
        here = open_parts[-1]
        if token.hidden:  # The paragraphs of a list without empty lines.
            continue
        if token.nesting == 1:
            element = _opened(token) if len(open_parts) < DEPTH else here
            if element is not here:
                here.append(element)
            open_parts.append(element)
        elif token.nesting == -1:
            open_parts.pop()
        elif token.type == "inline":
            here += _tree(token.children or ())
        else:
            here.append(_single(token))
    return joined(open_parts[0])


def _opened(token: Token) -> list[Any]:
    attributes: dict[str, str] = {}
    tag = token.tag
    match token.type:
        case "heading_open":
            tag = f"h{min(6, int(tag[1]) + 3)}"  # Below the headings of a page.
        case "link_open":
            tag, attributes = _link(str(token.attrs["href"]))
        case "ordered_list_open" if "start" in token.attrs:
            attributes = {"start": str(token.attrs["start"])}
        case "td_open" | "th_open" if token.attrs.get("style") in _ALIGNED:
            attributes = {"class": _ALIGNED[str(token.attrs["style"])]}
    return [tag, attributes]


def _link(address: str) -> tuple[str, dict[str, str]]:
    """The tag and the attributes of a link; an address that is not of the web or of mail is no link."""
    if not _ADDRESS.fullmatch(address):
        return "span", {"title": address} if _PATH.fullmatch(address) else {}
    attributes = {"href": address, "title": address, "target": "_blank"}
    return "a", {**attributes, "rel": "noopener noreferrer nofollow", "referrerpolicy": "no-referrer"}


def _single(token: Token) -> MarkupNode:
    match token.type:
        case "hardbreak" | "softbreak" | "hr":
            return [token.tag or "br", {}]
        case "code_inline":
            return ["code", {}, token.content]
        case "formula":
            return ["code", {"class": "formula"}, token.content]
        case "fence" | "code_block":
            return ["pre", {"class": "code"}, ["code", {}, *colored(token.content, token.info)]]
        case "image":
            name = f"[image: {plain(token.content)}]" if token.content else "[image]"
            # A link contains no link.
            return name if token.level else [*_link(str(token.attrs["src"])), name]
    return token.content


@cache
def _parser() -> MarkdownIt:
    # Imported here, so that the import of the package is fast.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": NESTING + 1})
    parser.enable(["table", "strikethrough"]).disable("reference")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # See `_link`.
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.core.ruler.at("inline", _inline)
    return parser


def _formula(state: StateInline, silent: bool) -> bool:
    """The rule of formulas, which the parser would read as escaped brackets and emphasis."""
    close = _FORMULA.get(state.src[state.pos : state.pos + 2])
    end = -1 if close is None else state.src.find(close, state.pos + 2)
    if end <= state.pos + 2:
        return False
    if not silent:
        state.push("formula", "code", 0).content = state.src[state.pos : end + 2]
    state.pos = end + 2
    return True


def _inline(state: StateCore) -> None:
    """The rule that parses the texts of blocks, except those that would take quadratic time."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        text, token.children = token.content, []
        if len(text) <= LONGEST_BLOCK and text.count("[") <= BRACKETS:
            state.md.inline.parse(text, state.md, state.env, token.children)
        else:
            token.children.append(type(token)("text", "", 0, content=text))


def colored(code: str, info: str) -> list[MarkupNode]:
    """Code as texts and coloured texts, by the language after the fence."""
    code = code.removesuffix("\n")
    language = info.split(maxsplit=1)[0].strip("{}.").lower() if info.strip() else ""
    lexer = _lexer(language) if 0 < len(language) <= 30 and _is_quick(code) else None
    if lexer is None:
        return [code]
    parts: list[Any] = []
    for kind, text in lexer.get_tokens(code):  # The lexer adds a line end.
        color = next((name for name, kinds in _colors() if any(kind in each for each in kinds)), "")
        if not color or not text.strip():
            parts.append(text)
        elif parts and isinstance(parts[-1], list) and parts[-1][1]["class"] == color:
            parts[-1][2] += text
        else:
            parts.append(["span", {"class": color}, text])
    last = parts[-1]
    parts[-1] = last.removesuffix("\n") if isinstance(last, str) else [*last[:2], last[2].removesuffix("\n")]
    return joined(parts)


def _is_quick(code: str) -> bool:
    """Whether lexers take little time, whatever the code is."""
    return (
        len(code) <= LONGEST_CODE
        and max(map(len, code.split("\n"))) <= LONGEST_LINE
        and _GAP.search(code) is None
    )


@cache
def _colors() -> Sequence[tuple[str, Sequence[Any]]]:
    from pygments import token

    name = token.Name
    return (
        ("comment", (token.Comment,)),
        ("keyword", (token.Keyword, token.Operator.Word)),
        ("string", (token.String,)),
        ("number", (token.Number,)),
        ("name", (name.Builtin, name.Function, name.Class, name.Decorator, name.Tag, name.Attribute)),
        ("deleted", (token.Generic.Deleted,)),
        ("inserted", (token.Generic.Inserted,)),
    )


@lru_cache(maxsize=128)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


def joined(parts: list[Any]) -> list[MarkupNode]:
    """Parts in which a text follows no text."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, list) and len(part) > 2:
            part[2:] = joined(part[2:])
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return found

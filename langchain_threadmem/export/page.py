"""Conversations as self-contained HTML pages and as SVG pictures.

Both load no script, no font and nothing from a network; the content security policy of the page forbids it.
Messages are untrusted and always escaped. `<details>` folds branches, links jump to messages, and media
queries choose dark or light colours.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from langchain_threadmem.errors import InputError
from langchain_threadmem.export.layout import Layout, content_of, label_of
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import one_line, plural, visible
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import EPOCH, ConversationNode, is_doubtful

_STYLE = """
:root { color-scheme: light dark; --user: #a7c7e7; --assistant: #cdb4f6; --other: #e0e0e0;
  --page: #f7f7f5; --card: #fff; --ink: #26282c; --soft: #70757d; --line: #dfe1e4; --here: #2f6fb0;
  --doubt: #a85a00 }
@media (prefers-color-scheme: dark) { :root { --page: #17181b; --card: #202226; --ink: #e3e4e7;
  --soft: #979ca6; --line: #35383e; --here: #8fbbe8;
  --doubt: #e0a458 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; display: grid;
  grid-template-columns: minmax(13rem, 19rem) minmax(0, 52rem); gap: 0 2.5rem; justify-content: center }
a { color: inherit; text-decoration: none }
nav { position: sticky; top: 0; max-height: 100vh; overflow-y: auto; padding: 2.2rem 0 2rem 1.2rem;
  font-size: .87rem }
nav h2 { margin: 0 0 .6rem .7rem; font-size: .75rem; font-weight: 600; color: var(--soft);
  letter-spacing: .06em }
nav ol { list-style: none; margin: 0; padding: 0 }
nav a { display: flex; gap: .8rem; justify-content: space-between; padding: .34rem .7rem;
  border-radius: .5rem }
nav a:hover { background: var(--card) }
nav a.here { background: var(--card); box-shadow: inset 3px 0 var(--here) }
nav span, small, time { color: var(--soft); font-variant-numeric: tabular-nums }
nav b { font-weight: 400; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
main { padding: 2.2rem 1.2rem 5rem 0 }
h1 { margin: 0; font-size: 1.45rem; font-weight: 650; overflow-wrap: anywhere }
header { margin-bottom: 1.6rem }
details > summary { cursor: pointer; list-style-position: outside }
.branch { margin: .5rem 0 1rem }
.branch > summary { margin-left: 1.1rem; padding: .2rem 0; color: var(--soft); font-size: .87rem }
.branch .branch { padding-left: 1rem; border-left: 2px solid var(--line); border-radius: 2px }
.root { margin-bottom: 2rem }
article { background: var(--card); border-radius: .6rem; border-left: 4px solid var(--tone); margin: .45rem 0;
  padding: .5rem .9rem .6rem; scroll-margin: 1rem; box-shadow: 0 1px 2px #0000000f }
article:target, article.here { outline: 2px solid var(--here) }
article > div:first-child { display: flex; gap: .7rem; align-items: baseline; font-size: .78rem }
article i { font-style: normal; font-weight: 600; color: #26282c; background: var(--tone);
  padding: 0 .5rem; border-radius: 1rem }
article .id { margin-left: auto; color: var(--soft) }
article small { font-size: inherit }
article summary { list-style-position: inside; margin-top: .25rem }
article details[open] summary span { display: none }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin-top: .25rem }
.why { margin-top: .25rem; color: var(--soft); font-size: .78rem }
.why mark { background: none; color: var(--doubt); font-weight: 600 }
.doubt { box-shadow: inset 0 0 0 1.5px var(--doubt) }
.user { --tone: var(--user) } .assistant { --tone: var(--assistant) } .other { --tone: var(--other) }
.replaced { opacity: .55; filter: grayscale(1) } .replaced .text { text-decoration: line-through }
@media (max-width: 800px) { body { display: block; padding: 0 1rem } main, nav { padding: 1.2rem 0 }
  nav { position: static; max-height: 40vh } }
"""
_LONG = 700
"""The length in characters beyond which a message is folded."""

_DOUBT = "#a85a00"
_DEEP, _PALE = "hsl({} 52% 52%)", "hsl({} 52% 80%)"
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_html(
    nodes: Sequence[ConversationNode], *, title: str = "Conversation", active: int | None = None
) -> str:
    """Draw a conversation as one self-contained HTML page with foldable branches.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        title: Title of the page.
        active: Id of the tip of the active thread, which is marked.

    Returns:
        The page: a list of threads at the side and the tree in the middle. Messages whose place is doubtful
        (see `ChatMemory.doubtful`) are marked. About 40 ms per 1,000 messages, and 300 kB in addition to
        their text.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        NodeNotFoundError: `active` is not among the nodes.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> page = to_html([ConversationNode(1, HumanMessage("<script>alert(1)</script>"))], title="Safe")
        >>> "<script" in page, "&lt;script&gt;alert(1)" in page
        (False, True)
    """
    layout = Layout(nodes, active)
    body: list[str] = []

    # The recursion is as deep as the indentation: logarithmic in the number of nodes.
    def draw(branch: ConversationNode, kind: str) -> None:
        name, size = _escape(_opening(branch)), plural(layout.size[branch.id], "message")
        body.append(f'<details class="branch{kind}" open><summary>{name} <small>{size}</small></summary>')
        node: ConversationNode | None = branch
        while node is not None:
            body.append(_article(node, active=node.id == active))
            branches, node = layout.fork(node)
            for other in branches:
                draw(other, "")
        body.append("</details>")

    for root in layout.roots:
        draw(root, " root")
    current = None if active is None else layout.strands[layout.strand_of[active]]
    links = "\n".join(
        f'<li><a href="#n{strand.tip.id}"{" class=here" if strand is current else ""}>'
        f"<b>{_escape(_opening(strand.first))}</b><span>{strand.length}</span></a></li>"
        for strand in layout.strands[: layout.threads]
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{_escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<nav><h2>THREADS</h2><ol>
{links}
</ol></nav>
<main>
<header><h1>{_escape(title)}</h1><small>{layout.counts}</small></header>
{"".join(body)}
</main>
</body>
</html>
"""


def to_svg(nodes: Sequence[ConversationNode], *, max_nodes: int = 200, active: int | None = None) -> str:
    """Draw a conversation as an SVG picture: a column for each thread, a row for each message.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        max_nodes: Largest number of messages; the newest are drawn, and the number of the others is shown.
        active: Id of the tip of the active thread, which gets a ring.

    Returns:
        An `<svg>` element with a background, so that it can be read on light and dark pages. Human messages
        are drawn in full colour, answers pale, other messages small. A message whose place is doubtful has a
        question mark and a dashed line.

    Raises:
        InputError: `max_nodes` is not positive.
        InvalidGraphStateError: The nodes do not form a forest.
        NodeNotFoundError: `active` is not among the nodes.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> to_svg([ConversationNode(1, HumanMessage("Hello"))]).count("<circle")
        1
    """
    if max_nodes < 1:
        raise InputError(f"max_nodes is {max_nodes!r}; use 1 or more")
    layout = Layout(nodes, active)
    drawn = layout.nodes[-max_nodes:]
    hidden = len(layout.nodes) - len(drawn)
    # Columns are assigned to strands in the order of their first drawn message.
    strands = list(dict.fromkeys(layout.strand_of[node.id] for node in drawn))
    columns = {strand: 14 + 16 * n for n, strand in enumerate(strands)}
    top = 44 if hidden else 18
    spots = {node.id: (columns[layout.strand_of[node.id]], top + 24 * row) for row, node in enumerate(drawn)}
    text_x = 14 + 16 * len(strands) + 36
    width, height = text_x + 520, top + 24 * len(drawn)
    lines, dots = [], []
    for node in drawn:
        x, y = spots[node.id]
        doubtful = is_doubtful(node)
        if (parent := layout.parent(node)) is not None:
            from_x, from_y = spots.get(parent.id, (x, top - 16))
            bend = f"C{from_x} {from_y + 16} {x} {from_y + 8} {x} {from_y + 24}" if from_x != x else ""
            strong = 2.5 if node.id in layout.current else 1.5
            dashed = ' stroke-dasharray="4 3"' if doubtful else ""
            color = _DEEP.format(_hue(layout.strand_of[node.id]))
            course = f"M{from_x} {from_y}{bend}L{x} {y}"
            lines.append(f'<path d="{course}" stroke="{color}" stroke-width="{strong}"{dashed}/>')
        hue = _hue(layout.strand_of[node.id])
        dots.append(_dot(node, x, y, text_x, hue, ring=node.id == active, doubtful=doubtful))
    more = (
        f'<text x="8" y="18" opacity=".6">{plural(hidden, "earlier message")} not shown</text>'
        if hidden
        else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{layout.counts}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
        f'font-size="12" fill="currentColor" style="background:#fff;color:#26282c">{more}'
        f'<g fill="none">{"".join(lines)}</g>{"".join(dots)}</svg>'
    )


def _article(node: ConversationNode, *, active: bool) -> str:
    doubtful = is_doubtful(node)
    role = role_of(node.message)
    classes = [role if role in ("user", "assistant") else "other"]
    classes += ["replaced"] if node.state == State.SUPERSEDED else []
    classes += ["here"] if active else []
    classes += ["doubt"] if doubtful else []
    when, note = "", ""
    if node.timestamp != EPOCH:
        when = f'<time datetime="{node.timestamp.isoformat()}">{node.timestamp:%Y-%m-%d %H:%M}</time>'
    if node.superseded_by is not None:
        note = f'<a href="#n{node.superseded_by}"><small>replaced by {node.superseded_by}</small></a>'
    elif node.state != State.LIVE:
        note = f"<small>{State(node.state).name.lower()}</small>"
    about = f"<small>{_escape(node.summary.title)}</small>" if node.summary else ""
    mark = "<mark>doubtful:</mark> " if doubtful else ""
    why = f'<div class="why">{mark}{_escape(str(node.placement))}</div>' if node.placement else ""
    text = content_of(node.message)
    shown = f'<div class="text">{_escape(text)}</div>'
    if len(text) > _LONG:
        first = f"<span>{_escape(one_line(text, 240))}</span> <small>{len(text):,} characters</small>"
        shown = f"<details><summary>{first}</summary>{shown}</details>"
    return (
        f'<article id="n{node.id}" class="{" ".join(classes)}"><div><i>{_escape(label_of(node.message))}</i>'
        f'{about}{note}{when}<a class="id" href="#n{node.id}">{node.id}</a></div>{shown}{why}</article>\n'
    )


def _dot(node: ConversationNode, x: int, y: int, text_x: int, hue: int, *, ring: bool, doubtful: bool) -> str:
    role, text = role_of(node.message), content_of(node.message)
    deep, pale = _DEEP.format(hue), _PALE.format(hue)
    halo = f'<circle cx="{x}" cy="{y}" r="9" fill="none" stroke="{deep}" stroke-width="1.5"/>' if ring else ""
    struck = ' opacity=".5" text-decoration="line-through"' if node.state == State.SUPERSEDED else ""
    mark = f'<tspan fill="{_DOUBT}" font-weight="bold">? </tspan>' if doubtful else ""
    faded = "" if role == "user" else ' opacity=".7"'
    return (
        f"<g{struck}><title>{_escape(label_of(node.message))}: {_escape(one_line(text, 400))}</title>{halo}"
        f'<circle cx="{x}" cy="{y}" r="{5 if role in ("user", "assistant") else 3}" '
        f'fill="{deep if role == "user" else pale}" stroke="{deep}"/>'
        f'<text x="{text_x - 8}" y="{y + 4}" text-anchor="end" opacity=".5">{node.id}</text>'
        f'<text x="{text_x}" y="{y + 4}"{faded}>{mark}{_escape(one_line(text, 70))}</text></g>'
    )


def _opening(node: ConversationNode) -> str:
    title = node.summary.title if node.summary else content_of(node.message)
    return one_line(title, 70) or label_of(node.message)


def _hue(strand: int) -> int:
    # Steps of the golden angle give neighbouring strands different hues, for any number of strands.
    return round(210 + strand * 137.5) % 360


def _escape(text: str) -> str:
    return html.escape(_ILLEGAL.sub("\ufffd", visible(text)))

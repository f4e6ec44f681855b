"""A conversation as a self-contained HTML page and as SVG.

Neither loads anything: no script, no font, no network, and the page's content security policy
says so to the browser too. Messages are hostile text; whatever they say is shown as characters.
The page needs no script either: `<details>` folds, links jump, and media queries choose dark or light.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from langchain_threadmem.errors import InputError
from langchain_threadmem.export.layout import Layout, label_of, said
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import one_line, plural, visible
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import EPOCH, ConversationNode

_STYLE = """
:root { color-scheme: light dark; --user: #a7c7e7; --assistant: #cdb4f6; --other: #e0e0e0;
  --page: #f7f7f5; --card: #fff; --ink: #26282c; --soft: #70757d; --line: #dfe1e4; --here: #2f6fb0 }
@media (prefers-color-scheme: dark) { :root { --page: #17181b; --card: #202226; --ink: #e3e4e7;
  --soft: #979ca6; --line: #35383e; --here: #8fbbe8 } }
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
.user { --tone: var(--user) } .assistant { --tone: var(--assistant) } .other { --tone: var(--other) }
.replaced { opacity: .55; filter: grayscale(1) } .replaced .text { text-decoration: line-through }
@media (max-width: 800px) { body { display: block; padding: 0 1rem } main, nav { padding: 1.2rem 0 }
  nav { position: static; max-height: 40vh } }
"""
_LONG = 700
"""Characters after which a message is folded."""

_DEEP, _PALE = "hsl({} 52% 52%)", "hsl({} 52% 80%)"
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_html(
    nodes: Sequence[ConversationNode], *, title: str = "Conversation", active: int | None = None
) -> str:
    """Draw a conversation as one HTML page that can be folded, and needs nothing else.

    Args:
        nodes: Nodes of one conversation, in any order; one whose parent is missing is a root.
        title: Title of the page.
        active: Id of the node that the conversation stands at, to be marked.

    Returns:
        The page: threads at the side, the tree in the middle. About
        40 ms and 300 kB per 1,000 messages, and their text.

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

    # As deep as forks are set in: the logarithm of the number of nodes.
    def draw(branch: ConversationNode, kind: str) -> None:
        name, size = _escape(_opening(branch)), plural(layout.size[branch.id], "message")
        body.append(f'<details class="branch{kind}" open><summary>{name} <small>{size}</small></summary>')
        node: ConversationNode | None = branch
        while node is not None:
            body.append(_article(node, here=node.id == active))
            aside, node = layout.fork(node)
            for other in aside:
                draw(other, "")
        body.append("</details>")

    for root in layout.roots:
        draw(root, " root")
    threads = layout.strands[: layout.threads]
    here = None if active is None else layout.strands[layout.strand_of[active]]
    links = "\n".join(
        f'<li><a href="#n{strand.tip.id}"{" class=here" if strand is here else ""}>'
        f"<b>{_escape(_opening(strand.first))}</b><span>{strand.length}</span></a></li>"
        for strand in threads
    )
    counts = f"{plural(len(layout.nodes), 'message')} in {plural(len(threads), 'thread')}"
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
<header><h1>{_escape(title)}</h1><small>{counts}</small></header>
{"".join(body)}
</main>
</body>
</html>
"""


def to_svg(nodes: Sequence[ConversationNode], *, max_nodes: int = 200, active: int | None = None) -> str:
    """Draw a conversation as a small picture: a column for each thread, a row for each message.

    Args:
        nodes: Nodes of one conversation, in any order; one whose parent is missing is a root.
        max_nodes: How many messages to draw; of more, the newest are drawn and the others counted.
        active: Id of the node that the conversation stands at, to be ringed.

    Returns:
        An `<svg>` element with a background of its own, so that it can be read on light and dark pages. What
        people said is drawn full, answers pale, other messages small.

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
        raise InputError(f"max_nodes is {max_nodes!r}; draw at least 1")
    layout = Layout(nodes, active)
    drawn = layout.nodes[-max_nodes:]
    hidden = len(layout.nodes) - len(drawn)
    # Columns are given to the threads that are seen, in the order in which they are first seen.
    seen = list(dict.fromkeys(layout.strand_of[node.id] for node in drawn))
    columns = {strand: 14 + 16 * n for n, strand in enumerate(seen)}
    top = 44 if hidden else 18
    spots = {node.id: (columns[layout.strand_of[node.id]], top + 24 * row) for row, node in enumerate(drawn)}
    words = 14 + 16 * len(seen) + 36
    width, height = words + 520, top + 24 * len(drawn)
    lines, dots = [], []
    for node in drawn:
        x, y = spots[node.id]
        if (parent := layout.parent(node)) is not None:
            from_x, from_y = spots.get(parent.id, (x, top - 16))
            bend = f"C{from_x} {from_y + 16} {x} {from_y + 8} {x} {from_y + 24}" if from_x != x else ""
            strong = 2.5 if node.id in layout.current else 1.5
            color = _DEEP.format(_hue(layout.strand_of[node.id]))
            course = f"M{from_x} {from_y}{bend}L{x} {y}"
            lines.append(f'<path d="{course}" stroke="{color}" stroke-width="{strong}"/>')
        dots.append(_dot(node, x, y, words, _hue(layout.strand_of[node.id]), ring=node.id == active))
    more = (
        f'<text x="8" y="18" opacity=".6">{plural(hidden, "earlier message")} not shown</text>'
        if hidden
        else ""
    )
    label = f"{plural(len(layout.nodes), 'message')} in {plural(layout.threads, 'thread')}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
        f'font-size="12" fill="currentColor" style="background:#fff;color:#26282c">{more}'
        f'<g fill="none">{"".join(lines)}</g>{"".join(dots)}</svg>'
    )


def _article(node: ConversationNode, *, here: bool) -> str:
    role = role_of(node.message)
    classes = [role if role in ("user", "assistant") else "other"]
    classes += ["replaced"] if node.state == State.SUPERSEDED else []
    classes += ["here"] if here else []
    when, note = "", ""
    if node.timestamp != EPOCH:
        when = f'<time datetime="{node.timestamp.isoformat()}">{node.timestamp:%Y-%m-%d %H:%M}</time>'
    if node.superseded_by is not None:
        note = f'<a href="#n{node.superseded_by}"><small>replaced by {node.superseded_by}</small></a>'
    elif node.state != State.LIVE:
        note = f"<small>{State(node.state).name.lower()}</small>"
    about = f"<small>{_escape(node.summary.title)}</small>" if node.summary else ""
    why = f'<div class="why">{_escape(str(node.placement))}</div>' if node.placement else ""
    text = said(node.message)
    shown = f'<div class="text">{_escape(text)}</div>'
    if len(text) > _LONG:
        first = f"<span>{_escape(one_line(text, 240))}</span> <small>{len(text):,} characters</small>"
        shown = f"<details><summary>{first}</summary>{shown}</details>"
    return (
        f'<article id="n{node.id}" class="{" ".join(classes)}"><div><i>{_escape(label_of(node.message))}</i>'
        f'{about}{note}{when}<a class="id" href="#n{node.id}">{node.id}</a></div>{shown}{why}</article>\n'
    )


def _dot(node: ConversationNode, x: int, y: int, words: int, hue: int, *, ring: bool) -> str:
    role, text = role_of(node.message), said(node.message)
    deep, pale = _DEEP.format(hue), _PALE.format(hue)
    halo = f'<circle cx="{x}" cy="{y}" r="9" fill="none" stroke="{deep}" stroke-width="1.5"/>' if ring else ""
    struck = ' opacity=".5" text-decoration="line-through"' if node.state == State.SUPERSEDED else ""
    faded = "" if role == "user" else ' opacity=".7"'
    return (
        f"<g{struck}><title>{_escape(label_of(node.message))}: {_escape(one_line(text, 400))}</title>{halo}"
        f'<circle cx="{x}" cy="{y}" r="{5 if role in ("user", "assistant") else 3}" '
        f'fill="{deep if role == "user" else pale}" stroke="{deep}"/>'
        f'<text x="{words - 8}" y="{y + 4}" text-anchor="end" opacity=".5">{node.id}</text>'
        f'<text x="{words}" y="{y + 4}"{faded}>{_escape(one_line(text, 70))}</text></g>'
    )


def _opening(node: ConversationNode) -> str:
    return one_line(node.summary.title if node.summary else said(node.message), 70) or label_of(node.message)


def _hue(strand: int) -> int:
    # Steps of the golden angle keep neighbouring threads apart, however many there are.
    return round(210 + strand * 137.5) % 360


def _escape(text: str) -> str:
    return html.escape(_ILLEGAL.sub("\ufffd", visible(text)))

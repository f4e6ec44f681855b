"""Conversations as self-contained HTML pages and as SVG pictures.

Pages and pictures load nothing from a network. The content security policy of a page allows only `page.css`
and `page.js`, by their hashes. Messages are untrusted and always escaped. Without scripts, `<details>` folds
branches and links go to messages; the script adds the map, the search and the keyboard commands.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import NamedTuple

from langchain_threadmem.formats.exporters.layout import Layout, Strand
from langchain_threadmem.formats.exporters.page_words import STATES, hover
from langchain_threadmem.messages.display import body_of, content_of, label_of, preview_of
from langchain_threadmem.messages.rendering import to_html as html_of
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import escape, plural
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import EPOCH, ConversationNode, Placement, is_doubtful

_LONG = 700
"""The length in characters beyond which a message is folded."""
_MANY = 200
"""The number of messages beyond which all branches are initially closed, unless there is only one root."""
_DRAWN = 200
"""The maximum number of messages of a picture."""
_PART = 40
"""The number of successive messages of a part."""
_USER, _OTHER, _REPLACED, _DOUBTFUL, _ACTIVE = 1, 2, 4, 8, 16
"""The marks of a row of the map, as in `page.js`."""

_CURRENT = ' aria-current="true"'
_ACTIVE_NOTE = f"<small{hover('active')}>active</small>"
_DOUBT = "#b06000"
_DARK = (
    "@media (prefers-color-scheme:dark){.threadmem-tree"
    "{background:#1d1f23!important;color:#e3e4e7!important}.threadmem-tree .doubt{fill:#e8ac60}}"
)
"""The colours of a picture on a dark system; on other systems, a picture is dark on white."""
_DEEP, _PALE = "hsl({} 52% 52%)", "hsl({} 52% 80%)"


def to_html(
    nodes: Sequence[ConversationNode], *, title: str = "Conversation", active: int | None = None
) -> str:
    """Draw a conversation as one self-contained HTML page with foldable branches.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        title: Title of the page.
        active: Id of the tip of the active thread, which is marked.

    Returns:
        The page: the threads, the most recently used first, the tree, and a map of the tree with a lane for
        each thread. Each message shows the reason for its place; messages whose place is doubtful (see
        `ChatMemory.doubtful`) are marked. Answers are rendered as Markdown. The branches of a conversation of
        more than 200 messages are initially closed, unless it has only one first message. About 0.4 s and, in
        addition to the text, 500 kB per 1,000 messages.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        NodeNotFoundError: `active` is not among the nodes.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> page = to_html([ConversationNode(1, HumanMessage("<script>alert(1)</script>"))], title="Safe")
        >>> "<script>alert" in page, "&lt;script&gt;alert(1)" in page
        (False, True)
    """
    layout = Layout(nodes, active)
    titles = [escape(name) for name in layout.names]
    is_closed = len(layout.nodes) > _MANY and sum(layout.size[root.id] > 1 for root in layout.roots) > 1
    fold = "" if is_closed else " open"
    body: list[str] = []

    # The recursion is as deep as the indentation: logarithmic in the number of nodes.
    def draw(branch: ConversationNode, kind: str) -> None:
        strand = layout.strand_of[branch.id]
        # The branch of a fork without a main branch may begin within a strand.
        name = titles[strand] if layout.strands[strand].first is branch else escape(layout.title(branch))
        word = "" if layout.said[branch.id] else STATES[branch.state]
        size = word or plural(layout.said[branch.id], "message")
        body.append(
            f'<details class="branch{kind}"{fold}><summary>{_spot(layout, branch)} <h2>{name}</h2> '
            f"<small{hover(word) if word else ''}>{size}</small></summary>\n"
        )
        run = layout.straight(branch)
        for n, node in enumerate(run):
            # Browsers do not render the parts that are out of view.
            if n % _PART == 0 and len(run) - n >= _PART:
                body.append('<div class="part">\n')
            body.append(_article(node, layout, titles, active=node.id == active))
            for other in layout.fork(node)[0]:
                draw(other, "")
            if n % _PART == _PART - 1:
                body.append("</div>\n")
        body.append("</details>\n")

    for root in layout.roots:
        draw(root, " root")
    current = None if active is None else layout.strands[layout.strand_of[active]]
    links = "".join(
        f'<li><a href="#n{strand.first.id}" data-tip="{strand.tip.id}"'
        f"{_CURRENT if strand is current else ''}>{_spot(layout, strand.tip)}<b>{titles[number]}</b>"
        f"<span class=count>{strand.length}</span>{_origin(layout, strand, titles)}{_time(strand.last)}"
        f"{_ACTIVE_NOTE if strand is current else ''}</a></li>\n"
        for strand in layout.recent()
        for number in [layout.strand_of[strand.tip.id]]
    )
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{style.hash}'; script-src '{script.hash}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = escape(title)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style.text}</style>
</head>
<body>
<a class="skip" href="#messages">Skip to the messages</a>
<header><h1>{title}</h1><small>{layout.counts}</small>
<div role="search" class="script" hidden><input id="search" type="search" placeholder="Search" \
aria-label="Search the messages" autocomplete="off"></div>
<button id="folds" class="script" data-open="{str(bool(fold)).lower()}" hidden>\
{"Close all" if fold else "Open all"}</button></header>
<nav aria-label="Threads"><p id="status" role="status"></p><ol id="hits" hidden></ol>
<details id="list" open><summary><h2{hover("thread")}>Threads by last use</h2></summary>
<label class="script" hidden><input id="only" type="checkbox"{"" if _CURRENT in links else " disabled"}> \
Show only the selected thread</label>
<ol id="threads">
{links}</ol></details>
<p class="keys script" hidden><kbd>/</kbd> search · <kbd>↑</kbd> <kbd>↓</kbd> messages · \
<kbd>←</kbd> <kbd>→</kbd> close and open · <kbd>Enter</kbd> long messages</p></nav>
<main id="messages" tabindex="-1">
{"".join(body)}</main>
<aside id="map" class="script" aria-label="Map" data-rows="{_rows(layout, active)}" hidden><div id="rows">\
<canvas role="img" aria-label="Map of the tree: {layout.counts}"></canvas></div></aside>
<script>{script.text}</script>
</body>
</html>
"""


class _Asset(NamedTuple):
    """A file that the page contains, and its hash for the content security policy."""

    text: str
    hash: str


@cache
def _asset(name: str) -> _Asset:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return _Asset(text, f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}")


def _rows(layout: Layout, active: int | None) -> str:
    """The messages for the map: number, row of the parent, lane, hue and marks."""
    row_of = {node.id: row for row, node in enumerate(layout.nodes)}
    lanes = layout.lanes()
    rows = []
    for node in layout.nodes:
        role, strand = role_of(node.message), layout.strand_of[node.id]
        marks = _USER if role == "user" else 0 if role == "assistant" else _OTHER
        marks |= _REPLACED if node.state == State.SUPERSEDED else 0
        marks |= (_DOUBTFUL if is_doubtful(node) else 0) | (_ACTIVE if node.id == active else 0)
        parent_row = -1 if node.parent_id is None else row_of[node.parent_id]
        rows.append((node.id, parent_row, lanes[strand], _hue(layout, node), marks))
    return json.dumps(rows, separators=(",", ":"))


def to_svg(
    nodes: Sequence[ConversationNode],
    *,
    active: int | None = None,
    history: Sequence[ConversationNode] | None = None,
) -> str:
    """Draw a conversation as an SVG picture: a column for each thread, a row for each message.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        active: Id of the tip of the active thread, which gets a ring.
        history: All nodes of the conversation, so that threads have the colours of the page; by default
            `nodes`.

    Returns:
        An `<svg>` element with the newest 200 messages and the number of the others. It has its own
        background, dark if the system is dark, so that it is readable on light and dark pages. Human messages
        are drawn in full colour, answers in a pale colour, other messages smaller. A message whose place is
        doubtful has a question mark and a dashed line.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        NodeNotFoundError: `active` is not among the nodes.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> to_svg([ConversationNode(1, HumanMessage("Hello"))]).count("<circle")
        1
    """
    layout = Layout(nodes, active, history)
    drawn = layout.nodes[-_DRAWN:]
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
            color = _DEEP.format(_hue(layout, node))
            course = f"M{from_x} {from_y}{bend}L{x} {y}"
            lines.append(f'<path d="{course}" stroke="{color}" stroke-width="{strong}"{dashed}/>')
        hue = _hue(layout, node)
        dots.append(_dot(node, x, y, text_x, hue, ring=node.id == active, doubtful=doubtful))
    hidden_note = (
        f'<text x="8" y="18" opacity=".7">{plural(hidden, "earlier message")} not shown</text>'
        if hidden
        else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{layout.counts}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
        f'font-size="12" fill="currentColor" class="threadmem-tree" style="background:#fff;color:#26282c">'
        f"<style>{_DARK}</style>{hidden_note}"
        f'<g fill="none">{"".join(lines)}</g>{"".join(dots)}</svg>'
    )


def _article(node: ConversationNode, layout: Layout, titles: Sequence[str], *, active: bool) -> str:
    doubtful = is_doubtful(node)
    role = role_of(node.message)
    classes = [role if role in ("user", "assistant") else "other"]
    classes += ["replaced"] if node.state == State.SUPERSEDED else []
    classes += ["here"] if active else []
    classes += ["doubt"] if doubtful else []
    note = ""
    if node.superseded_by is not None:
        note = (
            f'<a href="#n{node.superseded_by}"{hover("replaced")}><small>replaced by {node.superseded_by}'
            "</small></a>"
        )
    elif word := STATES[node.state]:
        note = f"<small{hover(word)}>{word}</small>"
    note += f"<small{hover('active')}>active</small>" if active else ""
    about = f"<small{hover('summary')}>{escape(node.summary.title)}</small>" if node.summary else ""
    mark = f"<mark{hover('doubtful')}>doubtful:</mark> " if doubtful else ""
    reason = (
        f'<div class="why">{mark}{_reason(node.placement, layout, titles)}</div>' if node.placement else ""
    )
    length = len(content_of(node.message))
    body = f'<div class="text">{html_of(body_of(node.message))}</div>'
    if length > _LONG:
        first = f"<span>{escape(preview_of(node.message, 240))}</span> <small>{length:,} characters</small>"
        body = f"<details><summary>{first}</summary>{body}</details>"
    return (
        f'<article id="n{node.id}" class="{" ".join(classes)}"><div class="meta">'
        f"<h3>{escape(label_of(node.message))}</h3>{about}{note}{_time(node)}"
        f'<a href="#n{node.id}">{node.id}</a></div>{body}{reason}</article>\n'
    )


def _reason(placement: Placement, layout: Layout, titles: Sequence[str]) -> str:
    """The reason for a place, and the probabilities of the threads that were considered."""
    probabilities = []
    for candidate, chance in placement.chances:
        candidate_name = "new thread"
        if candidate is not None and candidate in layout.strand_of:
            candidate_name = (
                f'<a href="#n{candidate}">{titles[layout.strand_of[candidate]]}</a> ({candidate})'
            )
        elif candidate is not None:
            candidate_name = f"message {candidate}"
        probabilities.append(f"{candidate_name} {100 * chance:.0f} %")
    return "; ".join(filter(None, [escape(placement.reason), ", ".join(probabilities)]))


def _time(node: ConversationNode) -> str:
    if node.timestamp == EPOCH:
        return ""
    return f'<time datetime="{node.timestamp.isoformat()}">{node.timestamp:%Y-%m-%d %H:%M}</time>'


def _origin(layout: Layout, strand: Strand, titles: Sequence[str]) -> str:
    """The thread that a branch leaves, for the list of threads."""
    if strand.first.parent_id is None:
        return ""
    root = titles[layout.strand_of[layout.root_of(strand).id]]
    return f"<small{hover('branch')}>branch of {root}</small>"


def _spot(layout: Layout, node: ConversationNode) -> str:
    """The colour of a thread."""
    color = _DEEP.format(_hue(layout, node))
    return (
        f'<svg width="10" height="10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill="{color}"/></svg>'
    )


def _dot(node: ConversationNode, x: int, y: int, text_x: int, hue: int, *, ring: bool, doubtful: bool) -> str:
    role = role_of(node.message)
    deep, pale = _DEEP.format(hue), _PALE.format(hue)
    halo = f'<circle cx="{x}" cy="{y}" r="9" fill="none" stroke="{deep}" stroke-width="1.5"/>' if ring else ""
    struck = ' opacity=".5" text-decoration="line-through"' if node.state == State.SUPERSEDED else ""
    mark = f'<tspan class="doubt" fill="{_DOUBT}" font-weight="bold">? </tspan>' if doubtful else ""
    faded = "" if role == "user" else ' opacity=".75"'
    about = escape(f"{label_of(node.message)}: {preview_of(node.message, 400)}")
    return (
        f"<g{struck}><title>{about}</title>{halo}"
        f'<circle cx="{x}" cy="{y}" r="{5 if role in ("user", "assistant") else 3}" '
        f'fill="{deep if role == "user" else pale}" stroke="{deep}"/>'
        f'<text x="{text_x - 8}" y="{y + 4}" text-anchor="end" opacity=".65">{node.id}</text>'
        f'<text x="{text_x}" y="{y + 4}"{faded}>{mark}{escape(preview_of(node.message, 70))}</text></g>'
    )


def _hue(layout: Layout, node: ConversationNode) -> int:
    # Steps of the golden angle give successive colours different hues, for any number of colours.
    return round(210 + layout.color_of[node.id] * 137.5) % 360

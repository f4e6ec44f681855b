"""Terminal output with rich: trees, threads, conversations and hits.

Messages are untrusted and drawn as plain text, without markup and control characters. Trees are indented at
forks only, see `formats.exporters.layout`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from langchain_threadmem.formats.exporters.formats import Nodes
from langchain_threadmem.formats.exporters.layout import Layout, line_of
from langchain_threadmem.long_term.lists.verbs import ConversationInfo, ThreadInfo
from langchain_threadmem.maintenance.statistics import Statistics
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.display import content_of
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.selection.moves.corrections import Doubt
from langchain_threadmem.selection.moves.sort import Move
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode, is_doubtful, is_said

COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
"""Colours of the threads, in turn."""
DOUBT_STYLE = "bold yellow"
"""Style of the mark of a message in a doubtful place."""
MAX_WIDTH = 400
"""The number of formatted characters of a message, which rich cuts to the width of the terminal."""


LEAST_TEXT = 16
"""The room for texts in a table whose names fill the terminal, in characters."""


def write(*parts: RenderableType) -> None:
    """Print parts, one below the other.

    A table with long names is wider than a narrow terminal, which wraps its lines: names can be copied.
    """
    console = Console()
    for part in parts:
        if isinstance(part, Table):
            least = Measurement.get(console, console.options.update(width=MAX_WIDTH), part).minimum
            Console(width=max(console.width, least + LEAST_TEXT)).print(part)
        else:
            console.print(part)


def draw_tree(history: Nodes, *, reasons: bool = False, forgotten: Container[int] = ()) -> RenderableType:
    """The live nodes and their ancestors as a tree: one line per message, one colour per thread.

    A message whose place is doubtful has a question mark; a forgotten message is marked too.

    Args:
        history: Nodes of one conversation, in any order.
        reasons: Whether to show the reason for the placement below each message.
        forgotten: Numbers of the forgotten messages.
    """
    layout = Layout(graph.living(history), history=history)
    top = Tree(Text(layout.counts, style="bold"), guide_style="dim")

    def line(node: ConversationNode) -> Text:
        line = message_line(node, COLORS[layout.color_of[node.id] % len(COLORS)])
        marks = "? " * is_doubtful(node) + "(forgotten) " * (node.id in forgotten)
        return _cut(marks, DOUBT_STYLE).append_text(line) if marks else line

    def add(node: ConversationNode, parent: Tree) -> Tree:
        branch = parent.add(line(node))
        if reasons and node.placement is not None:
            branch.add(_cut(one_line(str(node.placement), MAX_WIDTH), "dim italic"))
        return branch

    def draw(first: ConversationNode, parent: Tree) -> None:
        branch = last = add(first, parent)
        node: ConversationNode | None = first
        while node is not None:
            branches, node = layout.fork(node)
            for branch_start in branches:
                draw(branch_start, last)
            if node is not None:
                last = add(node, branch)

    for root in layout.roots:
        draw(root, top)
    return top


def message_line(node: ConversationNode, color: str = "default") -> Text:
    """A message on one line: human messages in the colour of the thread, others dim.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> message_line(ConversationNode(7, HumanMessage("Hello [bold]there"))).plain
        '7 User: Hello [bold]there'
    """
    return _cut(line_of(node, MAX_WIDTH), color if node.message.type == "human" else "dim")


def list_doubts(doubts: Sequence[Doubt]) -> RenderableType:
    """Messages in doubtful places, each with its place and with the most probable other place."""
    if not doubts:
        return Text("no place is doubtful")
    lines = Table.grid(padding=(0, 1))
    for doubt in doubts:
        alternative = doubt.runner_up
        parent = "a new thread" if alternative.parent_id is None else f"below node {alternative.parent_id} in"
        lines.add_row(Text("?", style=DOUBT_STYLE), message_line(doubt.node))
        for share, text in (
            (doubt.probability, doubt.reason),
            (alternative.probability, f"or {parent} {alternative.title!r}"),
        ):
            reason = _cut(one_line(text, MAX_WIDTH), "dim italic")
            lines.add_row("", Text(f"{100 * share:3.0f} % ", style="dim").append_text(reason))
    return lines


def list_threads(history: Nodes) -> Table:
    """A table of the live threads: first message, its parent, length from the root, last message."""
    layout = Layout(graph.living(history), history=history)
    table = _table("thread", "from", "messages", "ends at")
    for strand in layout.strands[: layout.threads]:
        title = _opening(strand.first, COLORS[layout.color_of[strand.tip.id] % len(COLORS)])
        table.add_row(title, str(strand.first.parent_id or ""), str(strand.length), str(strand.tip.id))
    return table


def list_conversations(histories: Iterable[tuple[str, Nodes]]) -> RenderableType:
    """A table of conversations: name, number of messages and of threads, first message."""
    table = _table("conversation", "messages", "threads", "begins")
    for name, history in histories:
        nodes = graph.living(history)
        begins = _opening(nodes[0], "dim") if nodes else Text()
        messages, threads = sum(map(is_said, nodes)), len(graph.leaves(nodes))
        table.add_row(Text(one_line(name)), str(messages), str(threads), begins)
    return table if table.row_count else Text("no conversations")


def list_moves(moves: Sequence[Move]) -> Table:
    """A table of moves: message, its parents before and after, probability, reason."""
    table = _table("message", "from", "to", "sure", "reason")
    for move in moves:
        sure = "" if move.probability is None else f"{100 * move.probability:.0f} %"
        table.add_row(
            _cut(one_line(text_of(move.message), MAX_WIDTH)),
            str(move.old_parent_id or ""),
            str(move.parent_id or "new"),
            sure,
            Text(one_line(move.reason)),
        )
    return table


def list_infos(infos: Sequence[ConversationInfo | ThreadInfo]) -> RenderableType:
    """A table of conversations or of threads: id, time of the last use, number of messages, title."""
    if not infos:
        return Text("nothing to list")
    table = _table("id", "last used", "messages", "title")
    for info in infos:
        used = info.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        table.add_row(
            Text(one_line(str(info.id))), used, str(info.messages), Text(one_line(info.title, MAX_WIDTH))
        )
    return table


def show_recall(question: str, hits: Sequence[Recollection], *, named: bool = False) -> RenderableType:
    """The hits of a recall: each below its context, with its score and the reason."""
    lines = Table.grid(padding=(0, 1), pad_edge=True)
    for hit in hits:
        for node in hit.thread:
            if node.id != hit.node.id:
                lines.add_row("", message_line(node))
        lines.add_row("→", Text(line_of(hit.node, MAX_WIDTH)))
        conversation = f"{one_line(hit.conversation_id)}, " if named and hit.conversation_id else ""
        lines.add_row(
            "", Text(f"{conversation}score {hit.score:.2f}: {one_line(str(hit.why))}\n", style="italic")
        )
    body = lines if hits else Text(" nothing\n", style="dim")
    return Group(Text(one_line(question), style="bold"), body)


def list_owners(owners: Sequence[Statistics]) -> RenderableType:
    """A table of owners: name, numbers of conversations and of messages."""
    table = _table("owner", "conversations", "messages")
    for owner in owners:
        table.add_row(Text(one_line(owner.owner)), f"{owner.conversations:,}", f"{owner.messages:,}")
    return table if table.row_count else Text("no owners")


def show_statistics(owners: Sequence[Statistics]) -> RenderableType:
    """Tables: the counts of each owner, and the sizes of the database with the data of all owners."""
    tables: list[RenderableType] = []
    for statistics in owners:
        counts = _table(f"data of {one_line(statistics.owner)!r}", "number")
        for name in (
            "conversations",
            "messages",
            "summaries",
            "vectors",
            "checkpoints",
            "items",
            "unindexed",
        ):
            counts.add_row(name, f"{getattr(statistics, name):,}")
        counts.add_row("corrections", f"{statistics.bias.corrections:,}")
        tables += [counts, ""]
    if not owners:
        return Text("no owners")
    database = owners[0].database
    whose = "all owners" if database.owners is None else plural(database.owners, "owner")
    sizes = _table(f"data of {whose}", "size")
    sizes.add_row("database", decimal(database.bytes))
    sizes.add_row("vector index", decimal(database.index_bytes))
    for name, size in database.table_bytes.items():
        sizes.add_row(f"table {name}" + " (estimated)" * database.estimated, decimal(size))
    return Group(*tables, sizes)


def _table(*headings: str) -> Table:
    """A table whose columns of message texts shrink in a narrow terminal; names and numbers are never cut."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        number = heading in ("from", "messages", "threads", "ends at", "number", "size")
        # rich shrinks columns that may wrap; their texts do not wrap and are cut.
        table.add_column(
            heading,
            justify="right" if number else "left",
            no_wrap=heading not in ("thread", "begins", "title"),
        )
    return table


def _opening(node: ConversationNode, style: str) -> Text:
    return _cut(one_line(content_of(node.message), 60), style)


def _cut(text: str, style: str = "") -> Text:
    """A text that is cut at the end of its line instead of continued on the next."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")

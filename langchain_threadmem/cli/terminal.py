"""Conversations as rich draws them in a terminal: a tree, its threads, hits.

A message that simply goes on stands below the one before it, and only forks are set in, so a thread of a
hundred turns is a column, not a staircase. What people said is shown as plain text: markup and control
characters in it do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from langchain_threadmem.export.layout import Layout, label_of, said
from langchain_threadmem.messages.text import one_line
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode

Nodes = Sequence[ConversationNode]

COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
"""Colours of the threads, in turn."""
WIDEST = 400
"""How many characters of a message are looked at; the terminal cuts them to its width."""


def draw_tree(history: Nodes, *, reasons: bool = False) -> RenderableType:
    """The living tree, one line a message, each thread in its colour.

    Args:
        history: Nodes of one conversation, in any order.
        reasons: Whether to say below a message why it is where it is, and what else was likely.
    """
    layout = Layout(graph.living(history))
    top = Tree(Text(_counts(layout), style="bold"), guide_style="dim")

    def line(node: ConversationNode) -> Text:
        return message_line(node, COLORS[layout.strand_of[node.id] % len(COLORS)])

    def add(node: ConversationNode, below: Tree) -> Tree:
        branch = below.add(line(node))
        if reasons and node.placement is not None:
            words = one_line(str(node.placement), WIDEST)
            branch.add(Text(words, style="dim italic", no_wrap=True, overflow="ellipsis"))
        return branch

    def draw(first: ConversationNode, below: Tree) -> None:
        branch = here = add(first, below)
        node: ConversationNode | None = first
        while node is not None:
            aside, node = layout.fork(node)
            for other in aside:
                draw(other, here)
            if node is not None:
                here = add(node, branch)

    for root in layout.roots:
        draw(root, top)
    return top


def message_line(node: ConversationNode, color: str = "default") -> Text:
    """A message on one line: what people say in the thread's colour, all else dim.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> message_line(ConversationNode(7, HumanMessage("Hello [bold]there"))).plain
        '7 User: Hello [bold]there'
    """
    style = color if node.message.type == "human" else "dim"
    words = f"{node.id} {label_of(node.message)}: {one_line(said(node.message), WIDEST)}"
    return Text(words, style=style, no_wrap=True, overflow="ellipsis")


def list_threads(history: Nodes) -> Table:
    """The threads: how each begins where it leaves an older one, and its messages from the root on."""
    layout = Layout(graph.living(history))
    table = _table("thread", "from", "messages", "ends at")
    for number, strand in enumerate(layout.strands[: layout.threads]):
        title = _opening(strand.first, COLORS[number % len(COLORS)])
        table.add_row(title, str(strand.first.parent_id or ""), str(strand.length), str(strand.tip.id))
    return table


def list_conversations(histories: Mapping[str, Nodes]) -> RenderableType:
    """Conversations by name, with what they hold and how they begin."""
    if not histories:
        return Text("no conversations")
    table = _table("conversation", "messages", "threads", "begins")
    for name, history in histories.items():
        nodes = graph.living(history)
        begins = _opening(nodes[0], "dim") if nodes else Text()
        table.add_row(Text(one_line(name)), str(len(nodes)), str(len(graph.leaves(nodes))), begins)
    return table


def show_recall(question: str, hits: Sequence[Recollection]) -> RenderableType:
    """What a question brought back: each hit below its context, with its score and the reason."""
    lines = Table.grid(padding=(0, 1), pad_edge=True)
    for hit in hits:
        for node in hit.thread:
            if node.id != hit.node.id:
                lines.add_row("", message_line(node))
        words = f"{hit.node.id} {label_of(hit.node.message)}: {one_line(said(hit.node.message), WIDEST)}"
        lines.add_row("→", Text(words))
        lines.add_row("", Text(f"score {hit.score:.2f}: {one_line(str(hit.why))}\n", style="italic"))
    found = lines if hits else Text(" nothing\n", style="dim")
    return Group(Text(one_line(question), style="bold"), found)


def _table(*headings: str) -> Table:
    """A table in which openings give way to a narrow terminal, and numbers and names do not."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        number = heading in ("from", "messages", "threads", "ends at")
        # rich narrows the columns that may wrap; an opening is cut all the same, since its text may not.
        table.add_column(
            heading, justify="right" if number else "left", no_wrap=heading not in ("thread", "begins")
        )
    return table


def _opening(node: ConversationNode, style: str) -> Text:
    return Text(one_line(said(node.message), 60), style=style, no_wrap=True, overflow="ellipsis")


def _counts(layout: Layout) -> str:
    messages = "1 message" if len(layout.nodes) == 1 else f"{len(layout.nodes)} messages"
    threads = "1 thread" if layout.threads == 1 else f"{layout.threads} threads"
    return f"{messages} in {threads}"

"""Rows, lanes and topics: a row for each message, and a lane and a topic for each strand of a thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from langchain_threadmem.catalogue.verbs import title_of_thread
from langchain_threadmem.export.layout import Layout
from langchain_threadmem.messages.text import one_line
from langchain_threadmem.tree.node import ConversationNode

LINE = 160
"""The length of a message or a title on one line, in characters."""


def rows_of(layout: Layout) -> list[ConversationNode]:
    """The nodes in the order of their times, each parent before its children.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> hello = HumanMessage("Hello")
        >>> nodes = [ConversationNode(3, hello), ConversationNode(2, hello, 3), ConversationNode(1, hello)]
        >>> [node.id for node in rows_of(Layout(nodes))]
        [1, 3, 2]
    """
    by_id = {node.id: node for node in layout.nodes}
    below: dict[int | None, list[ConversationNode]] = defaultdict(list)
    for node in layout.nodes:
        below[node.parent_id].append(node)
    waiting = [(node.timestamp, node.id) for node in below[None]]
    heapify(waiting)
    rows = []
    while waiting:
        _, node_id = heappop(waiting)
        rows.append(by_id[node_id])
        for child in below[node_id]:
            heappush(waiting, (child.timestamp, child.id))
    return rows


def lanes_of(layout: Layout, row_of: Mapping[int, int]) -> list[int]:
    """The lane of each strand of a layout: the leftmost lane that is free from its fork to its end.

    Args:
        layout: The layout.
        row_of: The row of each node, by node id.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> parents = {1: None, 2: 1, 3: None, 4: 3, 5: None}
        >>> nodes = [ConversationNode(n, HumanMessage("Hello"), above) for n, above in parents.items()]
        >>> layout = Layout(nodes)
        >>> lanes_of(layout, {node.id: node.id for node in nodes})
        [0, 0, 0]
    """
    lanes = [0] * len(layout.strands)
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # the last row of each lane, and the lane
    ends = []
    for number, strand in enumerate(layout.strands):
        first, last = row_of[strand.first.id], row_of[strand.tip.id]
        parent = strand.first.parent_id
        ends.append((first if parent is None else row_of[parent] + 1, last, number))
    for first, last, number in sorted(ends):
        while busy and busy[0][0] < first:
            heappush(free, heappop(busy)[1])
        lanes[number] = heappop(free) if free else len(busy)
        heappush(busy, (last, lanes[number]))
    return lanes


def topics_of(layout: Layout, rows: Sequence[ConversationNode]) -> list[str]:
    """The title of each strand of a layout, by the first human message or as a person or a model has set it.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> layout = Layout([ConversationNode(1, HumanMessage("How do I bake bread?"))])
        >>> topics_of(layout, layout.nodes)
        ['Bake bread']
    """
    below = {node.parent_id: node for node in reversed(rows)}
    topics = []
    for strand in layout.strands:
        second = below.get(strand.first.id)
        opening = [strand.first] if second is None else [strand.first, second]
        titles = [node.placement.title for node in opening if node.placement]
        title = next(filter(None, titles), "") or title_of_thread(node.message for node in opening)
        topics.append(one_line(title, LINE))
    return topics

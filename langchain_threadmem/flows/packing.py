"""Packing: hits and what leads up to them, made to fit a prompt.

A model can use a message only with the turn it belongs to, so whole turns are packed: the turn of each hit,
the best first, and then, as far as there is room, the turns above it in its thread. What the window shows
anyway is left out, and nothing is packed twice. A turn that does not fit is passed over for smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem.core.nodes import ConversationNode, Recollection
from langchain_threadmem.flows import read
from langchain_threadmem.flows.conversation import Conversation
from langchain_threadmem.flows.rows import nodes_of
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import nodes
from langchain_threadmem.storage.queries.nodes import NodeRow
from langchain_threadmem.storage.statements import Conn

if TYPE_CHECKING:
    from langchain_threadmem.flows.finding import Hit

LONGEST_TURN = 64
"""Messages of a turn after a hit that are looked at."""


def packed(
    conversation: Conversation, hits: Sequence[Hit], depth: int, max_tokens: int
) -> Flow[list[Recollection]]:
    """As many hits as fit, each with whole turns of its thread.

    Args:
        conversation: The conversation that asks; what its window shows is left out.
        hits: What was found, the best first.
        depth: How many messages above a hit's turn are considered.
        max_tokens: How many tokens all of it may have, approximately
            (`langchain_core.messages.utils.count_tokens_approximately`).
    """
    owner = conversation.runtime.owner
    shown = {message.id for message in (yield from read.messages(conversation))}

    def look(conn: Conn) -> list[tuple[Hit, NodeRow, str, list[NodeRow], list[NodeRow]]]:
        found = {row.key: (row, name) for row, _, name in nodes.of_owner(conn, owner, [h.key for h in hits])}
        return [
            (hit, *found[hit.key], nodes.thread(conn, hit.key), nodes.below(conn, hit.key, LONGEST_TURN))
            for hit in hits
            if hit.key in found
        ]

    room = max_tokens
    taken: set[int] = set()
    result: list[Recollection] = []
    for hit, row, name, above, below in (yield from Sql(look)):
        if hit.key in taken:
            continue
        turns = _turns(above, below)
        chosen: list[NodeRow] = []
        limit = depth
        for n, turn in enumerate(reversed(turns)):
            fresh = [
                one for one in turn if one.key not in taken and not _is_shown(one, name, conversation, shown)
            ]
            cost = _tokens(fresh)
            if (
                cost > room
                or (n and len(turn) > limit)
                or (not n and row.key not in {one.key for one in fresh})
            ):
                break
            room -= cost
            limit -= len(turn) if n else 0
            chosen = fresh + chosen
        if not chosen:
            continue
        taken.update(one.key for one in chosen)
        thread = nodes_of(chosen)
        node = next(one for one in thread if one.id == row.seq)
        result.append(Recollection(node, hit.score, tuple(thread), hit.why, name))
    return result


def _turns(above: Sequence[NodeRow], below: Sequence[NodeRow]) -> list[list[NodeRow]]:
    """The turns from the root to the one of a hit, whole: `above` ends with the hit."""
    turns: list[list[NodeRow]] = []
    for row in above:
        if row.role == "human" or not turns:
            turns.append([])
        turns[-1].append(row)
    for row in below:
        if row.role == "human":
            break
        turns[-1].append(row)
    return turns


def _is_shown(row: NodeRow, name: str, conversation: Conversation, shown: set[str | None]) -> bool:
    return name == conversation.name and row.message in shown


def _tokens(rows: Sequence[NodeRow]) -> int:
    found: Sequence[ConversationNode] = nodes_of(rows)
    return count_tokens_approximately([node.message for node in found])

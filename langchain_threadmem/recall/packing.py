"""Packing whole turns into a token budget.

A model can use a message only with the turn it belongs to, so whole turns are packed: the turn of each hit,
the best first, and then, as far as there is room, the turns above it in its thread. Messages that the window
shows are left out, and nothing is packed twice. A turn that does not fit is passed over for smaller ones.

A summary is packed alone. One that covers nothing but messages that are shown or packed already adds nothing,
and is left out; messages below a packed summary are packed all the same, since they say more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.recall.recollections import summaries_of
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.recall.search import Hit
from langchain_threadmem.recall.unfold import key_of_hit, leaves
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.conversation import Conversation
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import nodes_of

LONGEST_TURN = 64
"""Messages of a turn after a hit that are looked at."""


def packed(
    conversation: Conversation,
    hits: Sequence[Hit[int]],
    depth: int,
    max_tokens: int,
    shown: Collection[str | None],
) -> Flow[list[Recollection]]:
    """As many hits as fit, each with whole turns of its thread.

    Args:
        conversation: The conversation at hand.
        hits: The hits, the best first.
        depth: How many messages above a hit's turn are considered.
        max_tokens: How many tokens all of it may have, approximately
            (`langchain_core.messages.utils.count_tokens_approximately`).
        shown: Ids of the messages that its window shows; they are left out.
    """
    owner = conversation.runtime.owner

    def look(conn: Conn) -> list[_Context | Recollection]:
        found = {row.key: (row, name) for row, _, name in nodes.of_owner(conn, owner, [h.key for h in hits])}
        summaries = summaries_of(conn, owner, hits)
        return [
            summaries[hit.key]
            if hit.rank
            else _Context(
                hit, *found[hit.key], nodes.thread(conn, hit.key), nodes.below(conn, hit.key, LONGEST_TURN)
            )
            for hit in hits
            if hit.key in found or hit.key in summaries
        ]

    room = max_tokens
    taken: set[int] = set()
    result: list[Recollection] = []
    for seen in (yield from Sql(look)):
        if isinstance(seen, Recollection):
            cost = count_tokens_approximately([seen.node.message])
            if cost <= room and not (yield from adds_nothing(conversation, seen, shown, taken)):
                room -= cost
                result.append(seen)
            continue
        hit, row, name, above, below = seen
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
        thread = nodes_of(chosen, conversation.runtime.parts.read)
        node = next(one for one in thread if one.id == row.seq)
        result.append(Recollection(node, hit.score, tuple(thread), hit.why, name))
    return result


class _Context(NamedTuple):
    """A hit with its row, its conversation, its thread and the messages after it."""

    hit: Hit[int]
    row: NodeRow
    name: str
    above: list[NodeRow]
    below: list[NodeRow]


def adds_nothing(
    conversation: Conversation,
    summary: Recollection,
    shown: Collection[str | None],
    taken: Collection[int] = (),
) -> Flow[bool]:
    """Whether a summary covers nothing but messages that a model sees anyway.

    Args:
        conversation: The conversation at hand.
        summary: The summary.
        shown: Ids of the messages of that conversation which the model sees.
        taken: Keys of other messages that it sees.
    """
    covers, owner = summary.why.covers, conversation.runtime.owner
    if covers is None or covers.messages > len(shown) + len(taken):
        return False

    def look(conn: Conn) -> bool:
        found = nodes.of_owner(conn, owner, leaves(conn, [key_of_hit(conn, owner, summary)]))
        if len(found) < covers.messages:
            return False  # It is all that memory has left of forgotten messages.
        return all(row.key in taken or _is_shown(row, name, conversation, shown) for row, _, name in found)

    return (yield from Sql(look))


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


def _is_shown(row: NodeRow, name: str, conversation: Conversation, shown: Collection[str | None]) -> bool:
    return name == conversation.name and row.message in shown


def _tokens(rows: Sequence[NodeRow]) -> int:
    found: Sequence[ConversationNode] = nodes_of(rows)
    return count_tokens_approximately([node.message for node in found])

"""Packing whole turns into a token budget.

A message is understood only within its turn, so whole turns are packed: the turn of each hit, the best hit
first, and then, as far as the budget allows, the turns above it in its thread. Messages in the window of the
conversation are omitted, and each message is packed once. A turn that exceeds the budget is skipped; a
smaller turn of a later hit may be packed.

A summary is packed alone. It is omitted if the window or the pack contains all of its messages. The messages
of a packed summary are packed as well, since they contain more detail.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.messages.tokens import count_tokens
from langchain_threadmem.recall.recollections import Pairs
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.recall.search import Hit
from langchain_threadmem.recall.unfold import key_of_hit, leaves
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.conversation import Conversation
from langchain_threadmem.tree.node import nodes_of
from langchain_threadmem.tree.nodes import NodeRow

LONGEST_TURN = 64
"""The maximum number of messages after a hit that are packed with it."""


def packed(
    conversation: Conversation,
    hits: Pairs,
    depth: int,
    max_tokens: int,
    shown: Collection[str | None],
) -> Flow[list[Recollection]]:
    """The hits that fit into the budget, each with whole turns of its thread.

    Args:
        conversation: The conversation that the recall was called on.
        depth: The maximum number of messages above a hit's turn.
        max_tokens: The budget, as `count_tokens` counts tokens.
        shown: Ids of the messages in the window of the conversation, which are omitted.
    """

    def read(conn: Conn) -> list[_Context | Recollection]:
        return [
            replace(found, score=hit.score)
            if row is None
            else _Context(
                hit,
                row,
                found.conversation_id,
                nodes.thread(conn, hit.key),
                nodes.below(conn, hit.key, LONGEST_TURN),
            )
            for hit, (found, row) in hits
        ]

    budget = max_tokens
    packed_keys: set[int] = set()
    result: list[Recollection] = []
    for context in (yield from Sql(read)):
        if isinstance(context, Recollection):
            cost = count_tokens([context.node.message])
            if cost <= budget and not (yield from adds_nothing(conversation, context, shown, packed_keys)):
                budget -= cost
                result.append(context)
            continue
        hit, row, name, above, below = context
        if hit.key in packed_keys:
            continue
        turns = _turns(above, below)
        chosen: list[NodeRow] = []
        limit = depth
        for n, turn in enumerate(reversed(turns)):
            new = [
                member
                for member in turn
                if member.key not in packed_keys and not _is_shown(member, name, conversation, shown)
            ]
            cost = count_tokens([node.message for node in nodes_of(new)])
            if (
                cost > budget
                or (n and len(turn) > limit)
                or (not n and row.key not in {member.key for member in new})
            ):
                break
            budget -= cost
            limit -= len(turn) if n else 0
            chosen = new + chosen
        if not chosen:
            continue
        packed_keys.update(member.key for member in chosen)
        thread = nodes_of(chosen, conversation.runtime.parts.read)
        node = next(node for node in thread if node.id == row.seq)
        result.append(Recollection(node, hit.score, tuple(thread), hit.why, name))
    return result


class _Context(NamedTuple):
    """A hit with its row, the name of its conversation, its thread and the messages below it."""

    hit: Hit[int]
    row: NodeRow
    name: str
    above: list[NodeRow]
    below: list[NodeRow]


def adds_nothing(
    conversation: Conversation,
    summary: Recollection,
    shown: Collection[str | None],
    packed_keys: Collection[int] = (),
) -> Flow[bool]:
    """Whether a model sees all messages that a summary covers.

    Args:
        conversation: The conversation that the recall was called on.
        shown: Ids of the messages of this conversation that the model sees.
        packed_keys: Keys of other messages that the model sees.
    """
    covers, owner = summary.why.covers, conversation.runtime.owner
    if covers is None or covers.messages > len(shown) + len(packed_keys):
        return False

    def read(conn: Conn) -> bool:
        rows = nodes.of_owner(conn, owner, leaves(conn, [key_of_hit(conn, owner, summary)]))
        if len(rows) < covers.messages:
            return False  # Of forgotten messages only the summary is left.
        return all(
            row.key in packed_keys or _is_shown(row, name, conversation, shown) for row, _, name in rows
        )

    return (yield from Sql(read))


def _turns(above: Sequence[NodeRow], below: Sequence[NodeRow]) -> list[list[NodeRow]]:
    """The turns from the root to the complete turn of a hit; `above` ends with the hit."""
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

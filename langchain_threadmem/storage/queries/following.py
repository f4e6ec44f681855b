"""Following: new messages that simply go below the tip, as nearly all do.

They are `growth.Append` without its cases, and stored as that would store them; the fewer steps, the better:
each append to disk waits for it, and after a wait every step takes two to three times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from langchain_core.messages import BaseMessage

from langchain_threadmem.core.bodies import give_id
from langchain_threadmem.core.nodes import ConversationNode, State, stored_node
from langchain_threadmem.core.numbered import numbered
from langchain_threadmem.storage.queries import ends, nodes
from langchain_threadmem.storage.queries.ends import End
from langchain_threadmem.storage.schema import LAST_POSITION
from langchain_threadmem.storage.statements import Conn

Said = tuple[BaseMessage, str, str]
"""A message that is nobody else's, its role, and its body."""


def _together(conn: Conn, chains: Sequence[Chain]) -> list[list[ConversationNode]]:
    """Write several chains in their order, at the cost of one; what each became."""
    held: dict[int, End] = {} if conn.ends is None else conn.ends
    rows: list[tuple[object, ...]] = []
    results: list[list[ConversationNode]] = []
    for chain in chains:
        tree, stem, created = chain.tree, chain.stem, chain.created
        end = held.get(tree)
        if end is None:
            end = held[tree] = ends.read(conn, tree)
        key, seq, above = end.tip, end.seq, end.tip_seq
        at = datetime.fromtimestamp(created, UTC)
        written = []
        for message, role, body in chain.said:
            # `ends.next_key` and `strides.opens`, written out: each call here is a hundredth of an append.
            if key is None or end.taken or key & LAST_POSITION == LAST_POSITION:
                key, opens, end.taken = ends.new_segment(conn, tree, key), 1, False
            else:
                key, opens = key + 1, 0 if above == seq else 1
            seq += 1
            id = numbered(stem, seq)
            rows.append((key, tree, seq, above, id, role, body, created, opens))
            give_id(message, id)
            written.append(stored_node(seq, message, above, None, at, State.LIVE, None))
            above = seq
        end.tip, end.tip_seq, end.seq, end.stale = key, above, seq, end.stale or end.pinned
        results.append(written)
    nodes.insert_new(conn, rows)
    for chain in chains:
        if held[chain.tree].stale:
            ends.settle(conn, chain.tree, held[chain.tree])
    return results


@dataclass(slots=True)
class Chain:
    """New messages to be written below the active tip: a write as data, so that many become one statement.

    Attributes:
        tree: The tree.
        said: The messages, in order, which get their ids here. None is a system message or has an id before.
        stem: The beginning of their ids.
        created: When they were said, in seconds since 1970, UTC.
    """

    tree: int
    said: Sequence[Said]
    stem: str
    created: float
    appends: ClassVar = True
    together: ClassVar = staticmethod(_together)

    def __call__(self, conn: Conn) -> list[ConversationNode]:
        return _together(conn, (self,))[0]

"""Answers of a list that reuse the id of the same answer to another question, as from a cache of answers.

Such an answer has two nodes. The conversation gets an answer with an id of its own, below its question. The
list refers to a node with its own id and content, which is not part of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.messages.codec import is_same_answer
from langchain_threadmem.messages.ids import own_id
from langchain_threadmem.messages.roles import ANSWERING
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.lists.encoded import EncodedMessage
from langchain_threadmem.tree.lists.placing import StoredPlace


def own_answers(
    conn: Conn,
    tree_id: int,
    messages: Sequence[EncodedMessage],
    places: Mapping[str, Sequence[StoredPlace]],
    after: int | None,
    is_before: Callable[[int], bool],
) -> dict[int, EncodedMessage]:
    """The answers with ids of their own, by the positions of the answers that reuse an id.

    An answer reuses its id if it was stored before its question, and the list does not contain the message
    that it is stored below.

    Args:
        conn: A transaction that has locked the tree.
        tree_id: The tree.
        messages: The list, or its messages after a stored beginning.
        places: The stored places of the messages.
        after: The key of the last message of the stored beginning.
        is_before: Whether the stored beginning contains the node with a key.
    """

    def is_listed(key: int) -> bool:
        return any(place.key == key for stored in places.values() for place in stored) or is_before(key)

    own: dict[int, EncodedMessage] = {}
    question = None
    is_known = False
    for n, (id_, body, role) in enumerate(messages):
        if role not in ANSWERING:
            is_known, question = True, _asked(id_, places) if role == "human" else None
            continue
        old = next((place for place in places.get(id_, ()) if place.state == State.LIVE), None)
        if old is None or old.parent is None or is_listed(old.parent):
            continue
        if not is_known:
            is_known, question = True, _asked_before(conn, tree_id, after)
        if question is not None and old.seq < question[1] and is_same_answer(str(old.content), body):
            own[n] = EncodedMessage(own_id(id_, question[0]), body, role)
    return own


def _asked(id_: str, places: Mapping[str, Sequence[StoredPlace]]) -> tuple[str, int] | None:
    """The id of a live human message, and the number with which it was stored first."""
    stored = places.get(id_, ())
    is_live = any(place.state == State.LIVE for place in stored)
    return (id_, min(place.seq for place in stored)) if is_live else None


def _asked_before(conn: Conn, tree_id: int, after: int | None) -> tuple[str, int] | None:
    """The result of `_asked` for the question of the turn that contains a node."""
    row = None if after is None else nodes.by_key(conn, after)
    visited = Visited()
    while row is not None and row.role in ANSWERING:
        visited.add(row.key)
        row = None if row.parent is None else nodes.by_seq(conn, tree_id, row.parent)
    if row is None or row.role != "human" or row.state != State.LIVE:
        return None
    return row.message, min(version.seq for version in nodes.versions(conn, tree_id, row.message))

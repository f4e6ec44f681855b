"""Messages that a list has merged into one, as `merge_message_runs` of LangChain does.

The merged message has the id of one of the messages, and the texts of all of them; the others have left the
list. They are then earlier versions of the merged message, and what follows them follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.messages.codec import decode_stored, text_of
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.lists.encoded import EncodedMessage
from langchain_threadmem.tree.lists.placing import StoredPlace

_ROLES = ("human", "ai")


class MergedRun(NamedTuple):
    """Stored messages that follow each other, and that a list has merged.

    Attributes:
        keys: The keys of the messages without the one whose id the merged message has.
        parent: The key of the parent of the first message.
    """

    keys: list[int]
    parent: int | None


def merged_runs(
    conn: Conn,
    tree_id: int,
    messages: Sequence[EncodedMessage],
    edited: Sequence[tuple[EncodedMessage, StoredPlace]],
    bodies: Mapping[int, str],
    is_before: Callable[[int], bool],
) -> dict[int, MergedRun]:
    """The merged messages, by the key of the stored message whose id the merged message has.

    Args:
        conn: A transaction.
        tree_id: The tree.
        messages: The list, or its messages after a stored beginning.
        edited: The messages whose live place has another body, with that place.
        bodies: The bodies of these places, by key.
        is_before: Whether the stored beginning contains the node with a key.
    """
    found: dict[int, MergedRun] = {}
    listed = {message.id for message in messages}

    def is_gone(row: nodes.NodeRow | None, role: str) -> bool:
        """Whether a node may be merged: the list has changed, and does not contain it."""
        is_alike = row is not None and row.role == role and row.state == State.LIVE
        return is_alike and row is not None and row.message not in listed and not is_before(row.key)

    for (id_, body, role), old in edited:
        if role not in _ROLES:
            continue
        new, own = map(text_of, decode_stored([(id_, body, role), (id_, bodies[old.key], role)]))
        if not own.strip() or len(new) <= len(own) or own not in new:
            continue
        above: list[nodes.NodeRow] = []
        row = None if old.parent is None else nodes.by_key(conn, old.parent)
        visited = Visited()
        while row is not None and is_gone(row, role):
            visited.add(row.key)
            above.insert(0, row)
            row = None if row.parent is None else nodes.by_seq(conn, tree_id, row.parent)
        texts = [*_texts(above), own]
        while texts and (rest := _after(new, texts)) is None:
            texts.pop(0)
        if not texts:
            continue
        above = above[len(above) + 1 - len(texts) :]
        below, last = [], (old.key, old.seq)
        while rest and rest.strip():
            outlines = nodes.children(conn, tree_id, [last])
            rows = [one for one in nodes.by_keys(conn, [one.key for one in outlines]) if is_gone(one, role)]
            said = next(
                ((one, text) for one, text in zip(rows, _texts(rows), strict=True) if text in rest), None
            )
            if said is None or not said[1].strip():
                break
            below.append(said[0].key)
            last, rest = (said[0].key, said[0].seq), rest.partition(said[1])[2]
        if above or below:
            parent = old.parent if not above else _key_of(conn, tree_id, above[0].parent)
            found[old.key] = MergedRun([*(one.key for one in above), *below], parent)
    return found


def _texts(rows: Iterable[nodes.NodeRow]) -> list[str]:
    return [
        text_of(message) for message in decode_stored([(row.message, row.body, row.role) for row in rows])
    ]


def _after(text: str, parts: Sequence[str]) -> str | None:
    """The rest of a text that begins with some parts, in their order; `None` for another text."""
    if not text.startswith(parts[0]):
        return None
    for part in parts:
        _, found, text = text.partition(part)
        if not found:
            return None
    return text


def _key_of(conn: Conn, tree_id: int, seq: int | None) -> int | None:
    row = None if seq is None else nodes.by_seq(conn, tree_id, seq)
    return None if row is None else row.key


def lift_merged(places: dict[str, list[StoredPlace]], merged: Mapping[int, MergedRun]) -> None:
    """Place the messages below merged messages below the one with their id, and it where they began."""
    replaced = {key: old for old, run in merged.items() for key in run.keys}
    for stored in places.values() if merged else ():
        for n, place in enumerate(stored):
            parent = place.parent
            if place.key in merged:
                parent = merged[place.key].parent
            elif place.state == State.LIVE and parent is not None:
                parent = replaced.get(parent, parent)
            if parent != place.parent:
                stored[n] = replace(place, parent=parent, former=place.written)

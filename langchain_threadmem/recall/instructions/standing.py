"""Standing instructions of a memory: what people have asked for from now on, and have not taken back.

No table contains them: they are messages, recognised by `directives`. So an instruction is edited, exported
and erased with its message, and a message that is forgotten is no instruction any more. A recall includes the
instructions that fit the query best (`recall.search`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from langchain_threadmem.common.inputs import check_one_of
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.index import lexicon
from langchain_threadmem.index.catch_up_words import catch_up_words
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.language import Language, stop_terms
from langchain_threadmem.index.unindexed import new_messages
from langchain_threadmem.index.units import memory
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.recall.instructions.directives import (
    SEARCHED,
    DirectiveKind,
    directives_in,
    revokes_all,
)
from langchain_threadmem.recall.postings import Postings, postings_of
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.node import ConversationNode, nodes_of
from langchain_threadmem.tree.nodes import NodeRow

MOST = 400
"""The number of newest messages of an owner in which instructions are searched."""
REVOKED = 0.5
"""The part of the terms of a revocation, or of the instruction, that both contain."""
_WORDS = (
    "answer reply response respond write use give include add keep put make tell explain always never stop "
    "longer anymore need want please instruction rule when ask now"
)
_EVERY_ANSWER = frozenset(_WORDS.split())
"""Words of many instructions, which do not tell one from another."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A standing instruction or a preference that a person has stated.

    Attributes:
        text: The sentence.
        kind: "instruction", such as "always answer in French", or "preference", such as "I prefer tea".
        node: The node of the message.
        conversation_id: The conversation of the message.
    """

    text: str
    kind: DirectiveKind
    node: ConversationNode
    conversation_id: str = ""


class _Stated(NamedTuple):
    """A sentence of a message, with the key of the message."""

    key: int
    instruction: Instruction


def instructions(runtime: Runtime, tree: int | None) -> Flow[list[Instruction]]:
    """The standing instructions and preferences of a conversation, or of an owner, oldest first.

    Args:
        tree: The conversation; `None` for all conversations of the owner.
    """
    stated = yield from _stated(runtime, (yield from _candidates(runtime, tree)))
    return [one.instruction for one in stated]


def of_conversation(conversation: Conversation, scope: str) -> Flow[list[Instruction]]:
    """The standing instructions of a conversation, or of its owner; see `ChatMemory.instructions`."""
    check_one_of("scope", scope, ("conversation", "owner"))
    if scope == "owner" and conversation.runtime.encrypted:
        raise InputError(
            "scope='owner' searches indexes on disk, which an encrypted memory does not have; "
            "list the instructions of one conversation at a time"
        )
    tree = None if scope == "owner" else (yield from tree_of(conversation))
    return (yield from instructions(conversation.runtime, tree))


def keys_in(runtime: Runtime, postings: Postings) -> Flow[Sequence[int]]:
    """The keys of the messages of a conversation that contain a standing instruction, cached."""
    with postings.lock:
        count, version = len(postings.rows), postings.version
        read, at, known = postings.standing
        if (read, at) == (count, version):
            return known
        keys = postings.rows["key"][postings.directing()].tolist()
    stated = (yield from _stated(runtime, keys)) if keys else []
    found = standing(stated)
    with postings.lock:
        postings.standing = count, version, found
    return found


def keys_of_owner(runtime: Runtime, tree: int | None) -> Flow[Sequence[int]]:
    """The keys of the messages that contain a standing instruction, by the lexicon."""
    keys = yield from _by_lexicon(runtime, tree)
    return standing((yield from _stated(runtime, keys))) if keys else ()


def standing(stated: Iterable[_Stated]) -> Sequence[int]:
    """The keys of instructions, without those of preferences that are no preference for a kind of answers."""
    return tuple(dict.fromkeys(one.key for one in stated if one.instruction.kind == "instruction"))


def _candidates(runtime: Runtime, tree: int | None) -> Flow[list[int]]:
    """The keys of messages that may contain instructions."""
    yield from catch_up_words(runtime, tree)
    if tree is None or (yield from Sql(lambda conn: bool(new_messages(conn, runtime, tree)))):
        return (yield from _by_lexicon(runtime, tree))
    postings, _ = yield from postings_of(runtime, tree)
    with postings.lock:
        keys: list[int] = postings.rows["key"][postings.directing()].tolist()
    return keys


def _by_lexicon(runtime: Runtime, tree: int | None) -> Flow[list[int]]:
    scope = lexicon.LexiconScope(runtime.owner, tree)
    words = runtime.get(Indexes).language.terms(SEARCHED)

    def read(conn: Conn) -> list[int]:
        keys = lexicon.holding_any(conn, words, scope, MOST)
        if new := new_messages(conn, runtime, tree):
            keys = np.concatenate([keys, *new.holding(words, [lexicon.NO_KEYS for _ in words])])
        return sorted(set(keys.tolist()))

    return (yield from Sql(read))


def _stated(runtime: Runtime, keys: Sequence[int]) -> Flow[list[_Stated]]:
    """The sentences of messages, oldest first, without those that were taken back."""
    owner = runtime.owner

    def read(conn: Conn) -> list[tuple[NodeRow, str]]:
        present = memory.present(conn, owner, keys)
        return [(row, name) for row, _, name in nodes.of_owner(conn, owner, keys) if row.key in present]

    rows = [(row, name) for row, name in (yield from Sql(read)) if row.role == "human"]
    found: list[_Stated] = []
    language = runtime.get(Indexes).language
    read_nodes = nodes_of([row for row, _ in rows], runtime.parts.read)
    for (row, name), node in sorted(
        zip(rows, read_nodes, strict=True), key=lambda pair: (pair[1].time, pair[0][0].key)
    ):
        for directive in directives_in(text_of(node.message)):
            stated = _Stated(row.key, Instruction(directive.text, directive.kind, node, name))
            if directive.revokes:
                left = [one for one in found if not _takes_back(directive.text, one, language)]
                # What takes nothing back is an instruction itself: "stop using emojis".
                found = left if len(left) < len(found) or revokes_all(directive.text) else [*found, stated]
            else:
                found.append(stated)
    return found


def _takes_back(text: str, stated: _Stated, language: Language) -> bool:
    """Whether a sentence takes an instruction back."""
    if revokes_all(text):
        return True
    said, before = _subject(text, language), _subject(stated.instruction.text, language)
    shared = len(said & before)
    return bool(shared) and shared >= REVOKED * min(len(said), len(before))


def _subject(text: str, language: Language) -> frozenset[str]:
    every = frozenset(map(language.term, _EVERY_ANSWER))
    return frozenset(language.terms(text)) - stop_terms(language) - every

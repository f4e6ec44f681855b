"""Turn ends whose human messages are without the constant text of their conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.bare_texts import BareTexts, BareTextsOfTrees
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import SelectionError
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.node import nodes_of

TextOf = Callable[[BaseMessage], str]


def bare_texts(runtime: Runtime | None, tree: int, of_message: TextOf = text_of) -> BareTexts:
    """The bare texts of a conversation; new ones without a memory, and for another function of a message."""
    if runtime is None:
        return BareTexts(of_message)
    known = runtime.get(BareTextsOfTrees).values
    bare = known.get((tree,))
    if bare is None or bare.text_of is not of_message:
        known.put((tree,), bare := BareTexts(of_message))
    return bare


def text_by(of_message: TextOf, message: BaseMessage) -> str:
    """The text of a message by a function of the caller.

    Raises:
        SelectionError: The function returns no string.
    """
    text: object = of_message(message)
    if not isinstance(text, str):
        raise SelectionError(f"text_of returned {text!r:.200}; return the text of the message as a string")
    return text


def read_texts(tree: TreeView, turn_ends: Sequence[TurnEnd], bare: BareTexts) -> Flow[None]:
    """Read the human messages of turns whose texts a function of the caller has not returned yet."""
    if bare.text_of is text_of:
        return
    missing = [end.human_id for end in turn_ends if end.human_id and end.human_id not in bare.by_node]
    if tree.runtime is None:
        read = [tree.thread(id_)[-1] for id_ in missing]
    elif missing:

        def by_number(conn: Conn) -> list[nodes.NodeRow]:
            return list(nodes.by_seqs(conn, tree.tree, missing).values())

        read = nodes_of((yield from Sql(by_number)), tree.runtime.parts.read)
    else:
        read = []
    for node in read:
        bare.by_node[node.id] = text_by(bare.text_of, node.message)


def given_texts(turn_ends: Iterable[TurnEnd], bare: BareTexts) -> list[str]:
    """The texts of the human messages of turns, with constant text."""
    texts = bare.by_node
    return [texts.get(end.human_id or 0, end.human) if texts else end.human for end in turn_ends]


def bare_turns(turn_ends: Iterable[TurnEnd], bare: BareTexts) -> list[TurnEnd]:
    """The turn ends with bare texts of their human messages."""
    if not (bare.constant or bare.by_node):
        return list(turn_ends)
    ends = list(turn_ends)
    texts = bare.of_all(given_texts(ends, bare))
    known = bare.derived
    for n, (end, text) in enumerate(zip(ends, texts, strict=True)):
        if text != end.human:
            given, made = known.get(end.id, (None, None))
            if given is not end or made.human != text:
                known[end.id] = end, (made := end._replace(human=text))
            ends[n] = made
    return ends

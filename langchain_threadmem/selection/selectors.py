"""Node selectors: the protocol, `LinearNodeSelector`, `SemanticNodeSelector`.

A selector is an object with `select_parent(tree, message) -> int | None` and optionally `aselect_parent`, or
a function of the same two arguments. It returns the id of the turn end to continue, or `None` for a new root.
The selectors of this module are written as flows (`choose`), which `select_parent` and `aselect_parent` run.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from langchain_core.messages import BaseMessage

from langchain_threadmem.common import forking
from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.engine.bare_texts import BareTexts
from langchain_threadmem.engine.child_runs import call_as_run
from langchain_threadmem.engine.embedder import Embedder
from langchain_threadmem.engine.flow import Call, Flow, arun, run
from langchain_threadmem.engine.multilingual_embeddings import MultilingualEmbeddings
from langchain_threadmem.engine.runtime import Resources, SharedComponent, bare
from langchain_threadmem.errors import DriverError, EmbeddingError, InputError, SelectionError
from langchain_threadmem.index.embed import catch_up_vectors, embed, model_of
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.latest_vectors import latest_vectors, new_vectors
from langchain_threadmem.index.vectors import NONE, Vectors
from langchain_threadmem.messages import codec
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.constant_text import LATEST
from langchain_threadmem.recall.candidates import likely
from langchain_threadmem.selection.choice import FIRST, UNBIASED, Choice, choose, language_of_message
from langchain_threadmem.selection.choice import LATEST as LATEST_TURNS
from langchain_threadmem.selection.features.structure import NEWEST, compared_turns
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.group_chat import WINDOW as GROUP_WINDOW
from langchain_threadmem.selection.group_chat import choose_in_group
from langchain_threadmem.selection.model import reader
from langchain_threadmem.selection.tree_view import (
    TreeView,
    as_view,
    bare_texts,
    bare_turns,
    bias_of,
    given_texts,
    read_texts,
    read_threads,
    text_by,
)
from langchain_threadmem.selection.turn_ends import TurnEnd

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


log = logging.getLogger(__package__)
COMPARED, NEAREST = 4096, 12
"""The number of messages before the newest turns that are compared, and of those that become candidates."""
ROUGHLY = 96
"""The number of messages that rough vectors find, and whose vectors are compared then."""
CACHED_TEXTS = 4096
"""The number of texts in languages other than English whose vectors are cached."""
NOTHING = np.zeros(0, np.float32)
OWN_TURNS = 256
"""The number of latest turns that a selector with its own model embeds; their vectors are not stored."""


@runtime_checkable
class NodeSelector(Protocol):
    """Chooses the message that a new human message continues."""

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        """The id of one of `tree.turn_ends()`, or `None` to start a new thread."""


AnySelector = NodeSelector | Callable[[TreeView, BaseMessage], int | None]


class FlowSelector:
    """Base class of selectors that are written as a flow: `choose` serves sync and async calls."""

    newest_turns: int | None = None
    """The number of newest turn ends that `choose` needs; `None` for all."""

    def choose(self, tree: TreeView, message: BaseMessage) -> Flow[int | None]:
        """The choice, as a flow; subclasses override it."""
        raise SelectionError(f"{type(self).__name__} defines no choose()")

    def select_parent(self, tree: Any, message: BaseMessage) -> int | None:
        """The id of the turn end that `message` continues, or `None` for a new root.

        Args:
            tree: A `TreeView`, or a NetworkX graph such as `ChatMemory.graph`.
            message: The new human message.
        """
        view = as_view(tree)
        return run(self.choose(view, message), view.runtime or bare())

    async def aselect_parent(self, tree: Any, message: BaseMessage) -> int | None:
        """Async `select_parent`."""
        view = as_view(tree)
        return await arun(self.choose(view, message), view.runtime or bare())


def choice_of(selector: AnySelector, view: TreeView, message: BaseMessage) -> Flow[int | None]:
    """The choice of any selector: a flow, an object or a function, sync or async.

    Raises:
        DriverError: The selector is async only, and the call is sync.
    """
    if isinstance(selector, FlowSelector):
        return (yield from selector.choose(view, message))
    sync: Any = getattr(selector, "select_parent", selector)
    awaitable: Any = getattr(selector, "aselect_parent", None)
    if inspect.iscoroutinefunction(sync):
        awaitable = sync
        sync = _refuse_sync
    answer: int | None = yield from call_as_run(
        "select_thread",
        view.conversation,
        {"message": message},
        lambda: sync(view, message),
        (lambda: awaitable(view, message)) if awaitable else None,
    )
    return answer


def _refuse_sync(view: TreeView, message: BaseMessage) -> int | None:
    raise DriverError(
        "this selector is an async function; call aappend(), or add a sync select_parent to the selector"
    )


class LinearNodeSelector(FlowSelector):
    """Continues the last turn: one thread, no model, no embedding. On a bare graph, the last answer.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> LinearNodeSelector().select_parent({}, HumanMessage("Hello")) is None
        True
    """

    def choose(self, tree: TreeView, message: BaseMessage) -> Flow[int | None]:
        """The end of the last turn; on a bare graph the last answer, as in llamabot."""
        yield from ()
        is_bare = tree.runtime is None
        return max((end.id for end in tree.turn_ends() if not (end.is_open and is_bare)), default=None)


class SemanticNodeSelector(FlowSelector):
    """Continues the thread that the message fits by meaning, words and recency; no chat model.

    A choice takes about 3 ms, besides the time to embed the message; see `selection.choice`. In a long
    conversation the message is compared with the newest turns and with similar older threads
    (`selection.shortlist`). Without an embedding model words and recency decide, and older threads are found
    in the lexicon, which an encrypted memory does not have.

    A turn with tool calls is compared by its answer and by the arguments and results of the calls, since an
    agent's answer often omits the subject that its calls name.

    Text that most human messages of a conversation share, such as a prompt template, a time stamp, a
    signature or a greeting, is left out (`messages.constant_text`).

    A message that announces another subject ("new topic: ...") leaves the last thread. A message that goes
    back to the first answer of a thread, or to the last but one ("back to your first version"), continues it.

    The selector has phrases of 14 languages (`selection/features/languages`); the language of a message is
    that of its words, or of the latest turns. A conversation in another language is read without phrases. The
    default embedding model supports English only: with the extra `multilingual`, turns in other languages are
    embedded by `MultilingualEmbeddings`; without the extra they are compared by words.

    In a group chat, whose human messages have two or more different names (`message.name`), the choice
    depends on the speaker, the names in the message and shared words, without embeddings. A message may then
    continue one of the latest messages only; see `selection.group_chat`.

    A last turn without an answer, for example a question whose answer was stopped, is the likeliest to be
    continued; a message that clearly belongs elsewhere, or opens a topic, does not continue it.

    Args:
        embeddings: An embedding model for this selector alone, which embeds the newest 256 turns; by default
            the memory's model.
        text_of: A function that returns the text of a human message by which it is compared, for messages
            with a template; by default its whole text. Constant text is left out of the result too.

    Raises:
        InputError: `embeddings` is not an embedding model, or `text_of` is no function.

    Example:
        >>> from langchain_threadmem import ChatMemory
        >>> memory = ChatMemory(node_selector=SemanticNodeSelector(), embeddings=False)
        >>> nodes = memory.append("Which wine goes with salmon?", "A dry Riesling.")
        >>> nodes = memory.append("And which wine goes with trout?", "The same.")
        >>> nodes[0].parent_id
        2
    """

    def __init__(
        self, embeddings: Embeddings | None = None, *, text_of: Callable[[BaseMessage], str] | None = None
    ) -> None:
        if not (text_of is None or callable(text_of)):
            raise InputError(f"text_of={text_of!r:.200} is no function; pass a function of a message")
        self._embedder = None if embeddings is None else Embedder(embeddings, remember=2 * OWN_TURNS + 2)
        self._text_of = text_of or codec.text_of
        self.newest_turns = NEWEST + 1 if embeddings is None else OWN_TURNS

    def choose(self, tree: TreeView, message: BaseMessage) -> Flow[int | None]:
        """The best turn end to continue, or `None` if the message opens a topic."""
        choice = yield from self.weigh(tree, message)
        if choice is not FIRST:  # A first message has no candidates to compare.
            tree.reason, tree.chances = choice.reason, choice.stored_chances
        return choice.parent_id

    def weigh(self, tree: TreeView, message: BaseMessage) -> Flow[Choice]:
        """The choice, with the probabilities of all candidates."""
        runtime = tree.runtime
        ends = tree.newest_ends(self.newest_turns)
        if not ends:
            return FIRST
        if tree.turns.is_group(message.name):
            reads = None if runtime is None else runtime.get(TurnReader).of("en")
            latest = tree.newest_ends(GROUP_WINDOW)
            return choose_in_group(tree.turns, latest, message.name, text_of(message), reads, tree.before)
        bare = bare_texts(runtime, tree.tree, self._text_of)
        yield from read_texts(tree, ends, bare)
        text = text_by(self._text_of, message)
        bare.learn([*given_texts(ends[-LATEST:], bare), text])
        text = bare.of(text)
        language = language_of_message(bare_turns(ends[-LATEST_TURNS:], bare), text)
        source = yield from self._vectors(tree, ends, bare, text, language)
        compared = yield from _compared(tree, ends, source, text)
        yield from read_texts(tree, compared, bare)
        compared = bare_turns(compared, bare)
        if source.separate is not None:
            source = yield from _embedded(source.separate, compared, text)
        reads = reader(language) if runtime is None else runtime.get(TurnReader).of(language)
        dimensions = source.message.size
        humans = rows_of(source.vectors, [end.human_id or 0 for end in compared], dimensions)
        answers = rows_of(source.vectors, [0 if end.is_open else end.id for end in compared], dimensions)
        bias = UNBIASED if runtime is None else (yield from bias_of(runtime))
        choice = choose(
            compared,
            humans,
            answers,
            text,
            source.message if dimensions else None,
            reads=reads,
            model=source.model,
            bias=bias,
        )
        tree.revised = {
            after.id: after.chances
            for before, after in zip(compared, choice.turn_ends, strict=True)
            if after is not before
        }
        return choice

    def _vectors(
        self, tree: TreeView, ends: Sequence[TurnEnd], bare: BareTexts, text: str, language: str
    ) -> Flow[_TurnVectors]:
        """The vectors of the turns and of the message."""
        runtime = tree.runtime
        if runtime is None and self._embedder is None:
            self._embedder = Embedder(None, remember=2 * OWN_TURNS + 2)
        if self._embedder is not None:
            if runtime is not None:
                runtime.embedders.add(self._embedder)
            return (yield from _embedded(self._embedder, bare_turns(ends, bare), text))
        assert runtime is not None
        separate = None
        if language != "en":
            separate = yield from runtime.get(OtherLanguages).model_for(language)
        model = "" if separate is not None else (yield from model_of(runtime))
        if not model:
            return _TurnVectors(NONE, NOTHING, "", separate)
        if runtime.get(Indexes).settings.history > 1:
            cached = yield from catch_up_vectors(runtime, tree.tree)
            vector = (yield from embed(runtime, [text]))[0]
            return _TurnVectors(NONE if cached is None else cached.vectors, vector, runtime.embedder.model)
        newest = ends[-NEWEST:]
        numbers = {end.human_id for end in newest if end.human_id}
        numbers.update([end.id for end in newest if not end.is_open])

        def texts(missing: Collection[int]) -> Mapping[int, str]:
            among = [end for end in newest if end.human_id in missing or end.id in missing]
            said = _said(bare_turns(among, bare))
            return {number: said[number] for number in missing if said[number].strip()}

        latest, vector = yield from latest_vectors(
            runtime, model, tree.tree, tree.turns.epoch, numbers, texts, text
        )
        tree.vectors = new_vectors(runtime, tree.tree, latest)
        return _TurnVectors(latest.vectors, vector, model, rough=latest.rough)


class _TurnVectors(NamedTuple):
    """The vectors of turns.

    Attributes:
        vectors: The vectors of the messages, by number of the node.
        message: The vector of the new message; empty without a model.
        model: The name of the embedding model.
        separate: The model that embeds the compared turns alone, in another language than English.
        rough: Rough vectors of the same messages, if there are any.
    """

    vectors: Vectors
    message: Floats
    model: str
    separate: Embedder | None = None
    rough: Floats | None = None


def _compared(
    tree: TreeView, ends: Sequence[TurnEnd], source: _TurnVectors, text: str
) -> Flow[list[TurnEnd]]:
    """The turns that a message is compared with: the newest, and similar older turns."""
    older: list[int] = []
    runtime = tree.runtime
    if len(ends) > NEWEST:
        oldest = ends[-NEWEST]
        before = min(oldest.human_id or oldest.id, oldest.id)  # A moved message has a higher number.
        if source.message.size:
            older = _nearest(source.vectors, source.rough, source.message, before)
        elif runtime is not None and not runtime.encrypted:
            older = yield from likely(runtime, tree.tree, text, NEAREST, before)
        if runtime is not None:
            yield from read_threads(runtime, tree.tree, tree.turns, older)
    return compared_turns(ends, tree.turns, older)


def _said(turn_ends: Iterable[TurnEnd]) -> dict[int, str]:
    """The texts of the messages of turns, by number of the node, as they are compared."""
    texts: dict[int, str] = {}
    for end in turn_ends:
        if end.human_id:
            texts[end.human_id] = end.human
        if not end.is_open:
            texts[end.id] = end.answer_with_calls
    return texts


def _embedded(own: Embedder, ends: Sequence[TurnEnd], text: str) -> Flow[_TurnVectors]:
    """Vectors of turns and of a message by another model than the memory's, whose vectors are only cached."""
    by_id = _said(ends)
    ids = sorted(by_id)
    texts = [*(by_id[id_] for id_ in ids), text]
    rows = yield from own.embed(texts)
    seqs = np.array(ids, np.int64)
    return _TurnVectors(Vectors(seqs, seqs, rows[:-1]), rows[-1], own.model)


class OtherLanguages(SharedComponent):
    """The embedding model for languages other than English, in a memory with the default model.

    The default model supports English only. With the extra `multilingual` the turns that a choice compares
    are embedded by `MultilingualEmbeddings`; their vectors are cached and not stored. Without the extra, or
    if its files have changed, the memory's own model is used, and one warning says so.
    """

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._model: Embedder | None = None
        self._checked = False
        self._lock = forking.lock()

    def model_for(self, language: str) -> Flow[Embedder | None]:
        """The model for a language; `None` for the memory's own model."""
        if language == "en" or not self.resources.embedder.is_default:
            return None
        if not self._checked:
            yield from Call(lambda: self._find(language))
        return self._model

    def _find(self, language: str) -> None:
        with self._lock:
            if self._checked:
                return
            try:
                self._model = Embedder(MultilingualEmbeddings(), remember=CACHED_TEXTS)
                self.resources.embedders.add(self._model)
            except EmbeddingError as error:
                log.warning(
                    "a conversation is not in English (%r), and the default embedding model knows English "
                    "alone: %s",
                    language,
                    error,
                )
            self._checked = True

    def close(self) -> None:
        if self._model is not None:
            self._model.forget()


class TurnReader(SharedComponent):
    """The cached features of turns and messages that a semantic selector has compared, by language."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._readers: dict[str, Reader] = {}

    def of(self, language: str) -> Reader:
        """The reader of texts in a language."""
        if language not in self._readers:
            self._readers[language] = reader(language)
        return self._readers[language]

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self._readers = {}

    def close(self) -> None:
        self._readers = {}


def _nearest(vectors: Vectors, rough: Floats | None, vector: Floats, before: int) -> list[int]:
    """The ids of the nodes before another node that are nearer to a message than all later nodes.

    The nearest comes first; at most `NEAREST`.
    """
    last = int(np.searchsorted(vectors.seqs, before))
    if not last:
        return []
    first = max(last - COMPARED, 0)
    newest = (vectors.matrix[last:] @ vector).max(initial=0.0)
    among = np.arange(first, last)
    if last - first > ROUGHLY and rough is not None:
        apart = rough[first:last] @ -vector[: rough.shape[1]]
        among = first + np.argpartition(apart, ROUGHLY)[:ROUGHLY]
    cosines = vectors.matrix[among] @ vector
    # Nodes at the same distance are ordered by age: equal calls give equal results.
    order = np.lexsort((among, -cosines))[:NEAREST]
    ids: list[int] = vectors.seqs[among[order[cosines[order] >= newest]]].tolist()
    return ids


def rows_of(vectors: Vectors, ids: Sequence[int], dimensions: int) -> Floats:
    """The vectors of nodes by their ids; zero where a node has none."""
    if not dimensions or not len(vectors.seqs):
        return np.zeros((len(ids), dimensions), np.float32)
    node_ids = np.array(ids)
    at = np.searchsorted(vectors.seqs, node_ids).clip(max=len(vectors.seqs) - 1)
    rows = vectors.matrix.take(at, 0)
    rows[vectors.seqs[at] != node_ids] = 0.0
    return rows

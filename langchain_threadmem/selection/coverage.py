"""Coverage: what a model is shown of other threads because the question may continue it.

A selector is sometimes wrong, and then the turn that the message continues is in another thread. So a model
is also shown the runners-up: the next likeliest turns, until the turns that are shown have a given share of
the probability. They are quoted in a block right before the question (`prompts.quotations`), and not merged
into the thread, since providers bill the beginning of a prompt that they have seen before at about a tenth.

A block that was shown once stays in the later prompts of its thread, where it was: then these prompts begin
as the earlier prompt did. A later block quotes nothing again. No block is stored. It follows from the stored
probabilities of its question and from the messages that it quotes, so it leaves when these are forgotten,
and a change of the tree cannot leave an old one behind. The blocks of earlier questions are cached while the
tree keeps its version and nothing that they quote was forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_threadmem.common.inputs import is_share, is_whole
from langchain_threadmem.common.ranges import Range, within
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.prompt_words import PromptCounter, PromptWords
from langchain_threadmem.engine.runtime import TreeCache
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import clone, text_of, texts_of
from langchain_threadmem.messages.prompt import as_prompt, for_model, newest_human
from langchain_threadmem.messages.quoting import HIT_TOKENS, HITS, QUOTED, is_block, without_blocks
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.messages.tokens import count_text
from langchain_threadmem.recall.quoting import Recalled
from langchain_threadmem.selection.prompts import runners_up
from langchain_threadmem.selection.prompts.quotations import QuotedTurn, block, place_of
from langchain_threadmem.selection.prompts.runners_up import CandidatePath, ParentChances, ThreadRead
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, read, trees
from langchain_threadmem.tree.conversation import tree_of
from langchain_threadmem.tree.node import Chances, nodes_of
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.trees import TreeVersion

FLOOR = 60
"""The number of tokens of a conversation below which a question is shown all of it. On `threads_dev` 100
tokens cost 2 % more of the price of the whole history, 300 tokens 12 %, and neither covers more."""
FIRST_NODES: Final = 64
"""The number of the first nodes of a conversation that are read to compare it with `FLOOR`."""
SHARE, LEAST_TOKENS = 0.5, 500
"""The maximum size of a block: this share of the thread before its question, and at least these tokens."""
SHARE_RECALLED, LEAST_RECALLED = 0.1, 150
"""The maximum size of all that was recalled for a thread: a share of it, and at least these tokens."""
RESPONSES_KEPT: Final = 30 * 24 * 3600
"""The number of seconds for which OpenAI and xAI keep a response."""
_ROUNDING: Final = 1e-9
"""The rounding error of a sum of probabilities."""
PROMPT_WORDS, REPEATED_WORDS = "threadmem.prompt.words", "threadmem.prompt.repeated_words"
"""The attributes of a span for a prompt, see `PromptWords`."""
_LETTERS: Final = 4
"""The number of characters of a thread that count as a token."""


class RecalledBefore(TreeCache[list[Recalled]]):
    """What the blocks of questions quote of recalled messages, by tree and id of the question.

    A later prompt of the thread quotes it again where it was, while this process runs: providers cache a
    prompt for minutes. Nothing is kept when messages are removed.
    """

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.values.clear()


class _Made(NamedTuple):
    """The block of a question, and what the blocks up to it have quoted.

    Attributes:
        candidates: The candidates of the question.
        quoted: The block, if there was anything to quote.
        ids: The ids of the messages that were quoted.
        numbers: The numbers of their nodes.
        places: The places of what was quoted of recalled messages.
        recalled: The tokens of what was quoted of recalled messages.
        keys: Keys of the nodes that the block quotes.
    """

    candidates: ParentChances | None
    quoted: Sequence[BaseMessage]
    ids: frozenset[str | None]
    numbers: frozenset[int]
    places: Sequence[list[Any]]
    recalled: int
    keys: Sequence[int]


class _MadeBlocks(NamedTuple):
    """The blocks of the questions of a thread, with the version of the tree.

    Attributes:
        version: Epoch and version of the tree.
        ids: The message ids of the thread, to its last but one question.
        made: The blocks by the positions of their questions in the thread.
    """

    version: tuple[int, int]
    ids: Sequence[str | None]
    made: Mapping[int, _Made]


class BlocksBefore(TreeCache[_MadeBlocks]):
    """The blocks of the earlier questions of threads, by tree, options and first message of the thread.

    Nothing is kept when messages are removed, since a block may quote messages of other conversations.
    """

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.values.clear()


class _BlockSources(NamedTuple):
    """What the blocks of a thread are made of.

    Attributes:
        version: Epoch and version of the tree.
        path: The thread.
        turns: The rows of the turns that may be quoted, by the number of their end.
        first: The turns of a small conversation, by the number of their human message.
        small: Number of the last node before which the conversation is small.
        unseen: For questions in a small conversation: the ranges of numbers that their runs do not see.
        made: The blocks of questions that were made before, by the positions of the questions.
    """

    version: tuple[int, int]
    path: CandidatePath
    turns: Mapping[int, Sequence[NodeRow]]
    first: Mapping[int, Sequence[NodeRow]]
    small: int
    unseen: Mapping[str, Sequence[Range]]
    made: Mapping[int, _Made]


_MESSAGE = attrgetter("message")
_NOTHING = _BlockSources((0, 0), CandidatePath({}, {}), {}, {}, 0, {}, {})


def messages(conversation: ThreadedConversation) -> Flow[list[BaseMessage]]:
    """The messages of the active thread for a model, as `tree.read.messages`, with blocks."""
    return (yield from prompt(conversation, (yield from read.messages(conversation))))


def prompt(
    conversation: ThreadedConversation,
    thread: Sequence[BaseMessage],
    hits: Sequence[Recalled] = (),
    model: object = None,
) -> Flow[list[BaseMessage]]:
    """The result of `covered` as a list that every provider accepts; unchanged if it ends with an answer.

    `model` is the chat model that is called, if it is known, see `for_model`.
    """
    view = yield from covered(conversation, thread, hits)
    if not view or is_answer(view[-1]):
        return view
    if any(map(_response_of, view)):
        view = yield from _with_own_chains(conversation, view)
    view = as_prompt(for_model(view, model))
    yield from counted(conversation, view)
    return view


@telemetry.observed(
    "build_prompt",
    telemetry.of_conversation,
    lambda words: {PROMPT_WORDS: words.words, REPEATED_WORDS: words.repeated},
)
def counted(conversation: ThreadedConversation, prompt: Sequence[BaseMessage]) -> Flow[PromptWords]:
    """Count the words of a prompt, which are attributes of a span, too."""
    yield from ()
    return conversation.runtime.get(PromptCounter).count(conversation.name, prompt)


def _response_of(message: BaseMessage) -> str:
    """The id of a stored response of OpenAI whose chain `use_previous_response_id` continues."""
    id_ = message.response_metadata.get("id") if isinstance(message, AIMessage) else None
    return id_ if isinstance(id_, str) and id_.startswith("resp_") else ""


def _with_own_chains(
    conversation: ThreadedConversation, view: Sequence[BaseMessage]
) -> Flow[list[BaseMessage]]:
    """The messages of a prompt; answers of moved turns, and old answers, without the ids of their responses.

    The server continues the chain of the last response, which for a moved turn is that of its former
    thread. Without the id, the client continues the chain before this turn, and sends the turn itself. A
    request that continues a deleted response would be refused.
    """
    tree = yield from tree_of(conversation)
    newest = next(str(m.id) for m in reversed(view) if isinstance(m, HumanMessage) and not is_block(m))

    def read_moved(conn: Conn) -> set[str]:
        row = nodes.by_message(conn, tree, newest)
        return set() if row is None else runners_up.moved(conn, row.key)

    moved = yield from Sql(read_moved)
    own: list[BaseMessage] = []
    is_moved = False
    for message in view:
        if isinstance(message, HumanMessage) and not is_block(message):
            is_moved = message.id in moved
        if _response_of(message) and (is_moved or _may_be_deleted(message)):
            metadata = {key: value for key, value in message.response_metadata.items() if key != "id"}
            message = clone(message, response_metadata=metadata)
        own.append(message)
    return own


def _may_be_deleted(message: BaseMessage) -> bool:
    created = message.response_metadata.get("created_at")
    return isinstance(created, (int, float)) and created < time.time() - RESPONSES_KEPT


def covered(
    conversation: ThreadedConversation,
    thread: Sequence[BaseMessage],
    hits: Sequence[Recalled] = (),
    read: ThreadRead | None = None,
) -> Flow[list[BaseMessage]]:
    """The messages of a thread, and before each question what was quoted for it.

    Args:
        conversation: The conversation, with its options `cover` and `cover_tokens`.
        thread: The messages of the thread through its window, to the turn that is being answered. Blocks in
            it are replaced.
        hits: What was recalled for the turn that is being answered.
        read: The stored thread of the turn, if it was just read; `None` to read it here.

    Returns:
        A list of the same messages and of blocks; the thread itself if it ends with an answer.

    Cost: four statements, about 0.2 ms, without `read`; five more, about 0.5 ms together, if a question of
    the thread that is not in the cache had an uncertain place.
    """
    thread = without_blocks(list(thread))
    newest = newest_human(thread)
    if newest is None or is_answer(thread[-1]):
        return list(thread)
    tree, before = (yield from tree_of(conversation)), conversation.runtime.get(RecalledBefore).values
    known, at = conversation.runtime.get(BlocksBefore).values, _address(conversation, tree, thread)
    found = _NOTHING
    if conversation.cover:
        found = yield from _read(conversation, tree, thread, known.get(at), read)
    blocks = _Blocks(conversation, found, {message.id for message in thread})
    view: list[BaseMessage] = []
    made: dict[int, _Made] = {}
    length = 0
    if found.made:
        blocks.again(found.made[max(found.made)])
    for place, (message, text) in enumerate(zip(thread, texts_of(thread), strict=True)):
        if isinstance(message, HumanMessage):
            key = tree, str(message.id)
            if place in found.made:
                made[place] = found.made[place]
            else:
                recalled = hits if place == newest else before.get(key) or ()
                made[place] = blocks.before(message, length, recalled)
            if place == newest and hits:
                before.put(key, list(hits))
            view += made[place].quoted
        view.append(message)
        length += len(text)
    if conversation.cover:
        made.pop(newest)  # What is recalled for the turn that is being answered may still change.
        last = max(made, default=-1)
        known.put(at, _MadeBlocks(found.version, [message.id for message in thread[: last + 1]], made))
    return view


def _address(
    conversation: ThreadedConversation, tree: int, thread: Sequence[BaseMessage]
) -> tuple[int, *tuple[object, ...]]:
    """The key of the blocks of a thread."""
    return tree, conversation.cover, conversation.cover_tokens, thread[0].id


def quoted_ids(messages: Iterable[BaseMessage], *, whole: bool = False) -> set[str | None]:
    """The ids of the messages of a prompt, and of those that its blocks quote.

    Args:
        messages: The prompt.
        whole: Whether to omit the messages that are quoted in part.
    """
    ids: set[str | None] = set()
    for message in messages:
        ids.add(message.id)
        if is_block(message):
            quoted = message.additional_kwargs.get(QUOTED, {})
            ids |= {id_ for id_, is_whole in quoted.items() if is_whole or not whole}
    return ids


def quoted_places(messages: Iterable[BaseMessage]) -> list[list[Any]]:
    """The places of the recalled messages and summaries that the blocks of a prompt quote."""
    return [place for message in messages if is_block(message) for place in message.additional_kwargs[HITS]]


class _Blocks:
    """The blocks of a prompt, which are made in the order of their questions: none quotes anything twice.

    Args:
        conversation: The conversation, with its options `cover` and `cover_tokens`.
        found: The candidates, and the turns that may be quoted.
        shown: The ids of the messages of the thread that the prompt contains.
    """

    def __init__(
        self, conversation: ThreadedConversation, found: _BlockSources, shown: set[str | None]
    ) -> None:
        self._conversation, self._found = conversation, found
        self._shown = shown
        self._places: list[list[Any]] = []
        self._recalled = 0
        self._quoted, self._quoted_numbers = frozenset[str | None](), frozenset[int]()
        self._numbers = {number for number, id_ in found.path.messages.items() if id_ in shown}

    def again(self, made: _Made) -> None:
        """Use the blocks that were made before, up to this one."""
        self._shown |= made.ids
        self._numbers |= made.numbers
        self._quoted, self._quoted_numbers = made.ids, made.numbers
        self._places, self._recalled = list(made.places), made.recalled

    def before(self, question: BaseMessage, length: int, hits: Sequence[Recalled]) -> _Made:
        """The block of a question, if there is anything to quote.

        Args:
            question: The question.
            length: The number of characters of the thread before it.
            hits: What was recalled for it.
        """
        most = self._conversation.cover_tokens
        if most is None:
            most = max(LEAST_TOKENS, int(SHARE * length / _LETTERS))
        candidates = self._found.path.candidates.get(str(question.id))
        is_small = candidates is not None and candidates.number <= self._found.small
        rows = [] if candidates is None else self._turns(str(question.id), candidates, is_small)
        other = self._conversation.runtime.resources.parts.read
        listed = [row for turn, _ in rows for row in turn]
        read = iter(nodes_of(listed, other))
        turns = [QuotedTurn([*islice(read, len(turn))], chance) for turn, chance in rows]
        left = max(LEAST_RECALLED, int(SHARE_RECALLED * length / _LETTERS)) - self._recalled
        new = [hit for hit in hits if place_of(hit) not in self._places]
        name = self._conversation.name
        quoted = block(question, turns, new, None if is_small else most, name, left)
        ids: set[str | None] = set()
        if quoted is not None:
            self._places = [*self._places, *quoted.additional_kwargs[HITS]]
            self._recalled += quoted.additional_kwargs[HIT_TOKENS]
            ids = set(quoted.additional_kwargs[QUOTED])
            self._shown |= ids
        taken = [row for row in listed if row.message in ids]
        numbers = {row.seq for row in taken}
        self._numbers |= numbers
        self._quoted, self._quoted_numbers = self._quoted | ids, self._quoted_numbers | numbers
        return _Made(
            candidates,
            [] if quoted is None else [quoted],
            self._quoted,
            self._quoted_numbers,
            self._places,
            self._recalled,
            [row.key for row in taken],
        )

    def _turns(
        self, question_id: str, candidates: ParentChances, is_small: bool
    ) -> list[tuple[Sequence[NodeRow], float | None]]:
        """The rows of the turns to quote, the likeliest first, and their probabilities."""
        if is_small:
            found = _before(self._found, question_id, candidates)
        else:
            missing = _missing(candidates.chances, self._numbers, self._conversation.cover or 0.0)
            found = [(self._found.turns.get(number, ()), chance) for number, chance in missing]
        shown, turns = set(self._shown), list[tuple[Sequence[NodeRow], float | None]]()
        for turn, chance in found:
            ids = set(map(_MESSAGE, turn))
            # A question that is shown already is not quoted again with another answer.
            if ids and shown.isdisjoint(ids):
                shown |= ids
                turns.append((turn, chance))
        return turns


def _missing(chances: Chances, shown: Collection[int], share: float) -> list[tuple[int, float]]:
    """The candidates that are missing for a share of the probability, the likeliest first.

    The candidates of a choice that are not stored are hidden, too.

    Example:
        >>> _missing(((4, 0.5), (2, 0.4), (None, 0.06), (6, 0.04)), {4}, 0.95)
        [(2, 0.4)]
    """
    hidden, left, other = list[tuple[int, float]](), 0.0, 1.0
    for number, chance in chances:
        if number is not None and number not in shown:
            hidden.append((number, chance))
            left += chance
        else:
            other -= chance
    left = max(left, other)
    found = []
    for number, chance in hidden:
        if left <= 1.0 - share + _ROUNDING:
            break
        left -= chance
        found.append((number, chance))
    return found


def _before(
    found: _BlockSources, question_id: str, candidates: ParentChances
) -> list[tuple[Sequence[NodeRow], float | None]]:
    """All turns of a small conversation before a question, and their probabilities."""
    chances, unseen = dict(candidates.chances), found.unseen.get(question_id, ())
    own = found.path.messages  # What a window has removed of the thread is not shown.
    turns: list[tuple[Sequence[NodeRow], float | None]] = []
    for number, rows in found.first.items():
        if number < candidates.number and number not in own and not within(unseen, number):
            before = [row for row in rows if row.seq < candidates.number]
            turns.append((before, chances.get(before[-1].seq)))
    return turns


def _read(
    conversation: ThreadedConversation,
    tree: int,
    thread: Sequence[BaseMessage],
    known: _MadeBlocks | None,
    read: ThreadRead | None,
) -> Flow[_BlockSources]:
    """Read what the blocks of a thread are made of.

    Args:
        conversation: The conversation.
        tree: Its tree.
        thread: The thread.
        known: Blocks that were made before.
        read: As for `covered`.
    """
    cover = conversation.cover or 0.0
    asked_at = {n: str(message.id) for n, message in enumerate(thread) if isinstance(message, HumanMessage)}
    newest = next(reversed(asked_at.values()))
    shown = {message.id for message in thread}
    most = conversation.cover_tokens
    floor = FLOOR if most is None else min(FLOOR, most)

    def missing_in(
        path: CandidatePath, made: Mapping[int, _Made]
    ) -> dict[str, tuple[ParentChances, list[tuple[int, float]]]]:
        """The candidates of the questions whose blocks are not made, and those of them that are missing."""
        own = {number for number, id_ in path.messages.items() if id_ in shown}
        return {
            id_: (candidates, _missing(candidates.chances, own, cover))
            for n, id_ in asked_at.items()
            if n not in made and (candidates := path.candidates.get(id_)) is not None
        }

    def find(conn: Conn) -> _BlockSources:
        version, path = read or _thread_to(conn, tree, newest) or (_NOTHING.version, _NOTHING.path)
        made = _usable(known, thread, version, path) if usable is None else usable
        if runners_up.forgotten(conn, _quoted_keys(made)):
            made = {}
        asked = missing_in(path, made) if made is not usable or missing is None else missing
        if not asked:
            return _NOTHING._replace(version=version, path=path, made=made)
        small, first = 0, dict[int, list[NodeRow]]()
        oldest = min([candidates.number for candidates, _ in asked.values()])
        if oldest <= FIRST_NODES:
            rows = nodes.since(conn, tree, 0, FIRST_NODES)
            small = _small(rows, floor)
            if oldest <= small:
                first = runners_up.turns_of(conn, rows)
        ends: set[int] = set()
        unseen = {}
        for id_, (candidates, hidden) in asked.items():
            if candidates.number <= small:
                unseen[id_] = runners_up.unseen_at(conn, tree, candidates.number)
            else:
                ends.update(dict(hidden))
        turns = runners_up.turns(conn, tree, ends) if ends else {}
        return _BlockSources(version, path, turns, first, small, unseen, made)

    usable = missing = None
    if read is not None:
        usable = _usable(known, thread, *read)
        missing = missing_in(read.path, usable)
        quotes_nothing = not any(
            candidates.number <= FIRST_NODES or hidden for candidates, hidden in missing.values()
        )
        if quotes_nothing and not _quoted_keys(usable):
            return _NOTHING._replace(version=read.version, path=read.path, made=usable)
    return (yield from Sql(find))


def _thread_to(conn: Conn, tree: int, question: str) -> ThreadRead | None:
    """The thread down to a question; `None` if the question is not stored."""
    row = nodes.by_message(conn, tree, question)
    if row is None:
        return None
    return ThreadRead(trees.head(conn, tree).tree_version, runners_up.path(conn, row.key))


def _usable(
    known: _MadeBlocks | None, thread: Sequence[BaseMessage], version: TreeVersion, path: CandidatePath
) -> dict[int, _Made]:
    """The blocks that are still those of their questions: to the first that is not."""
    made: dict[int, _Made] = {}
    if known is None or known.version != version:
        return made
    same = 0
    for id_, now in zip(known.ids, thread, strict=False):
        if id_ != now.id:
            break
        same += 1
    for place, block_made in known.made.items():
        if place >= same or block_made.candidates != path.candidates.get(str(thread[place].id)):
            break
        made[place] = block_made
    return made


def _quoted_keys(made: Mapping[int, _Made]) -> list[int]:
    """Keys of the nodes that blocks quote."""
    return [key for block_made in made.values() for key in block_made.keys]


def _small(rows: Sequence[NodeRow], floor: int) -> int:
    """The number of the first node before which a conversation has more than `floor` tokens, less one."""
    tokens = 0
    for row in rows:
        # Few messages suffice, so they are read one by one.
        (node,) = nodes_of([row])
        if node.message.type != "system":
            tokens += count_text(text_of(node.message))
        if tokens > floor:
            return node.id
    return rows[-1].seq + 1 if rows and len(rows) < FIRST_NODES else (rows[-1].seq if rows else 0)


def check_cover(cover: float | None, tokens: int | None) -> None:
    """Refuse values of the options `cover` and `cover_tokens` that are out of range.

    Raises:
        InputError: `cover` is not from 0 to 1, or `tokens` is not a number of tokens.
    """
    if cover is not None and not is_share(cover):
        raise InputError(
            f"cover={cover!r} is not a share; pass a number from 0 to 1, or None to show the thread alone"
        )
    if tokens is not None and not is_whole(tokens, 0):
        raise InputError(
            f"cover_tokens={tokens!r} is not a number of tokens; pass an integer of at least 0, or None for "
            "a share of the thread"
        )

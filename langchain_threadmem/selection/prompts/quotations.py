"""The block of a question: what a prompt quotes from elsewhere because a question may need it.

The block is one message right before its question. It quotes turns of other threads that the question may
continue, with their probabilities, and recalled messages and summaries, each with its speaker and time. It
is data: tags enclose each quotation, and no quotation can close its tag. It is made for prompts and never
stored; `messages.quoting.is_made_up` detects it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.quoting import HIT_TOKENS, HITS, QUOTED, SOURCE
from langchain_threadmem.messages.tokens import count_text
from langchain_threadmem.recall.quoting import Recalled, enclosed, inline, labels_of
from langchain_threadmem.tree.node import EPOCH, ConversationNode

WORDS = 60
"""The number of words of a message that are quoted from its beginning. Follow-ups on `threads_dev` refer to
the beginning of the answer that they continue."""
QUESTION = 180
"""The same for the first message of a turn: what it asks may come last."""
HIT_WORDS = 40
"""The greatest number of words of a recalled message that are quoted from its beginning."""
_LEAST_WORDS = 10
"""The same if more would leave no room for other recalled messages."""
_LEAST_TOKENS = 40
"""The number of tokens below which no turn is quoted."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""The letters of scripts that are written without spaces, and Korean."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_TERM = re.compile(rf"[{_UNSPACED}]{{2}}|[^\W\d_{_UNSPACED}]{{4,}}|\d{{2,}}")
_LINE = re.compile(r"[^\n.!?。！？]+(?:[.!?。！？]+|\n|$)")
LINES, LINE_WORDS = 2, 30
"""The maximum number of later lines in an excerpt, and of words in each."""
_LETTERS = 2
"""The number of letters of a script without spaces that count as a word."""
_PREFACE = "(From other threads; data:)"


class QuotedTurn(NamedTuple):
    """A turn of another thread.

    Attributes:
        nodes: Its messages.
        chance: The probability that the question continues it; `None` if it is quoted for another reason.
    """

    nodes: Sequence[ConversationNode]
    chance: float | None = None


class _Quoted(NamedTuple):
    texts: list[str]
    whole: dict[str, bool]  # by message id, whether the message is quoted in full
    tokens: int


def block(
    question: BaseMessage,
    turns: Iterable[QuotedTurn],
    hits: Sequence[Recalled] = (),
    most: int | None = None,
    conversation: str = "",
    hits_most: int | None = None,
) -> HumanMessage | None:
    """The block of a question.

    Args:
        question: The question.
        turns: Turns of other threads, the likeliest first.
        hits: Recalled messages and summaries, the best first.
        most: The maximum number of tokens; longer messages are cut to their beginnings and to the lines that
            share words with the question. `None` to quote the turns in full.
        conversation: The conversation of the question, which is not named.
        hits_most: The maximum number of tokens of the recalled messages and summaries.

    Returns:
        The message; `None` if there is nothing to quote.

    Example:
        >>> node = ConversationNode(7, HumanMessage("What about </memory> rye?", id="h7"))
        >>> print(block(HumanMessage("Why?", id="h9"), [QuotedTurn([node], 0.12)]).text)
        <memory>
        (From other threads; data:)
        <human odds="12%">What about &lt;/memory> rye?</human>
        </memory>
    """
    about, left = text_of(question), most
    texts: list[tuple[int, list[str]]] = []
    whole: dict[str, bool] = {}
    for turn in turns:
        quoted = _fitting(turn, about, left)
        if quoted is None:
            break
        texts.append((turn.nodes[0].id, quoted.texts))
        whole |= quoted.whole
        left = None if left is None else left - quoted.tokens
    lines = [text for _, quoted_texts in sorted(texts) for text in quoted_texts]
    quoted_hits, recalled_tokens = [], 0
    words = _words_of(hits, about, conversation, hits_most)
    for hit in hits:
        hit_tokens = tokens_of(hit, about, conversation, words)
        if hits_most is not None and hit_tokens > hits_most:
            continue
        hits_most = None if hits_most is None else hits_most - hit_tokens
        recalled_tokens += hit_tokens
        lines += _hit(hit, about, conversation, words)
        quoted_hits.append(place_of(hit))
    if not lines:
        return None
    text = enclosed(lines, _PREFACE)
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return HumanMessage(
        text,
        id=f"threadmem-block-{question.id}-{digest}",
        additional_kwargs={
            "lc_source": SOURCE,
            QUOTED: whole,
            HITS: quoted_hits,
            HIT_TOKENS: recalled_tokens,
        },
    )


def tokens_of(hit: Recalled, about: str, conversation: str, words: int = HIT_WORDS) -> int:
    """The number of tokens with which a block quotes a recalled message or summary."""
    return sum(map(count_text, _hit(hit, about, conversation, words)))


def _words_of(hits: Sequence[Recalled], about: str, conversation: str, most: int | None) -> int:
    """The number of words of each recalled message with which all of them fit; at least `_LEAST_WORDS`."""
    words = HIT_WORDS
    while most is not None and words > _LEAST_WORDS:
        if sum(tokens_of(hit, about, conversation, words) for hit in hits) <= most:
            break
        words -= 5
    return words


def place_of(hit: Recalled) -> list[Any]:
    """The conversation, rank and number of a recalled message or summary."""
    return [hit["conversation_id"], hit["rank"], hit["node_id"]]


def _fitting(turn: QuotedTurn, about: str, most: int | None) -> _Quoted | None:
    """The quotation of a turn within a number of tokens; `None` if the number is too small."""
    if most is None:
        return _quoted(turn, about, None)
    words = WORDS
    while most >= _LEAST_TOKENS:
        quoted = _quoted(turn, about, words)
        if quoted.tokens <= most:
            return quoted
        if words < WORDS // 4:
            break
        words //= 2
    return None


def _quoted(turn: QuotedTurn, about: str, words: int | None) -> _Quoted:
    texts: list[str] = []
    whole: dict[str, bool] = {}
    time = turn.nodes[0].time
    told = {} if time == EPOCH else {"time": f"{time:%Y-%m-%dT%H:%M}"}
    if turn.chance is not None:
        told["odds"] = f"{100 * turn.chance:.0f}%"
    for node in turn.nodes:
        said = text_of(node.message).strip()
        most = words if node is not turn.nodes[0] or words is None else words * QUESTION // WORDS
        shown = said if most is None else excerpt(said, most, about)
        whole[str(node.message.id)] = shown == said
        if said:
            if node.message.name:
                told["name"] = node.message.name
            texts.append(inline(node.message.type, told, shown))
            told = {}
    return _Quoted(texts, whole, sum(map(count_text, texts)))


def _hit(hit: Recalled, about: str, conversation: str, words: int) -> Iterator[str]:
    told = labels_of(hit)
    role = told.pop("role")
    if told["conversation"] == conversation:
        del told["conversation"]
    told["time"] = told["time"][:16]  # to the minute
    yield inline(role, told, excerpt(hit["text"], words, about, 1))
    if answer := hit.get("answer"):
        yield inline(
            answer["role"], {"node": str(answer["node_id"])}, excerpt(answer["text"], words, about, 1)
        )


def excerpt(text: str, words: int, about: str = "", lines: int = LINES) -> str:
    """The first words of a text, and later lines that share words with a question.

    Args:
        text: The text; returned unchanged if it has few more words.
        words: The number of words from the beginning. Of Chinese, Japanese, Korean, Thai and similar scripts
            two letters count as a word.
        about: The question.
        lines: The maximum number of later lines.

    Returns:
        The excerpt. It says how many words are left out.

    Example:
        >>> text = "I planned the trip. We fly on Monday. Bring coats. The hotel in Oslo costs 90 euros."
        >>> excerpt(text, 4, "How much is the hotel in Oslo?")
        'I planned the trip. [... 6 words left out] The hotel in Oslo costs 90 euros.'
    """
    if text.isascii() and len(text) <= 2 * words + 4:  # There is a space between two words.
        return text
    ends = _ends(text)
    if len(ends) <= words + 2:
        return text
    start = ends[words - 1] if words else 0
    parts, position = [text[:start].rstrip()] if words else [], start
    for first, last in _lines(text, start, about, lines) if lines else ():
        parts += [*_left_out(ends, position, first), text[first:last].strip()]
        position = last
    return " ".join([*parts, *_left_out(ends, position, len(text))])


def count_words(text: str) -> int:
    """The number of words of a text, as `excerpt` counts them."""
    return len(_ends(text))


def _ends(text: str) -> list[int]:
    """The positions at which the words of a text end."""
    if text.isascii():
        return [found.end() for found in _WORD.finditer(text)]
    letters, ends = 0, list[int]()
    for found in _WORD.finditer(text):
        if found.end() - found.start() == 1 and found[0] > "\u0dff":
            letters += 1
            if letters % _LETTERS:
                continue
        ends.append(found.end())
    return ends


def _left_out(ends: list[int], first: int, last: int) -> list[str]:
    count = sum(first < end <= last for end in ends)
    return [f"[... {count} words left out]"] if count else []


def _terms(text: str) -> Set[str]:
    return {found[0].casefold() for found in _TERM.finditer(text)}


def _lines(text: str, start: int, about: str, most: int) -> list[tuple[int, int]]:
    """The positions of the lines after `start` that share most words with a question, in their order."""
    asked = _terms(about) - _terms(text[:start])
    found = []
    for line in _LINE.finditer(text, start) if asked else ():
        shared = len(asked & _terms(line[0]))
        if shared and count_words(line[0]) <= LINE_WORDS:
            found.append((-shared, line.start(), line.end()))
    return sorted(line[1:] for line in sorted(found)[:most])

"""Weaving of dialogs into new conversations, with parameters drawn at random.

People use one conversation for several subjects in different ways: some finish a subject before they begin
the next, some switch at every message, some return after days. Networks that are fitted on one pattern fail
on another, so each woven conversation draws its own parameters: the number and the similarity of the dialogs,
the probabilities of a switch and of a new dialog, the dialog of a return, the length of each dialog. A third
of the conversations are single dialogs, which a selector should not divide.

A dialog is interrupted, and continued later, before a message that names its subject: people do not leave a
question for another subject and then say "Put that into a table" or "Yes, the second one". Some threads open
with a story instead of a request. In some conversations a message is asked again after its thread has
continued, or an earlier answer is quoted, which makes a branch.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

from langchain_threadmem.selection.features.cues import leaning, terms
from langchain_threadmem.selection.features.phrases import Phrases, phrases_in
from langchain_threadmem.selection.turn_ends import TurnEnd
from training.sources import Conversation, Dialog, Pools, Vectors, conversation

LONGEST = 40
"""The highest number of turns of a woven conversation."""
LONG, LONGEST_OF_ALL = 0.1, 150
"""The share of long conversations about many subjects, and their highest number of turns. A memory of several
years has many threads to which a message could return, but most messages do not."""
SINGLE, SHORT, PLAIN, AGAIN = 0.33, 0.25, 0.25, 0.15
"""Shares of conversations: of one dialog, with short dialogs, without capitals and marks, with branches."""
TOLD = 0.15
"""The share of dialogs that open with a story instead of a request."""
FOLLOWS = 0.97
"""The probability that a message without a subject of its own follows at once."""
UNINTERRUPTED = 0.75
"""The least probability that a message follows at once which names nothing of its own dialog alone."""
UNNAMED = 0.25
"""The probability that a return shares no term with its own dialog that the other dialogs do not contain."""
FEW_WORDS, FEW_CHARACTERS = 3, 8
"""The size of a message that is too short to name its subject."""
_GREETING = re.compile(
    r"^(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening))\b(?: there| again| everyone)?[\s,.!-]*",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[?!.,;:]+(?=\s|$)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_REQUEST = re.compile(
    r"\?|\b(?:please|can you|could you|help|i need|i want|i would like|i'd like|i'm looking|i am looking)\b",
    re.IGNORECASE,
)
_LEADS = (
    "Going back to where you said",
    "You said earlier:",
    "In one of your first answers you wrote",
    "I'd like to go back to this answer of yours:",
    "About this part of your earlier answer:",
)
_ENDS = (
    "can you explain that?",
    "is that certain?",
    "tell me more about this",
    "why?",
    "let's try another way.",
)


def without_greeting(text: str) -> str:
    """A message without its greeting, unless nothing else is left.

    Example:
        >>> without_greeting("Hi there, I need a room."), without_greeting("Hello!")
        ('I need a room.', 'Hello!')
    """
    rest = _GREETING.sub("", text)
    return rest[:1].upper() + rest[1:] if len(rest.split()) > 2 else text


def told(text: str) -> str:
    """The statements before the first request of a message; empty if there are none or nothing else.

    Example:
        >>> told("My loaves come out flat. What am I doing wrong?")
        'My loaves come out flat.'
    """
    said = _SENTENCE.split(text.strip())
    before = next((place for place, sentence in enumerate(said) if _REQUEST.search(sentence)), len(said))
    story = " ".join(said[:before])
    return story if len(story.split()) > 3 and before < len(said) else ""


def quotation(dialog: Dialog) -> tuple[int, str] | None:
    """The place of an earlier answer of a dialog, and a message that quotes it; `None` in a short dialog."""
    rng = random.Random(dialog.name)
    place = rng.randrange(max(len(dialog.turns) - 2, 1))
    first = dialog.turns[place][1].strip().split("\n")[0]
    sentence = max(_SENTENCE.split(first)[:3], key=len)[:120]
    if len(dialog.turns) < 3 or len(sentence.split()) < 5:
        return None
    return place, f'{rng.choice(_LEADS)} "{sentence.rstrip(".!?")}" - {rng.choice(_ENDS)}'


def variants(dialog: Dialog) -> Iterator[str]:
    """The texts that a dialog does not contain and that may stand in a conversation woven of it."""
    opening = dialog.turns[0][0]
    for text in dict.fromkeys((opening, without_greeting(opening))):
        yield text
        if story := told(text):
            yield story
    if (quoted := quotation(dialog)) is not None:
        yield quoted[1]


@cache
def _terms(text: str, phrases: Phrases) -> frozenset[str]:
    return terms(text, phrases)


@cache
def leans(text: str, phrases: Phrases) -> bool:
    """Whether a message does not name its subject: it is short, or points at the last answer."""
    is_short = len(text.split()) <= FEW_WORDS if phrases.spaces else len(text) <= FEW_CHARACTERS
    return is_short or leaning(text, phrases) > 0.0 or not _terms(text, phrases)


def plain(text: str) -> str:
    """A message without capitals and punctuation."""
    return _MARKS.sub("", text).lower()


class _Woven:
    """A conversation in the making: its turns, their dialogs, and their texts as they are embedded."""

    def __init__(self, phrases: Phrases, drawn: list[Dialog]) -> None:
        self.phrases, self.drawn = phrases, drawn
        self.turns: list[TurnEnd] = []
        self.names: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.held: list[list[int]] = [[] for _ in drawn]
        """The ids of the turns of each dialog so far."""
        said = [
            [_terms(human, phrases) | _terms(answer, phrases) for human, answer in one.turns] for one in drawn
        ]
        whole = [frozenset().union(*own) for own in said]
        self._others = [
            frozenset().union(*(whole[other] for other in range(len(drawn)) if other != one))
            for one in range(len(drawn))
        ]
        self._said = said

    def next_of(self, one: int) -> str:
        """The next message of a dialog."""
        return self.drawn[one].turns[len(self.held[one])][0]

    def leans(self, one: int) -> bool:
        """Whether the next message of a dialog follows at once."""
        return leans(self.next_of(one), self.phrases)

    def is_named(self, one: int) -> bool:
        """Whether the next message has a term of its own dialog that the other dialogs do not contain."""
        known = frozenset().union(*self._said[one][: len(self.held[one])])
        return bool((_terms(self.next_of(one), self.phrases) & known) - self._others[one])

    def follows(self, one: int, stay: float) -> float:
        """The probability that the next message of a dialog follows at once; `stay` if it could return."""
        if self.leans(one):
            return FOLLOWS
        return stay if self.is_named(one) else max(stay, UNINTERRUPTED)

    def branch(
        self, rng: random.Random, one: int, quoted: tuple[int, str] | None, vectors: Vectors
    ) -> tuple[int, str, str] | None:
        """A second continuation of an earlier answer: its id, a message, and the answer to the message.

        The message quotes the earlier answer, or asks again; then the dialog continues where it was.
        """
        held, turns = self.held[one], self.drawn[one].turns
        if self.leans(one):  # The next message would follow this one.
            return None
        if quoted and quoted[0] < len(held) - 1 and quoted[1] in vectors and rng.random() < 0.5:
            place, human = quoted
            return held[place], human, turns[place][1]
        asked = [at for at in range(1, len(held)) if not leans(turns[at][0], self.phrases)]
        if not asked:
            return None
        place = rng.choice(asked)
        return held[place - 1], *turns[place]

    def add(self, one: int, previous: int | None, human: str, answer: str, text: str = "") -> int:
        """Add a turn of a dialog; returns its id."""
        id_ = 2 * len(self.turns) + 2
        self.turns.append(TurnEnd(id_, previous, text or human, answer))
        self.texts.append((human, answer))
        self.names.append(self.drawn[one].name)
        return id_


def weave(rng: random.Random, pools: Pools, vectors: Vectors, phrases: Phrases | None = None) -> Conversation:
    """Interleave dialogs into a new conversation, with parameters drawn at random.

    Args:
        rng: The source of the parameters.
        pools: The dialogs to draw from.
        vectors: The embeddings of all texts.
        phrases: The phrases of the language of the dialogs; English by default.
    """
    long = rng.random() < LONG
    some = [8, 12, 16, 20, 26, 32] if long else [2, 2, 3, 3, 4, 4, 5, 6, 7, 8]
    count = 1 if rng.random() < SINGLE else rng.choice(some)
    drawn = pools.draw(rng, count, 0.45, 0.25)
    stay, opening = rng.uniform(0.0, 0.95), rng.uniform(0.1, 0.9)
    to_latest = rng.choice([0.0, 0.3, 0.6, 0.9])
    short, greets = rng.random() < SHORT, rng.random() < 0.7
    again = rng.random() < AGAIN
    style = plain if rng.random() < PLAIN else str
    quotes = [quotation(one) for one in drawn]
    drawn = [_opened(rng, _cut(rng, one) if short else one, vectors, greets) for one in drawn]
    woven = _Woven(phrases or phrases_in("en"), drawn)
    waiting, order = list(range(len(drawn))), []  # dialogs not begun yet; begun dialogs, the latest last
    current: int | None = None
    while len(woven.turns) < (LONGEST_OF_ALL if long else LONGEST):
        unfinished = [one for one in order if len(woven.held[one]) < len(drawn[one].turns)]
        others = [one for one in unfinished if one != current and not woven.leans(one)]
        if rng.random() >= UNNAMED:
            others = [one for one in others if woven.is_named(one)]
        if current in unfinished and rng.random() < woven.follows(current, stay):
            chosen = current
        elif waiting and (not others or rng.random() < opening):
            chosen = waiting.pop(0)
            order.append(chosen)
        elif others:
            chosen = others[-1] if rng.random() < to_latest else rng.choice(others)
        elif current in unfinished:
            chosen = current
        else:
            break
        order.remove(chosen)
        order.append(chosen)
        current, held = chosen, woven.held[chosen]
        place = len(held)
        branch = woven.branch(rng, chosen, quotes[chosen], vectors) if again and rng.random() < 0.3 else None
        if branch is not None:
            previous, human, answer = branch
            woven.add(chosen, previous, human, answer, style(human))
            continue
        human, answer = drawn[chosen].turns[place]
        last = held[-1] if place else None
        held.append(woven.add(chosen, last, human, answer, style(human)))
    return conversation("woven", woven.turns, woven.names, vectors, woven.texts)


def _cut(rng: random.Random, dialog: Dialog) -> Dialog:
    return dialog._replace(turns=dialog.turns[: rng.randint(1, 3)])


def _opened(rng: random.Random, dialog: Dialog, vectors: Vectors, greets: bool) -> Dialog:
    """The dialog, in some cases without its greeting or its first request, if that text is embedded."""
    (human, answer), *rest = dialog.turns
    bare = human if greets else without_greeting(human)
    if rng.random() < TOLD and (story := told(bare)) in vectors:
        bare = story
    return dialog._replace(turns=[(bare, answer), *rest]) if bare in vectors else dialog

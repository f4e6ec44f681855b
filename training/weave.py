"""Weaving of dialogs into new conversations, with parameters drawn at random.

People use one conversation for several subjects in different ways: some finish a subject before they begin
the next, some switch at every message, some return after days. Networks that are fitted on one pattern fail
on another, so each woven conversation draws its own parameters: the number and the similarity of the dialogs,
the probabilities of a switch and of a new dialog, the dialog of a return, the length of each dialog. A third
of the conversations are single dialogs, which a selector should not divide. In some conversations a message
is asked again after its thread has continued, which makes a branch.
"""

from __future__ import annotations

import random
import re

from langchain_threadmem.selection.turn_ends import TurnEnd
from training.sources import Conversation, Dialog, Pools, Vectors, conversation

LONGEST = 40
"""The highest number of turns of a woven conversation."""
LONG, LONGEST_OF_ALL = 0.1, 150
"""The share of long conversations about many subjects, and their highest number of turns. A memory of several
years has many threads to which a message could return, but most messages do not."""
SINGLE, SHORT, PLAIN, AGAIN = 0.33, 0.25, 0.25, 0.15
"""Shares of conversations: of one dialog, with short dialogs, without capitals and marks, with branches."""
NAMED, LEANING = 0.8, 3
"""The probability that a return names its subject; a message of at most `LEANING` words seldom does."""
_GREETING = re.compile(
    r"^(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening))\b(?: there| again| everyone)?[\s,.!-]*",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[?!.,;:]+(?=\s|$)")


def without_greeting(text: str) -> str:
    """A message without its greeting, unless nothing else is left.

    Example:
        >>> without_greeting("Hi there, I need a room."), without_greeting("Hello!")
        ('I need a room.', 'Hello!')
    """
    rest = _GREETING.sub("", text)
    return rest[:1].upper() + rest[1:] if len(rest.split()) > 2 else text


def leans(text: str) -> bool:
    """Whether a message is too short to name its subject."""
    return len(text.split()) <= LEANING


def plain(text: str) -> str:
    """A message without capitals and punctuation."""
    return _MARKS.sub("", text).lower()


def weave(rng: random.Random, pools: Pools, vectors: Vectors) -> Conversation:
    """Interleave dialogs into a new conversation, with parameters drawn at random."""
    long = rng.random() < LONG
    some = [8, 12, 16, 20, 26, 32] if long else [2, 2, 3, 3, 4, 4, 5, 6, 7, 8]
    count = 1 if rng.random() < SINGLE else rng.choice(some)
    drawn = pools.draw(rng, count, 0.45, 0.25)
    stay, opening = rng.uniform(0.0, 0.95), rng.uniform(0.1, 0.9)
    to_latest = rng.choice([0.0, 0.3, 0.6, 0.9])
    short, greets = rng.random() < SHORT, rng.random() < 0.7
    again = rng.random() < AGAIN
    style = plain if rng.random() < PLAIN else str
    drawn = [_opened(_cut(rng, one) if short else one, vectors, greets) for one in drawn]
    held: list[list[int]] = [[] for _ in drawn]  # the turn ends of each dialog so far
    waiting, order = list(range(len(drawn))), []  # dialogs not begun yet; begun dialogs, the latest last
    turns: list[TurnEnd] = []
    names: list[str] = []
    texts: list[tuple[str, str]] = []
    current: int | None = None
    while len(turns) < (LONGEST_OF_ALL if long else LONGEST):
        unfinished = [one for one in order if len(held[one]) < len(drawn[one].turns)]
        others = [one for one in unfinished if one != current]
        leaning = {one for one in unfinished if leans(drawn[one].turns[len(held[one])][0])}
        if rng.random() < NAMED:
            others = [one for one in others if one not in leaning] or others
        if current in unfinished and rng.random() < (max(stay, NAMED) if current in leaning else stay):
            chosen = current
        elif waiting and (not others or rng.random() < opening):
            chosen = waiting.pop(0)
            order.append(chosen)
        elif others:
            chosen = others[-1] if rng.random() < to_latest else rng.choice(others)
        elif unfinished:
            chosen = unfinished[0]
        else:
            break
        assert chosen is not None
        order.remove(chosen)
        order.append(chosen)
        place = len(held[chosen])
        if again and place > 1 and rng.random() < 0.3:
            # The repeated question is a second child of an earlier answer; the dialog continues from its end.
            back = rng.randrange(1, place)
            human, answer = drawn[chosen].turns[back]
            previous: int | None = held[chosen][back - 1]
        else:
            back = place
            human, answer = drawn[chosen].turns[place]
            previous = held[chosen][-1] if place else None
        turns.append(TurnEnd(2 * len(turns) + 2, previous, style(human), answer))
        texts.append((human, answer))
        names.append(drawn[chosen].name)
        if back == place:
            held[chosen].append(turns[-1].id)
        current = chosen
    return conversation("woven", turns, names, vectors, texts)


def _cut(rng: random.Random, dialog: Dialog) -> Dialog:
    return dialog._replace(turns=dialog.turns[: rng.randint(1, 3)])


def _opened(dialog: Dialog, vectors: Vectors, greets: bool) -> Dialog:
    """The dialog, or the same without its greeting if that text is embedded."""
    (human, answer), *rest = dialog.turns
    bare = human if greets else without_greeting(human)
    return dialog._replace(turns=[(bare, answer), *rest]) if bare in vectors else dialog

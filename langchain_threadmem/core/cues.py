"""What the words of a message say about its place in a conversation, language by language.

Embeddings tell what a text is about, hardly what it does: "yes, that one" answers what was
just asked, "Hello, I need" opens something, "enjoy your trip" winds it up. `Cues` lists such
words for one language and `ENGLISH` is the default; the three functions read a text with them.
Texts are read without regard to case, and long ones at their beginning and end only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

LONGEST_TEXT = 2000
"""Characters of a text that are read: half of them its beginning, half its end."""
TAIL = 200
"""Characters at the end of an answer that tell how its turn ended."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
QUESTION_MARKS = "?\uff1f\u061f"
"""Plain, full-width and Arabic."""
_LAST_QUESTION = re.compile(rf"[^.!\n{QUESTION_MARKS}]*[{QUESTION_MARKS}][^{QUESTION_MARKS}]{{0,60}}$")


@dataclass(frozen=True, eq=False)
class Cues:
    """Words of one language that tell how a message relates to what was said before.

    All are lower case, with a plain apostrophe; a phrase is matched as whole words. An
    empty tuple switches a cue off.

    Attributes:
        stop_words: Words too common to tell one thread from another.
        endings: Word endings to cut off where four letters remain, longest first.
        references: Words that point at something said before, anywhere in a message.
        replies: How an answer to what was just said begins.
        connectives: How a message begins that carries on.
        greetings: How a message begins that opens a conversation.
        requests: Phrases that open a task or a subject.
        farewells: Phrases with which a subject is wound up, by either side.
        quantities: Words of a question that asks for a number or a time.
        amounts: Words that, like digits, give a number or a time.
    """

    stop_words: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    connectives: tuple[str, ...] = ()
    greetings: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    farewells: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()

    @cached_property
    def patterns(self) -> Mapping[str, re.Pattern[str]]:
        """One compiled pattern for each cue but `stop_words` and `endings`."""
        at_the_start = {"replies", "connectives", "greetings"}
        found = {}
        for name in ("references", "requests", "farewells", "quantities", "amounts", *at_the_start):
            words = "|".join(map(re.escape, getattr(self, name))) or "(?!)"
            found[name] = re.compile((r"^\W*" if name in at_the_start else r"\b") + rf"(?:{words})\b")
        return found

    def has(self, name: str, text: str) -> bool:
        """Whether `text`, in lower case, shows the cue `name`."""
        return self.patterns[name].search(text) is not None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


ENGLISH = Cues(
    stop_words=frozenset(
        _listed(
            """a, about, all, also, am, an, and, any, anything, are, as, at, be, because, been, but, by,
            can, could, did, do, does, doing, don't, for, from, get, give, go, got, had, has, have, he,
            hello, her, here, hey, hi, him, his, how, i, i'd, i'll, i'm, i've, if, in, into, is, it,
            it's, its, just, know, let, like, look, looking, make, me, more, much, my, need, no, not,
            now, of, ok, okay, on, one, or, other, our, out, please, really, say, see, she, should, so,
            some, something, sure, tell, than, thank, thanks, that, that's, the, their, them, then,
            there, there's, these, they, thing, this, those, to, too, up, us, very, want, was, we, well,
            were, what, what's, when, where, which, who, why, will, with, would, yes, you, you're, your"""
        )
    ),
    endings=("ing", "ies", "'s", "ed", "es", "s"),
    references=_listed(
        """that, it, this, they, them, those, these, its, their, he, she, him, her, his, there, one, ones,
        it's, that's, he's, she's, they're, other, another, else, instead, same, also"""
    ),
    replies=_listed(
        """yes, yeah, yep, yup, sure, ok, okay, no, nope, nah, not, correct, right, exactly, great, good,
        perfect, fine, cool, nice, awesome, wow, oh, ah, haha, hmm, well, alright, sounds, that's,
        definitely, absolutely, thanks, thank, all right, of course, please do, go ahead, that is,
        that works, i see, got it"""
    ),
    connectives=_listed(
        """and, but, also, so, then, or, what about, how about, what else, anything else, any other,
        another, actually, in that case, because"""
    ),
    greetings=_listed("hi, hello, hey, greetings, good morning, good afternoon, good evening"),
    requests=_listed(
        """i want, i need, i would like, i'd like, i'd love, i wish, i'm looking, i am looking, i'm trying,
        i am trying, i'm interested, i am interested, i'm planning, i am planning, can you, could you,
        would you, will you, help me, find me, please find, search for, looking for, let's talk,
        explain, what is, what are, who is, how do, how can"""
    ),
    farewells=_listed(
        """bye, goodbye, that's all, that is all, that will be all, nothing else, no thanks, no thank you,
        have a good, have a great, have a nice, have a wonderful, enjoy, take care, you're welcome,
        you are welcome, glad to help, happy to help, my pleasure"""
    ),
    quantities=_listed(
        """how many, how much, how long, how old, when, time, date, day, month, year, price, number, age,
        budget, zip code"""
    ),
    amounts=_listed(
        """one, two, three, four, five, six, seven, eight, nine, ten, noon, morning, afternoon, evening,
        today, tomorrow, monday, tuesday, wednesday, thursday, friday, saturday, sunday, january,
        february, march, april, june, july, august, september, october, november, december"""
    ),
)


@lru_cache(maxsize=2048)
def terms(text: str, cues: Cues) -> frozenset[str]:
    """Read the telling words of a text, without their endings.

    Example:
        >>> sorted(terms("How do I read CSV files in pandas?", ENGLISH))
        ['csv', 'file', 'panda', 'read']
    """
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT // 2] + " " + text[-LONGEST_TEXT // 2 :]
    found = set()
    for word in _WORD.findall(_plain(text)):
        if word not in cues.stop_words:
            cut = next((end for end in cues.endings if word.endswith(end) and len(word) >= len(end) + 4), "")
            found.add(word.removesuffix(cut))
    return frozenset(found)


def message_cues(message: str, cues: Cues) -> Mapping[str, float]:
    """Tell what a message itself says about its place, in numbers from `"length"` to `"greeting"`.

    All are 0 or 1, but for the length: the logarithm of 1 + words, less 2.

    Example:
        >>> [name for name, value in message_cues("And what about 3 pm?", ENGLISH).items() if value == 1]
        ['question', 'amount', 'connective']
    """
    text = _plain(message)
    words = len(_WORD.findall(text))
    return {
        "short": float(words <= 3),
        "length": math.log1p(words) - 2.0,
        "question": float(any(mark in message for mark in QUESTION_MARKS)),
        "amount": float(any(letter.isdigit() for letter in text) or cues.has("amounts", text)),
        "reference": float(cues.has("references", text)),
        "reply": float(cues.has("replies", text)),
        "connective": float(cues.has("connectives", text)),
        "request": float(cues.has("requests", text)),
        "greeting": float(cues.has("greetings", text)),
    }


@lru_cache(maxsize=2048)
def end_cues(human: str, answer: str, cues: Cues) -> tuple[float, float, float, float]:
    """Tell how a turn ended: it asks, asks for a quantity, its answer winds up, its human message does.

    Example:
        >>> end_cues("A table, please.", "Sure. For how many people?", ENGLISH)
        (1.0, 1.0, 0.0, 0.0)
    """
    tail = _plain(answer[-TAIL:])
    question = _LAST_QUESTION.search(tail)
    return (
        float(question is not None),
        float(question is not None and cues.has("quantities", question.group())),
        float(cues.has("farewells", tail)),
        float(cues.has("farewells", _plain(human[:LONGEST_TEXT]))),
    )


def _plain(text: str) -> str:
    return text.lower().replace("\u2019", "'")

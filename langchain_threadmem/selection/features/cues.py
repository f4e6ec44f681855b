"""Cue features: phrases, names and values in a message and at the end of a turn.

Phrases match in any case. Only the beginning and the end of a long text are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.messages.courtesies import greets
from langchain_threadmem.selection.features.phrases import Phrases, unaccented

LONGEST_TEXT = 2000
"""The number of characters of a text that are read: half at its beginning, half at its end."""
HEAD = 100
"""The number of characters at the beginning of a message that are searched for cues.

Later words such as "it" and "at 7" mostly refer to the message itself."""
TAIL = 200
"""The number of characters at the end of an answer that are searched for cues."""

_PLAIN_WORD = re.compile(r"\w+")
_CLAUSE = re.compile(r"[.,:;!?]+(?=\s|$)|[\n\u3001\u3002\uff01\uff0c\uff1f\u060c]")
_MARKS = "\u0900-\u0963\u0966-\u109f\u1780-\u17d3"
"""The scripts of India and South-East Asia, whose vowel signs are no letters but parts of words."""
_WORD = re.compile(rf"[^\W_]+(?:(?:'|[{_MARKS}]+)[^\W_]+)*[{_MARKS}]*")
# A pattern that begins with a set of characters takes a quarter of the time of one that begins with "(?<=".
_VALUE = re.compile(r"[\dA-ZА-ЯЁ](?:(?<=\d)\d*|(?<=[\w,;:] [A-ZА-ЯЁ])[^\W\d_]+)")
_CAPITAL = re.compile(r"(?<=[\w,;:] )(?:[A-Z][a-z]|[А-ЯЁ][а-яё])")
_NUMBER = re.compile(r"\d+")
_VOWELS = re.compile("[\u064b-\u0652\u0640]")
"""The vowel marks and the tatweel of Arabic, which most texts and the lists of phrases omit."""
_HIRAGANA = re.compile("[\u3040-\u309f]+")
QUESTION_MARKS = "?\uff1f\u061f"
"""Plain, full-width and Arabic."""
_BEFORE_QUESTION = f".!\u3002\uff01\n{QUESTION_MARKS}"
"""The characters after which a question begins."""
AFTER_QUESTION = 60
"""The number of characters at the end of an answer that may follow its last question."""


def terms(text: str, phrases: Phrases) -> frozenset[str]:
    """The terms of a text: its words without stop words, prefixes, endings and accents.

    In Chinese and Japanese: the pairs of its characters without function words.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> sorted(terms("How do I read CSV files in pandas?", phrases_in("en")))
        ['csv', 'file', 'panda', 'read']
    """
    words = set(_read(text, phrases)[1]) - phrases.stop_words
    if not phrases.spaces:
        words = {
            word for word in words if not (phrases.stop_words.intersection(word) or _HIRAGANA.fullmatch(word))
        }
    return frozenset([_stem(word, phrases) for word in words])


@cache_of_texts(8192)
def _stem(word: str, phrases: Phrases) -> str:
    if word.startswith(phrases.prefixes):
        fitting = (prefix for prefix in phrases.prefixes if word.startswith(prefix))
        word = word.removeprefix(next((prefix for prefix in fitting if len(word) >= len(prefix) + 3), ""))
    if not word.isascii():
        word = unaccented(word)
    if not word.endswith(phrases.plain_endings):
        return word
    cut = next((end for end in phrases.plain_endings if word.endswith(end) and len(word) >= len(end) + 4), "")
    return word.removesuffix(cut)


def names(text: str, phrases: Phrases) -> frozenset[str]:
    """The values in a text: numbers, and capitalized words inside a sentence.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> sorted(names("Then book The Lark for 7:30, please.", phrases_in("en")))
        ['30', '7', 'lark', 'the']
    """
    pattern = _VALUE if phrases.capitals else _NUMBER
    return frozenset([value.lower() for value in pattern.findall(_shortened(text))])


_PHRASES_OF_MESSAGES = {
    "asking": "asking",
    "agreement": "agreements",
    "refusal": "refusals",
    "reply": "replies",
    "thanks": "thanks",
    "farewell": "farewells",
    "greeting": "greetings",
    "request": "requests",
    "connective": "connectives",
    "reference": "references",
    "return": "returns",
    "change": "changes",
    "alternative": "alternatives",
}
"""Cues of a message, each with its list of `Phrases`."""
_INFORMATION = ("number", "moment", "place", "name", "capital")
_CUES_OF_MESSAGES = (*_PHRASES_OF_MESSAGES.values(), "amounts", "moments", "places", "names")
MESSAGE_CUES = ("length", "short", "brief", "question", *_PHRASES_OF_MESSAGES, *_INFORMATION)
"""The names of the numbers that `message_cues` returns."""


def message_cues(message: str, phrases: Phrases) -> tuple[float, ...]:
    """The cues of a human message: one number for each of `MESSAGE_CUES`.

    All are 0 or 1 except the length, log(1 + words) - 2.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> cues = message_cues("And what about 3 pm?", phrases_in("en"))
        >>> [name for name, value in zip(MESSAGE_CUES, cues) if value == 1]
        ['brief', 'question', 'connective', 'number', 'moment']
    """
    text, words = _read(message, phrases)
    start, count = text[:HEAD], len(words) if phrases.spaces else (len(words) + 1) // 2
    shown = phrases.shown(start, _CUES_OF_MESSAGES)
    if "greetings" not in shown and greets(start):
        shown.add("greetings")
    return (
        math.log1p(count) - 2.0,
        float(count <= 3),
        float(3 < count <= 7),
        float(any(map(message.__contains__, QUESTION_MARKS))),
        *map(float, map(shown.__contains__, _PHRASES_OF_MESSAGES.values())),
        float(_NUMBER.search(start) is not None or "amounts" in shown),
        float("moments" in shown),
        float("places" in shown),
        float("names" in shown),
        float(phrases.capitals and _CAPITAL.search(message[:HEAD]) is not None),
    )


LONGEST_POINTER = 160
"""The number of characters of a message above which it names a subject."""
MOST_NEW = 2
"""The number of other words in a message that points at the last answer ("in simple words for my mother")."""


def leaning(message: str, phrases: Phrases) -> float:
    """How much a message leans on the last answer, 0 to 1.

    It is 1 if the message has no subject of its own: "Why?", "Yes, the second one", "Put that into bullet
    points"; 0.75 if it points at the answer with a few words of its own; 0 for a greeting.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> said = "Put that into a table", "Turn your answer into a poster", "Put the cat in a box", "Hi!"
        >>> [leaning(message, phrases_in("en")) for message in said]
        [1.0, 0.75, 0.0, 0.0]
    """
    if len(message) > LONGEST_POINTER:
        return 0.0
    text, known = _read(message, phrases)[0], phrases.without_subject
    edits = asks = forms = new = 0
    if phrases.spaces:
        counts = False
        for word in _PLAIN_WORD.findall(text):
            is_asking = word.startswith(known.beginnings)
            is_edit = is_asking or word in known.edits
            is_form = not is_edit and word in known.forms
            asks, edits, forms = asks + is_asking, edits + is_edit, forms + is_form
            new += not (is_edit or is_form or word in known.plain)
            new -= counts and (is_edit or is_form)  # The number of "3 examples" is no subject.
            counts = word.isdecimal()
    else:
        edits, forms = (sum(part in text for part in parts) for parts in (known.edits, known.forms))
        new = sum(_HIRAGANA.fullmatch(rest) is None for rest in _WORD.findall(known.parts.sub(" ", text)))
    shown = phrases.shown(text, ("pointers", "references", "returns", "greetings"))
    points, refers = "pointers" in shown, "references" in shown
    if not new and (points or refers or not forms):
        goes_back = "returns" in shown and not (edits or points)
        return 0.0 if goes_back or (not edits and ("greetings" in shown or greets(text))) else 1.0
    return 0.75 if new <= MOST_NEW and (points or ((asks or forms) and refers)) else 0.0


def announces(message: str, phrases: Phrases) -> bool:
    """Whether a message announces another subject and then names it.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> said = "New topic: is rye sour?", "Ok, something else: is rye sour?", "Something else, please"
        >>> [announces(message, phrases_in("en")) for message in said]
        [True, True, False]
    """
    found = phrases.announcing.match(_read(message, phrases)[0])
    return found is not None and len(_WORD.findall(message[found.end() - 1 :])) > (1 if phrases.spaces else 0)


def restores(message: str, phrases: Phrases) -> str:
    """The earlier answer of a thread to which a message goes back: "firsts", "befores", or "" for none.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> said = "Go back to your first idea", "Return to the version before", "Tell me about the first one"
        >>> [restores(message, phrases_in("en")) for message in said]
        ['firsts', 'befores', '']
    """
    text = unaccented(_read(message, phrases)[0][:LONGEST_POINTER])
    return next((marks for marks, pattern in phrases.restoring.items() if pattern.search(text)), "")


class DescribedAnswer(NamedTuple):
    """The description of an earlier answer to which a message goes back.

    Attributes:
        terms: Its terms, without words that mark the first of several answers.
        is_first: Whether it has such a word.
    """

    terms: frozenset[str]
    is_first: bool


def recalled(message: str, phrases: Phrases) -> DescribedAnswer | None:
    """The earlier answer that a message describes after "back to" at the beginning of a clause.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> said = "Hm, can we go back to your first dinner ideas? How long do I cook them?"
        >>> described = recalled(said, phrases_in("en"))
        >>> sorted(described.terms), described.is_first, recalled("My back hurts", phrases_in("en"))
        (['dinner', 'idea'], True, None)
    """
    known = phrases.without_subject.plain
    for clause in _CLAUSE.split(unaccented(_read(message, phrases)[0][:LONGEST_POINTER])):
        found = phrases.recalling.search(clause)
        if found is None or (phrases.spaces and set(_PLAIN_WORD.findall(clause[: found.start()])) - known):
            continue
        following = _PLAIN_WORD.search(clause, found.end())
        # "Back to three hours again" tells a state.
        if following is None or not (following[0].isdecimal() or following[0] in phrases.amounts):
            rest, firsts = phrases.first.subn(" ", f"{clause[: found.start()]} {clause[found.end() :]}")
            return DescribedAnswer(terms(rest, phrases), firsts > 0)
    return None


_PHRASES_OF_QUESTIONS = {
    "asks_closed": "closed",
    "asks_choice": "disjunctions",
    "asks_number": "numbers",
    "asks_time": "times",
    "asks_place": "wheres",
    "asks_name": "whos",
}
_PHRASES_OF_ENDINGS = {
    "confirm": "confirmations",
    "offer": "offers",
    "farewell": "farewells",
    "done": "completions",
    "sorry": "apologies",
}
"""Cues of the last question and of the end of an answer, each with its list of `Phrases`."""
_SAID_LAST = ("farewells", "thanks")
"""The cues of the human message."""
_NOTHING_SHOWN: Final = frozenset[str]()
_OF_HUMANS = ("human_farewell", "human_thanks", "human_question")
END_CUES = ("asks", *_PHRASES_OF_QUESTIONS, *_PHRASES_OF_ENDINGS, "long", *_OF_HUMANS)
"""The names of the numbers that `end_cues` returns."""


def end_cues(human: str, answer: str, phrases: Phrases) -> tuple[float, ...]:
    """The cues at the end of a turn: one number for each of `END_CUES`.

    Example:
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> cues = end_cues("A table, please.", "Sure. For how many people?", phrases_in("en"))
        >>> [name for name, value in zip(END_CUES, cues) if value == 1]
        ['asks', 'asks_number']
    """
    tail = _plain(answer[-TAIL:])
    question = _last_question(tail)
    of_questions, of_endings = _PHRASES_OF_QUESTIONS.values(), _PHRASES_OF_ENDINGS.values()
    asked = phrases.shown(question, of_questions) if question else _NOTHING_SHOWN
    ends, said = phrases.shown(tail, of_endings), phrases.shown(_read(human, phrases)[0], _SAID_LAST)
    return (
        float(bool(question)),
        *map(float, map(asked.__contains__, of_questions)),
        *map(float, map(ends.__contains__, of_endings)),
        math.log1p(len(answer) / 100.0),
        *map(float, map(said.__contains__, _SAID_LAST)),
        float(any(map(human.__contains__, QUESTION_MARKS))),
    )


def _last_question(text: str) -> str:
    """The last question of a text, with the few characters after it; empty if more follow."""
    at = max(map(text.rfind, QUESTION_MARKS))
    if at < 0 or len(text.removesuffix("\n")) > at + 1 + AFTER_QUESTION:
        return ""
    begin = max([text.rfind(sign, 0, at) for sign in _BEFORE_QUESTION]) + 1
    return text[begin:].strip()


@cache_of_texts(8)
def _read(text: str, phrases: Phrases) -> tuple[str, Sequence[str]]:
    """The text in lower case, and its words; in a language without spaces the pairs of its characters."""
    plain = _plain(_shortened(text))
    words = _WORD.findall(plain)
    if phrases.elides:
        words = [word.rpartition("'")[2] for word in words]
    return plain, words if phrases.spaces else [part for word in words for part in _pairs(word)]


def _pairs(word: str) -> Sequence[str]:
    return [word] if word.isascii() or len(word) < 3 else [word[at : at + 2] for at in range(len(word) - 1)]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 2]} {text[-LONGEST_TEXT // 2 :]}"


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    return _VOWELS.sub("", text.lower().replace("\u2019", "'"))

"""Phrases of languages that show the place of a message in a conversation.

Embeddings represent the subject of a text, not its function: "yes, that one" answers the last question,
"Hello, I need" opens a subject, "enjoy your trip" closes a subject. `Phrases` lists the phrases of one
language, and `cues` searches texts for them. The folder `languages` has a file for each language, named by
its ISO 639-1 code. `language_of` determines the language of a text, by its script or by its words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple
from unicodedata import normalize

_PLAIN_WORD = re.compile(r"\w+")
_CONTRACTION = re.compile(r"(?<=[a-z])(?:n't|'(?:s|m|ve|re))\b")
_UNACCENTED = str.maketrans(
    {
        letter: normalize("NFD", letter)[0]
        for letter in map(chr, range(0xE0, 0x180))
        if normalize("NFD", letter)[0].isascii()
    }
    | {"\u0142": "l", "\u00df": "ss"}
)
_DIVISION = r"[:.,;!\u2013\u2014\u3001\u3002\uff0c\uff1a\u060c-]"


class WordsWithoutSubject(NamedTuple):
    """Words that name no subject.

    Attributes:
        plain: Stop words and words of cues, in a language with spaces.
        edits: The edits without a star.
        beginnings: The beginnings of the edits with a star.
        forms: The forms of answers.
        parts: In a language without spaces, a pattern for all of them.
    """

    plain: frozenset[str]
    edits: frozenset[str]
    beginnings: tuple[str, ...]
    forms: frozenset[str]
    parts: re.Pattern[str]


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrases of one language that show how a message relates to earlier messages.

    All are in lower case, with a plain apostrophe; a phrase matches whole words. An empty tuple disables a
    cue.

    Attributes:
        name: The English name of the language.
        spaces: Whether spaces separate words; without spaces a phrase matches anywhere in a text.
        capitals: Whether a capital inside a sentence marks a name; in German it marks any noun.
        elides: Whether an apostrophe ends an article or a pronoun ("l'eau") that is not part of the word.
        asks_anywhere: Whether question words may stand anywhere in a question, not only at its beginning.
        stop_words: Words too common to distinguish threads.
        endings: Word endings to remove if four letters remain, longest first.
        prefixes: Articles and conjunctions that are written with the next word, to remove if three letters
            remain, longest first.
        references: Words that refer to an earlier message, anywhere in a message.
        replies: Beginnings of a reply to the last message.
        connectives: Beginnings of a message that continues the subject.
        greetings: Beginnings of a message that opens a conversation.
        requests: Phrases that open a task or a subject.
        farewells: Phrases with which either side closes a subject.
        agreements: Beginnings of a message that says yes.
        refusals: Beginnings of a message that says no.
        thanks: Phrases of thanks.
        returns: Phrases that return to an earlier subject.
        changes: Phrases that correct an earlier message.
        asking: Beginnings of a question.
        alternatives: Words that choose one of several offers.
        closed: Beginnings of a yes-or-no question.
        confirmations: Phrases of an answer that asks for confirmation.
        completions: Phrases of an answer that reports a completed task.
        offers: Phrases of an answer that offers more help.
        apologies: Phrases of an answer that did not understand or could not help.
        disjunctions: Words of a question that offers a choice.
        numbers: Words of a question that asks for a number.
        amounts: Words that, like digits, give a number.
        times: Words of a question that asks for a time or a date.
        moments: Words that give a time or a date.
        wheres: Words of a question that asks for a place.
        places: Words before the name of a place.
        whos: Words of a question that asks for a name.
        names: Words that introduce a name.
        pointers: Phrases that point at the last answer.
        edits: Words that ask for another form, an explanation or a continuation of an answer. A star stands
            for any ending.
        forms: Words for what an answer can become, such as "email".
        announcements: Beginnings of a message that announce another subject ("new topic: ...").
        digressions: Beginnings of a message that leaves the last subject ("by the way").
        restores: Words that go back to an earlier answer. For these and the next lists, as for edits, a star
            stands for any ending.
        firsts: Words that mark the first of several answers.
        befores: Words that mark the answer before the last.
        versions: Words for an answer that these mark, such as "version".
    """

    name: str = ""
    spaces: bool = True
    capitals: bool = True
    elides: bool = False
    asks_anywhere: bool = False
    stop_words: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    connectives: tuple[str, ...] = ()
    greetings: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    farewells: tuple[str, ...] = ()
    agreements: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    thanks: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    confirmations: tuple[str, ...] = ()
    completions: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    apologies: tuple[str, ...] = ()
    disjunctions: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
    wheres: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    whos: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    announcements: tuple[str, ...] = ()
    digressions: tuple[str, ...] = ()
    restores: tuple[str, ...] = ()
    firsts: tuple[str, ...] = ()
    befores: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All words of the lists."""
        phrases = [phrase for cue in _CUES if cue not in _ABOUT_ANSWERS for phrase in getattr(self, cue)]
        return self.stop_words.union(*(_PLAIN_WORD.findall(phrase) for phrase in phrases))

    @cached_property
    def without_subject(self) -> WordsWithoutSubject:
        """The words that name no subject."""
        phrases = [phrase for cue in (*_WITHOUT_SUBJECT, "pointers") for phrase in getattr(self, cue)]
        beginnings = tuple(edit[:-1] for edit in self.edits if edit.endswith("*"))
        edits = frozenset(edit for edit in self.edits if not edit.endswith("*"))
        forms = frozenset(form.removesuffix("*") for form in self.forms)
        if self.spaces:
            plain = self.stop_words.union(*(_PLAIN_WORD.findall(phrase) for phrase in phrases))
            return WordsWithoutSubject(plain, edits, beginnings, forms, re.compile("(?!)"))
        every = sorted(
            {*phrases, *self.stop_words, *edits, *forms}, key=lambda phrase: (-len(phrase), phrase)
        )
        return WordsWithoutSubject(
            frozenset(), edits, beginnings, forms, re.compile("|".join(map(re.escape, every)))
        )

    @cached_property
    def plain_endings(self) -> tuple[str, ...]:
        """The word endings without accents, the longest first."""
        return tuple(sorted(dict.fromkeys(map(unaccented, self.endings)), key=len, reverse=True))

    @cached_property
    def announcing(self) -> re.Pattern[str]:
        """A pattern for an announcement, the punctuation after it, and the beginning of what follows."""
        return re.compile(rf"{self._at_start(self.announcements)}\s*{_DIVISION}+\W*\w")

    @cached_property
    def digressing(self) -> re.Pattern[str]:
        """A pattern for a digression at the beginning of a message, and the beginning of what follows."""
        edge = r"\b" if self.spaces else ""
        return re.compile(rf"{self._at_start(self.digressions)}{edge}\W*\w")

    def _at_start(self, phrases: Iterable[str]) -> str:
        """A pattern for phrases at the beginning of a text, or after a word and a comma."""
        every = "|".join(map(re.escape, sorted(phrases, key=len, reverse=True))) or "(?!)"
        return (r"^\W*(?:\w{1,8}[\s,]+)?" if self.spaces else r"^\W*") + f"(?:{every})"

    @cached_property
    def restoring(self) -> Mapping[str, re.Pattern[str]]:
        """Patterns for "back to your first version" and "back to the version before", by their lists."""
        return {marks: self._restoring(marks) for marks in ("befores", "firsts")}

    @cached_property
    def recalling(self) -> re.Pattern[str]:
        """A pattern for the phrases that go back to something, such as "back to"."""
        forms = [re.compile(self._any_of("restores"))] if self.restores else []
        every = [phrase for phrase in self.returns if any(form.search(unaccented(phrase)) for form in forms)]
        edge = r"\b" if self.spaces else ""
        alternatives = "|".join(map(re.escape, sorted(map(unaccented, every), key=len, reverse=True)))
        return re.compile(f"{edge}(?:{alternatives or '(?!)'}){edge}")

    @cached_property
    def first(self) -> re.Pattern[str]:
        """A pattern for the words that mark the first of several answers."""
        return re.compile(self._any_of("firsts"))

    def _restoring(self, marks: str) -> re.Pattern[str]:
        word, of, alone = r"[^\w.;:!?]+\w+", r"[\s']+(?:\w\w?[\s']+)?", r"(?=\W*$|[,.;:!?])"
        between, beside = rf"(?:{word}){{0,3}}?[^\w.;:!?]+", rf"(?:{word})?[^\w.;:!?]+"
        if not self.spaces:
            between, beside, of, alone = ".{0,8}?", ".{0,3}?", ".?", "(?!)"
        restores, mark, version = map(self._any_of, ("restores", marks, "versions"))
        marked = f"(?:{mark}{beside}{version}|{version}{of}{mark})"
        whole = f"(?:{word}){{1,3}}?[^\\w.;:!?]+{mark}{alone}"
        return re.compile(f"{restores}(?:{between}{marked}|{whole})|{marked}{between}{restores}")

    def _any_of(self, name: str) -> str:
        """A pattern for the phrases of a list, without accents; a star stands for any ending."""
        edge = r"\b" if self.spaces else ""
        every = sorted(set(map(unaccented, getattr(self, name))), key=lambda form: (-len(form), form))
        forms = [re.escape(form.removesuffix("*")) + r"\w*" * form.endswith("*") for form in every]
        return f"{edge}(?:{'|'.join(forms) or '(?!)'}){edge}"

    @cached_property
    def patterns(self) -> Mapping[str, tuple[frozenset[str], frozenset[str] | None, re.Pattern[str]]]:
        """For each cue: its single words that match anywhere, the first words of its other phrases, and a
        pattern for these phrases. Without spaces there are no words, and `None` for the first words.
        """
        return {cue: self._pattern(cue) for cue in _CUES if cue not in ("edits", *_ABOUT_PLACES)}

    def _pattern(self, cue: str) -> tuple[frozenset[str], frozenset[str] | None, re.Pattern[str]]:
        phrases, anywhere = (
            getattr(self, cue),
            cue not in _AT_THE_START or (self.asks_anywhere and cue in _QUESTIONS),
        )
        if not self.spaces:
            alternatives = "|".join(map(re.escape, sorted(phrases, key=len, reverse=True))) or "(?!)"
            return frozenset(), None, re.compile(alternatives if anywhere else rf"^\W*(?:{alternatives})")
        alone = frozenset(filter(_PLAIN_WORD.fullmatch, phrases)) if anywhere else frozenset[str]()
        rest = [phrase for phrase in phrases if phrase not in alone]
        start = r"\b" if anywhere else r"^\W*"
        pattern = re.compile(rf"{start}(?:{'|'.join(map(re.escape, rest)) or '(?!)'})\b")
        return (
            alone,
            frozenset(word for phrase in rest for word in _PLAIN_WORD.findall(phrase)[:1]),
            pattern,
        )

    def shown(self, text: str, cues: Iterable[str]) -> set[str]:
        """The cues of which a text in lower case contains a phrase.

        Example:
            >>> phrases_in("en").shown("thanks a lot", ["thanks", "farewells"])
            {'thanks'}
        """
        words, patterns, shown = frozenset(_PLAIN_WORD.findall(text)), self.patterns, set[str]()
        for cue in cues:
            alone, first_words, pattern = patterns[cue]
            # Most texts contain few phrases, so the sets exclude most patterns.
            if not alone.isdisjoint(words) or (
                (first_words is None or not first_words.isdisjoint(words)) and pattern.search(text)
            ):
                shown.add(cue)
        return shown


_WITHOUT_SUBJECT = (
    *("references", "replies", "connectives", "agreements", "refusals", "thanks", "changes", "alternatives"),
    *("asking", "closed", "returns", "farewells", "disjunctions", "offers", "apologies", "confirmations"),
)
"""The cues whose words name no subject."""
_AT_THE_START = frozenset(
    ["replies", "connectives", "greetings", "agreements", "refusals", "asking", "closed"]
)
_QUESTIONS = frozenset(["asking", "closed"])
UNDETERMINED: Final = "und"
"""The code of a language without phrases, as in ISO 639-2."""
AFFIXES: Final = ("endings", "prefixes")
"""The lists that are not phrases of a cue."""
_ABOUT_PLACES: Final = ("forms", "announcements", "digressions", "restores", "firsts", "befores", "versions")
"""The lists that are searched in other ways than the phrases of a cue, beside the edits."""
_ABOUT_ANSWERS: Final = ("pointers", "edits", *_ABOUT_PLACES)
"""The lists that do not identify a language."""
_CUES = tuple(
    field.name for field in fields(Phrases) if isinstance(field.default, tuple) and field.name not in AFFIXES
)


@cache
def phrases_in(code: str) -> Phrases:
    """The phrases of a language, by its ISO 639-1 code; the first call reads the file (2 ms).

    `UNDETERMINED` has none.

    Example:
        >>> phrases_in("de").name
        'German'
    """
    if code == UNDETERMINED:
        return Phrases("undetermined")
    text = files(__package__).joinpath("languages", f"{code}.toml").read_text(encoding="utf-8")
    # The lists of a file are wrapped at any space.
    lists: dict[str, Any] = {
        key: tuple(filter(None, (" ".join(phrase.split()) for phrase in value.split(","))))
        if isinstance(value, str)
        else value
        for key, value in tomllib.loads(text).items()
    }
    [name], stop_words = lists.pop("name"), lists.pop("stop_words")
    lists["stop_words"] = stop_words
    cues = {key: value for key, value in lists.items() if isinstance(value, tuple) and key not in AFFIXES}
    words = frozenset(word for phrases in cues.values() for phrase in phrases for word in phrase.split())
    typed = {
        key: tuple(dict.fromkeys([*phrases, *_as_typed(phrases, words)])) for key, phrases in cues.items()
    }
    return Phrases(name, **{**lists, **typed, "stop_words": frozenset(typed["stop_words"])})


def _as_typed(phrases: Iterable[str], words: Set[str]) -> Iterator[str]:
    """Phrases without the apostrophes of contractions ("dont") and without accents, as many people type them.

    Phrases that would contain another word of the lists ("its") are left out.
    """
    for phrase in phrases:
        typed = [_typed(word) for word in phrase.split()]
        changed = [new for new, word in zip(typed, phrase.split(), strict=True) if new != word]
        if changed and words.isdisjoint(changed):
            yield " ".join(typed)


def _typed(word: str) -> str:
    return unaccented(_CONTRACTION.sub(lambda found: found[0].replace("'", ""), word))


def unaccented(text: str) -> str:
    """A text in lower case without the accents of Latin script, which people often omit.

    Example:
        >>> unaccented("¿qué presión?"), unaccented("йод")
        ('¿que presion?', 'йод')
    """
    return text if text.isascii() else text.translate(_UNACCENTED)


LATIN: Final = ("en", "es", "pt", "fr", "de", "it", "id", "pl", "nl")
"""The languages in Latin script; of equally likely languages the first is chosen."""
SCRIPTS: Final = (
    (re.compile("[\u3040-\u30ff]"), "ja"),
    (re.compile("[\u3400-\u9fff]"), "zh"),
    (re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"), "ko"),
    (re.compile("[\u0600-\u06ff]"), "ar"),
    (re.compile("[\u0400-\u04ff]"), "ru"),
)
"""Scripts, each with its language; Japanese comes first because it also uses Chinese characters."""
LOOKED_AT: Final = 300
"""The number of characters at the beginning of a text that determine its language."""
CLEAR: Final = 2
"""The number of additional words by which a text is in another language than the texts before it."""
ENOUGH, LEAST_KNOWN = 8, 0.15
"""The number of words from which a text may be in an undetermined language, and the least share of its words
that a language lists. It is 0.19 to 1 of the words of four turns of the conversations of `training` in Latin
script, and 0 to 0.12 in Hindi, Swahili and Turkish."""


@cache
def _latin() -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((code, phrases_in(code).vocabulary) for code in LATIN)


def language_of(text: str, before: Sequence[str] = ()) -> str:
    """The language of a text: by its script, or by the language with the most of its words.

    Args:
        text: The text.
        before: Earlier texts. They determine the language unless the text has at least `CLEAR` more words of
            another language than of their language.

    Returns:
        An ISO 639-1 code; "en" if the texts have few words and none of any list; `UNDETERMINED` if they have
        more words, of which hardly any is in a list.

    Cost: 15 µs; 140 µs with eight earlier texts. The first text in Latin script reads nine files
    (20 ms).

    Example:
        >>> language_of("¿Y cuánto cuesta el segundo?"), language_of("OK")
        ('es', 'en')
        >>> language_of("OK", ["¿Y cuánto cuesta el segundo?"])
        'es'
        >>> language_of("OK", ["Salonu boyatmak istiyorum, sence beyaz mı krem mi daha güzel?"])
        'und'
    """
    script, words, counts = _votes(text)
    if script:
        return script
    likeliest = _likeliest(counts)
    if not before:
        return _determined(likeliest, words, counts)
    if counts[likeliest] - max([count for code, count in counts.items() if code != likeliest]) >= CLEAR:
        return _determined(likeliest, words, counts)
    usual_script, usual_words, usual_counts = _votes(
        " ".join(earlier[:LOOKED_AT] for earlier in before), len(before) * LOOKED_AT
    )
    language = usual_script or _likeliest(usual_counts)
    if counts[likeliest] - counts.get(language, 0) >= CLEAR:
        return _determined(likeliest, words, counts)
    return usual_script or _determined(language, usual_words, usual_counts)


def _determined(language: str, words: int, counts: Mapping[str, int]) -> str:
    """The language, or `UNDETERMINED` if it lists hardly any of the words of a text."""
    return UNDETERMINED if words >= ENOUGH and counts[language] < LEAST_KNOWN * words else language


def _likeliest(counts: Mapping[str, int]) -> str:
    return max(counts, key=counts.__getitem__)  # Of equal counts the first.


def _votes(text: str, most: int = LOOKED_AT) -> tuple[str, int, dict[str, int]]:
    """The language of a script other than Latin; the number of words, and of those of each Latin language."""
    start = text[:most]
    if not start.isascii():
        for script, code in SCRIPTS:
            if script.search(start):
                return code, 0, {}
    words = frozenset(_PLAIN_WORD.findall(start.lower().replace("\u2019", "'")))
    counts = {code: len(words & vocabulary) for code, vocabulary in _latin()}
    return "", sum(map(str.isalpha, words)), counts

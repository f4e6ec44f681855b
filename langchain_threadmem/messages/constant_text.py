r"""Constant text: the beginnings and ends that most human messages of a conversation share.

Programs and people wrap messages: a prompt template, tags, a time stamp, the name of the speaker, a
signature, a greeting before each request and thanks after it. What most messages share says nothing about a
single one, so messages are compared and embedded without it. The stored messages are unchanged.

Messages are compared token by token. All numbers are equal, so a time stamp is constant, and so are all
greetings at the beginning and all thanks at the end. Constant text ends at a boundary, such as the end of a
line, a colon, a bracket or a comma: three questions that begin with "How do I" share no constant text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise, takewhile
from operator import attrgetter, eq, itemgetter
from typing import Final, NamedTuple, TypeAlias

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.messages.courtesies import (
    DISCOURSE,
    GREETING,
    QUESTIONS,
    TIMES,
    thanks_at_end,
)

LATEST: Final = 32
"""The number of latest messages whose constant text is determined."""
FIRST, LAST, SHORT, LONG, END = 24, 60, 160, 4000, 600
"""The number of characters at the beginning and at the end of a message whose outermost tokens are compared;
if most are equal, the number at the beginning, more if many of these are constant, and at the end."""
FEW: Final = 10
"""The number of constant tokens after which more characters are compared."""
NUMBER, GREETS, THANKING = "0", "<greeting>", "<thanks>"
"""The keys of all numbers, greetings and thanks."""
TokenKeys: TypeAlias = tuple[str, ...]

_CHARACTERS: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN: Final = re.compile(
    rf"""
    (?P<line>\s*\n\s*)
  | (?P<tag></?[^<>\n]{{1,200}}>)
  | (?P<mark>(?<![\w/.:@\#])[@/\#]\w[\w-]*)
  | (?P<word>[{_CHARACTERS}]|(?:(?![{_CHARACTERS}])\w)+(?:['\u2019]\w+)*)
  | (?P<sign>([^\w\s])\6*)
    """,
    re.VERBOSE,
)
_KEY_OF: Final = attrgetter("key")
_NUMBER: Final = re.compile(r"\d+")
_IDENTIFIER: Final = re.compile(r"(?=\w*\d)(?:[0-9a-f]{6,}|\w{12,})")
_SPEAKER: Final = re.compile(r"(\w[\w.'\u2019-]*(?: \w[\w.'\u2019-]*)?)(?: ?\([^)\n]*\))?[ ]?[:\uff1a]\s+")
_LABEL: Final = re.compile(
    r"(?:^|\n)[ \t>*#]*(?P<label>[^\n:\uff1a<>*#{}\x22]{1,40})[ ]?(?::(?=[\s*])|\uff1a)[*]*"
    r"|(?P<tag><[^\W\d][^<>\n/]{0,40}>)"
)
_LABEL_WORD: Final = re.compile(r"[^\W_]+")
_STAMP: Final = re.compile(
    r"\s*(?:\[(?=[^\]\n]*\d(?::|-)\d\d)[^\]\n]{4,40}\]|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?)"
    r"(?:\s*[-:|]\s|\s)\s*"
)
"""A time stamp in front of a message: in brackets, or a date and a time."""
_EMPTY_END: Final = re.compile(
    r"(?:\s*(?:</(?P<tag>[^\W\d][^<>\n]{0,40})>|\n[ \t>*#]*[^\n:<>]{1,40}:[ \t*]*))\Z"
)
"""A closing tag, or a label without text, at the end of a message."""
_STOPS: Final = frozenset(".!?\u3002\uff01\uff1f\u0964\u2026\u061f\u06d4")
_PAUSES: Final = frozenset(",;\u3001\uff0c\uff1b\u060c")
_COLONS: Final = frozenset(":\uff1a")
_OPENING: Final = frozenset("([{\u3010\uff08\u300c<\xab")
_CLOSING: Final = frozenset(")]}\u3011\uff09\u300d>\xbb")
_ENCLOSING: Final = _OPENING | _CLOSING | frozenset("\"'\u2018\u2019\u201c\u201d`")
_DIVIDING: Final = frozenset(":|\u2013\u2014\u2192\uff1a-*=~\u2022#>")
_OF_QUESTIONS: Final = frozenset("\xa1\xbf")
"""The signs with which a question begins in Spanish."""


class Token(NamedTuple):
    """A word, a sign or another part of a text.

    Attributes:
        key: The token in lower case, with zero for each number; tokens with equal keys are equal.
        kind: "line", "tag", "mark", "word", "sign", "greeting" or "thanks".
        start: The place of its first character in the text.
        end: The place after its last character.
    """

    key: str
    kind: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is a word and no number."""
        return self.kind == "word" and self.key != NUMBER

    def is_sign(self, signs: frozenset[str]) -> bool:
        """Whether it is one of the signs, once or several times."""
        return self.kind == "sign" and self.key[0] in signs


class TokenizedPart(NamedTuple):
    """The tokens of a part of a text.

    Attributes:
        keys: Their keys.
        tokens: The tokens.
        filled: The number of tokens down to the last that is no line and no sign.
        text: The text.
    """

    keys: TokenKeys
    tokens: Sequence[Token]
    filled: int
    text: str


class Evidence(NamedTuple):
    """The evidence that constant text needs: a least share, and a least number of messages."""

    share: float
    messages: int


MOST: Final = 0.5
"""The share of messages that constant text exceeds."""
CLEAR: Final = Evidence(MOST, 2)
"""Text that ends at the end of a line, a colon, a bracket, a tag."""
COURTEOUS, WEAK, OF_SIGNS = (Evidence(0.75, messages) for messages in (2, 3, 4))
"""Greetings and thanks; text that a comma divides from the rest; quotation marks and brackets."""
UNDIVIDED = {1: Evidence(0.9, 6), 2: Evidence(0.9, 4)}
"""One word, and several words, that nothing divides from the rest. In the training conversations up to five
messages begin or end with the same word, but never four with the same two words."""
AFTER_GREETING: Final = Evidence(0.9, 3)


@cache_of_texts(8192)
def _beginning(text: str, most: int) -> TokenizedPart:
    return _read(text, _tokens(text[:most], greets=True))


class Edges(NamedTuple):
    """The first token of a text, and its last tokens down to one that ends no sentence."""

    first: TokenKeys
    last: TokenKeys


@cache_of_texts(8192)
def _edges(text: str) -> Edges | None:
    """The edges of a text; `None` if it has no word."""
    if not _has_word(text):
        return None
    last = _ending(text, end=LAST).tokens
    stops = next((place for place, token in enumerate(last) if not token.is_sign(_STOPS)), len(last))
    first = _tokens(text[:FIRST], greets=True, most=1)
    return Edges(tuple(token.key for token in first), tuple(token.key for token in last[: stops + 1]))


@cache_of_texts(8192)
def _ending(text: str, thanks: bool = True, end: int = END) -> TokenizedPart:
    """The end of a text, the last token first, with or without a token for thanks."""
    offset = max(len(text) - end, 0)
    tail = text[offset:]
    place = thanks_at_end(tail) if thanks else None
    tokens = _tokens(tail[:place], offset=offset)
    if place is not None:
        tokens.append(Token(THANKING, "thanks", offset + place, len(text)))
    return _read(text, tokens[::-1])


def _read(text: str, tokens: Sequence[Token]) -> TokenizedPart:
    filled = len(tokens)
    while filled and tokens[filled - 1].kind in ("line", "sign"):
        filled -= 1
    return TokenizedPart(tuple(map(_KEY_OF, tokens)), tokens, filled, text)


def _tokens(text: str, *, greets: bool = False, offset: int = 0, most: int = LONG) -> list[Token]:
    """The first tokens of a text that begins at a place of a longer text."""
    tokens: list[Token] = []
    at, may_greet = 0, greets
    while len(tokens) < most and (found := _TOKEN.search(text, at)) is not None:
        kind, (start, end) = str(found.lastgroup), found.span()
        if may_greet and kind == "word" and (greeting := GREETING.match(text, start)):
            kind, end = "greeting", greeting.end()
        key = _key(kind, text[start:end])
        tokens.append(Token(key, kind, start + offset, end + offset))
        # A greeting stands at the beginning, or after a time stamp, a tag or a sign.
        may_greet = greets and (kind not in ("word", "greeting") or (may_greet and key == NUMBER))
        at = end
    return tokens


@cache_of_texts(8192)
def _key(kind: str, text: str) -> str:
    if kind == "line":
        return "\n"
    if kind == "greeting":
        return GREETS
    lower = text.lower()
    if kind == "word" and (lower in TIMES or _IDENTIFIER.fullmatch(lower)):
        return NUMBER
    return _NUMBER.sub(NUMBER, lower)


@dataclass(frozen=True, slots=True)
class ConstantText:
    """The constant text of a conversation.

    Attributes:
        beginnings: The keys of constant beginnings, the longest first.
        endings: The keys of constant ends, the last token first, the longest first.
        questions: Labels and tags that come before the question and after text that varies.
        speakers: Names of speakers with which the messages begin in turn.

    Example:
        >>> constant = constant_text(["[09:07] Hi, is rye sour?", "[09:12] Hello, why do cats purr?"])
        >>> constant.without("[11:30] Hey! And wheat?"), constant.without("[11:31] Hi!")
        ('And wheat?', 'Hi!')
    """

    beginnings: tuple[TokenKeys, ...] = ()
    endings: tuple[TokenKeys, ...] = ()
    questions: frozenset[str] = frozenset()
    speakers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.beginnings or self.endings or self.speakers)

    def without(self, text: str) -> str:
        """The text without its constant beginning and end, unless no word is left."""
        starts = [*self._starts(text), 0]
        ends = [*self._ends(text), (len(text), False)]
        for start in starts:
            for end, in_sentence in ends:
                rest = text[start:end]
                if start < end and _has_word(rest):
                    return text if len(rest) == len(text) else _trimmed(rest, in_sentence=in_sentence)
        return text

    def is_in(self, text: str) -> bool:
        """Whether a text has all of the constant text."""
        if self.speakers:
            return False
        if self.beginnings and _beginning(text, LONG).keys[: len(self.beginnings[0])] != self.beginnings[0]:
            return False
        if self.endings and _ending(text).keys[: len(self.endings[0])] != self.endings[0]:
            return False
        return not self.questions or any(label in self.questions for label, _ in _labels(text))

    def _starts(self, text: str) -> list[int]:
        """The places after constant beginnings, the last first."""
        starts = []
        if self.questions:
            starts += [end for label, end in reversed(_labels(text)) if label in self.questions]
        if self.beginnings:
            keys, tokens, *_ = _beginning(text, LONG if len(self.beginnings[0]) > FEW else SHORT)
            for beginning in self.beginnings:
                if keys[: len(beginning)] == beginning:
                    starts.append(tokens[len(beginning) - 1].end)
        if self.speakers and (speaker := _SPEAKER.match(text)) and speaker[1].lower() in self.speakers:
            starts.append(speaker.end())
        return starts

    def _ends(self, text: str) -> list[tuple[int, bool]]:
        """The places of constant ends, the first first, and whether each is a part of a sentence."""
        ends = []
        for thanks in (True, False) if self.endings else ():
            keys, tokens, *_ = _ending(text, thanks)
            for ending in self.endings:
                if keys[: len(ending)] == ending:
                    first = tokens[len(ending) - 1]
                    ends.append((first.start, first.kind in ("word", "thanks")))
            if not tokens or tokens[0].kind != "thanks":
                break
        return ends


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _trimmed(text: str, *, in_sentence: bool) -> str:
    """A text without white space, and without the comma before words that were removed."""
    text = text.strip()
    return text.rstrip(",;\u3001\uff0c \u2013\u2014-") if in_sentence else text


NOTHING: Final = ConstantText()


def constant_text(texts: Sequence[str]) -> ConstantText:
    """The constant text of human messages.

    Args:
        texts: The texts of the latest messages.

    Cost: 0.1 ms for 32 texts, and 0.2 ms for each text that is new.
    """
    # A message that is repeated word by word has no constant part.
    edges = {text: edge for text in dict.fromkeys(texts) if (edge := _edges(text))}
    several = list(edges)
    if len(several) < 2:
        return NOTHING
    beginnings, endings = tuple[TokenKeys, ...](), tuple[TokenKeys, ...]()
    if _is_usual([edge.first for edge in edges.values()]):
        beginnings = _shared([_beginning(text, SHORT) for text in several], _begins)
        if beginnings and len(beginnings[0]) > FEW:
            beginnings = _shared([_beginning(text, LONG) for text in several], _begins)
    if _is_usual([edge.last for edge in edges.values()]):
        endings = _shared([_ending(text) for text in several], partial(_ends, begun=bool(beginnings)))
    questions = _questions(several) if beginnings else frozenset[str]()
    speakers = _speakers(several) if _SPEAKER.match(several[-1]) else frozenset[str]()
    return ConstantText(beginnings, endings, questions, speakers)


def _is_usual(keys: Sequence[TokenKeys]) -> bool:
    """Whether most of the keys are equal."""
    return Counter(keys).most_common(1)[0][1] > MOST * len(keys)


def _shared(
    read: Sequence[TokenizedPart], boundary: Callable[[Sequence[TokenizedPart], int], Evidence | None]
) -> tuple[TokenKeys, ...]:
    """The constant beginnings, or the constant ends, of texts, the longest first.

    Args:
        boundary: The evidence that constant text of several texts needs to end after a number of tokens;
            `None` if it cannot end there.
    """
    usual, count = Counter([one.keys[:1] for one in read]).most_common(1)[0]
    if count <= len(read) * MOST:
        return ()
    # In this order texts with the same beginning are neighbours.
    ordered = sorted([one for one in read if one.keys[:1] == usual], key=itemgetter(0))
    common = [sum(takewhile(bool, map(eq, one.keys, other.keys))) for one, other in pairwise(ordered)]
    found: list[TokenKeys] = []
    for depth in range(1, max(common, default=0) + 1):
        sharing = ordered[_longest_run(common, depth)]
        if len(sharing) <= len(read) * MOST:
            break
        needed = boundary(sharing, depth)
        if needed and len(sharing) >= max(needed.messages, len(read) * needed.share):
            found.append(sharing[0].keys[:depth])
    return tuple(reversed(found))


def _longest_run(common: Sequence[int], depth: int) -> slice:
    """The texts that share the most common beginning of a length, by the lengths that neighbours share."""
    best, first = slice(0), 0
    for place, length in enumerate([*common, 0]):
        if length < depth:
            if place + 1 - first > best.stop - (best.start or 0):
                best = slice(first, place + 1)
            first = place + 1
    return best


def _begins(sharing: Sequence[TokenizedPart], depth: int) -> Evidence | None:
    """The evidence for constant text that consists of the first tokens of texts."""
    if not _leave_words(sharing, depth):
        return None
    tokens = sharing[0].tokens
    token, following = tokens[depth - 1], tokens[depth]
    words, numbers = _since_boundary(tokens[: depth - 1])
    is_divided = following.start > token.end
    if token.kind in ("line", "tag"):
        return CLEAR
    if token.kind == "greeting":
        return COURTEOUS
    if token.kind == "mark":
        return None if words else CLEAR
    if token.kind == "word":
        is_stamp = token.key == NUMBER and numbers and not words and is_divided
        after_greeting = depth > 1 and tokens[depth - 2].kind == "greeting"
        return CLEAR if is_stamp else AFTER_GREETING if after_greeting else _undivided(tokens[:depth])
    if token.is_sign(_COLONS):
        return CLEAR if is_divided or following.kind != "word" or token.key[0] != ":" else None
    if token.is_sign(_STOPS):
        return CLEAR if words > 1 and is_divided else None
    if token.is_sign(_PAUSES):
        relates = any(one.key in DISCOURSE for one in tokens[:depth])
        return (WEAK if relates else COURTEOUS) if words and is_divided else None
    if not words:
        return _of_signs(tokens[:depth])
    return CLEAR if token.is_sign(_DIVIDING) and is_divided else None


def _ends(sharing: Sequence[TokenizedPart], depth: int, *, begun: bool) -> Evidence | None:
    """The evidence for constant text that consists of the last tokens of texts.

    Args:
        sharing: The last tokens of the texts, the last first.
        begun: Whether the texts have a constant beginning.
    """
    if not _leave_words(sharing, depth):
        return None
    tokens = sharing[0].tokens[:depth]
    token, words = tokens[-1], sum([one.is_word for one in tokens])
    if token.kind in ("line", "tag", "mark"):
        return CLEAR
    if token.kind == "thanks":
        return COURTEOUS
    if token.kind == "word":
        before = [one.tokens[depth] for one in sharing if len(one.tokens) > depth]
        signs = [one.key[0] for one in before if one.kind in ("sign", "line")]
        stops = sum([sign in _STOPS or sign == "\n" for sign in signs])
        if 2 * stops >= len(sharing):
            return CLEAR if words > 1 else WEAK
        if words > 3 and sharing[0].text[token.start].isupper():
            return CLEAR
        pauses = sum([sign in _PAUSES for sign in signs])
        return WEAK if 2 * pauses >= len(sharing) else _undivided(tokens)
    if token.is_sign(_STOPS | _PAUSES):
        return None
    if token.is_sign(_OPENING) and depth > 2:
        return CLEAR
    if depth > 1 and token.key == '"' and tokens[-2].key in (",", "}"):
        return CLEAR  # The end of a string in JSON.
    if not words:
        return CLEAR if begun else _of_signs(tokens)
    text = sharing[0].text
    is_apart = not (text[: token.start][-1:].strip() or text[token.end : token.end + 1].strip())
    return CLEAR if token.is_sign(_DIVIDING) and is_apart else None


def _leave_words(sharing: Sequence[TokenizedPart], depth: int) -> bool:
    """Whether most texts have words after a number of tokens."""
    having = sum([one.filled > depth for one in sharing])
    return 2 * having > len(sharing) and len(sharing[0].tokens) > depth


def _since_boundary(tokens: Iterable[Token]) -> tuple[int, int]:
    """The number of words outside of brackets since the last boundary among tokens, and of all numbers."""
    words = numbers = inside = 0
    for token in tokens:
        if token.kind == "word":
            words += token.is_word and not inside
            numbers += token.key == NUMBER
        elif token.kind in ("line", "tag") or token.is_sign(_COLONS):
            words = 0
        elif token.is_sign(_OPENING):
            inside += 1
        elif token.is_sign(_CLOSING):
            inside = max(inside - 1, 0)
    return words, numbers


def _of_signs(tokens: Sequence[Token]) -> Evidence | None:
    """The evidence for constant text that ends, or begins, with a sign."""
    if tokens[-1].is_sign(_OF_QUESTIONS):
        return None
    return OF_SIGNS if all(token.is_sign(_ENCLOSING) for token in tokens) else CLEAR


def _undivided(tokens: Sequence[Token]) -> Evidence:
    """The evidence for constant text that nothing divides from the rest."""
    return UNDIVIDED[min(sum([token.kind == "word" for token in tokens]), 2)]


@cache_of_texts(8192)
def _labels(text: str) -> tuple[tuple[str, int], ...]:
    """The labels at the beginning of lines and the opening tags of a text, with their ends."""
    return tuple(
        [((found["label"] or found["tag"]).strip().lower(), found.end()) for found in _LABEL.finditer(text)]
    )


def question_in(text: str) -> str:
    r"""The question in a single message with a template, as far as the message alone shows it.

    A time stamp in front is left out; of a text that begins with a label or a tag, all before the last label
    or tag of a question, and the closing tag or the empty label at the end.

    Example:
        >>> question_in("Context: you bake.\n\nQuestion: is rye sour?"), question_in("[09:07] Is rye sour?")
        ('is rye sour?', 'Is rye sour?')
        >>> question_in("Sort these lines.\nInput: 3, 1"), question_in("<user_query>Why?</user_query>")
        ('Sort these lines.\nInput: 3, 1', 'Why?')
    """
    bare = text[stamp.end() :] if (stamp := _STAMP.match(text)) else text
    if _LABEL.match(bare := bare.strip()):
        ends = [end for label, end in _labels(bare) if not QUESTIONS.isdisjoint(_LABEL_WORD.findall(label))]
        question = next((bare[end:] for end in reversed(ends) if _has_word(bare[end:])), None)
        if question is not None:
            bare = _EMPTY_END.sub("", question).strip()
    return bare if _has_word(bare) else text


def _questions(texts: Sequence[str]) -> frozenset[str]:
    """The labels and tags of most texts that announce a question."""
    several = Counter(chain.from_iterable([dict(_labels(text)) for text in texts]))
    return frozenset(
        label
        for label, count in several.items()
        if count >= max(COURTEOUS.messages, COURTEOUS.share * len(texts))
        and not QUESTIONS.isdisjoint(_LABEL_WORD.findall(label))
    )


def _speakers(texts: Sequence[str]) -> frozenset[str]:
    """The names of speakers, if most texts begin with one of a few names and a colon."""
    found = [speaker[1].lower() for text in texts if (speaker := _SPEAKER.match(text))]
    several = frozenset(found)
    is_clear = len(found) >= max(WEAK.messages, WEAK.share * len(texts))
    return several if is_clear and 2 * len(several) <= len(found) + 1 else frozenset()

"""Standing instructions and preferences in human messages: "answer in French from now on", "I prefer tea".

They are found by phrases of 14 languages. A sentence is a standing instruction if it says for how long it
holds ("always", "from now on", "whenever I ask") and what the assistant shall do; a question is none ("do you
always answer so fast?"), nor is a statement about a person ("I always forget my keys").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

from langchain_threadmem.common.cache import cache_of_texts

DirectiveKind = Literal["instruction", "preference"]
LONGEST: Final = 400
"""The maximum number of characters of a sentence; a longer one is a pasted text."""
EDGE: Final = 1000
"""The number of characters at the beginning and at the end of a long message that are read."""


class Directive(NamedTuple):
    """A sentence that tells how to answer from now on, or that takes this back.

    Attributes:
        text: The sentence.
        kind: An instruction, which may be a preference for a kind of answers, or another preference.
        revokes: Whether it takes an earlier instruction back.
    """

    text: str
    kind: DirectiveKind
    revokes: bool = False


class _Words(NamedTuple):
    """Phrases of a language, separated by bars.

    Attributes:
        lasting: Phrases that say for how long an instruction holds.
        answering: Beginnings of words for what an assistant does.
        preferring: Phrases of a preference.
        revoking: Phrases that end an instruction.
    """

    lasting: str
    answering: str
    preferring: str
    revoking: str


_LANGUAGES: Final = (
    _Words(
        "immer|stets|niemals|nie|ab jetzt|ab sofort|von nun an|künftig|in zukunft|jedes mal",
        "antwort|beantwort|schreib|formulier|erklär|nenn|verwend|benutz|nutz|gib|zeig|füg|duz|siez|sprich|fass",
        "ich bevorzuge|ist mir lieber|mir ist lieber|ich hätte lieber|ich mag lieber",
        "nicht mehr|hör auf|vergiss die anweisung|vergiss meine anweisung",
    ),
    _Words(
        "siempre|nunca|a partir de ahora|de ahora en adelante|en adelante|cada vez que",
        "respond|respónd|contest|contést|escrib|explic|explíc|usa|utiliza|incluy|dame|muestra|pon|habla|háblame|"
        "trát|tutea|llám",
        "prefiero|preferiría|me gusta más",
        "ya no|deja de|olvida la instrucción|olvida mi instrucción",
    ),
    _Words(
        "toujours|jamais|désormais|dorénavant|à partir de maintenant|à l'avenir|chaque fois que",
        "répond|écri|expliqu|utilis|donn|inclu|ajout|montr|tutoi|vouvoi|appel|parl",
        "je préfère|je préférerais|j'aime mieux",
        "arrête de|arrête d|plus besoin|oublie l'instruction|oublie mon instruction",
    ),
    _Words(
        "sempre|mai|d'ora in poi|da ora in poi|da adesso in poi|in futuro|ogni volta che",
        "rispond|scriv|spieg|usa|utilizz|includ|dammi|mostr|aggiung|chiam|parl|dai",
        "preferisco|preferirei|mi piace di più",
        "smetti di|non serve più|dimentica l'istruzione",
    ),
    _Words(
        "sempre|nunca|a partir de agora|daqui em diante|de agora em diante|toda vez que",
        "respond|escrev|expli|usa|use|utiliz|inclu|mostr|adicion|cham|fal|dê|dá",
        "prefiro|preferiria|gosto mais",
        "pare de|para de|não precisa mais|esqueça a instrução",
    ),
    _Words(
        "altijd|nooit|vanaf nu|voortaan|in het vervolg|elke keer",
        "antwoord|beantwoord|schrijf|leg|gebruik|geef|toon|voeg|noem|spreek",
        "ik heb liever|ik geef de voorkeur|mijn voorkeur",
        "niet meer|stop met|vergeet de instructie",
    ),
    _Words(
        "zawsze|nigdy|od teraz|odtąd|za każdym razem",
        "odpowiad|pisz|wyjaśn|używ|podaw|dodaw|mów|zwracaj|pokazuj",
        "wolę|wolałbym|wolałabym|preferuję",
        "już nie|przestań|zapomnij o instrukcji",
    ),
    _Words(
        "всегда|никогда|отныне|с этого момента|впредь|каждый раз",
        "отвеча|пиш|объясн|использу|дава|добавля|говори|называй|обращайся|указыва|показыва",
        "предпочитаю|мне больше нравится|я бы предпочел|я бы предпочла",
        "больше не|перестань|забудь инструкцию",
    ),
    _Words(
        "دائما|دائمًا|أبدا|أبدًا|من الآن فصاعدا|من الآن فصاعدًا|كلما",
        "أجب|جاوب|رد|اكتب|اشرح|استخدم|اعط|أعط|اذكر|نادني",
        "أفضّل|أنا أفضل",
        "توقف عن|لا داعي",
    ),
    _Words(
        "selalu|jangan pernah|mulai sekarang|ke depannya|setiap kali",
        "jawab|balas|tulis|jelaskan|gunakan|pakai|beri|sertakan|panggil|tampilkan",
        "saya lebih suka|aku lebih suka",
        "tidak perlu lagi|berhenti|lupakan instruksi",
    ),
)
_LANGUAGES_WITHOUT_SPACES: Final = (
    _Words(
        "いつも|常に|必ず|今後|これから|毎回|絶対に",
        "答え|返事|返信|書い|説明し|使っ|使わ|ください|出力し|話し|呼ん",
        "方が好き|ほうが好き|方がいい|ほうがいい",
        "やめて|もう必要ない|もういらない",
    ),
    _Words(
        "总是|總是|始终|始終|永远|永遠|每次|从现在开始|從現在開始|以后|以後|今后|一律",
        "回答|回复|回覆|用|写|寫|解释|解釋|给|給|叫|称呼|稱呼",
        "我更喜欢|我更喜歡|我偏好|我宁愿|我寧願",
        "不要再|不用再|别再|別再",
    ),
    _Words(
        "항상|언제나|앞으로|절대|매번|지금부터",
        "답|대답|설명|써|사용|말해|불러|해 줘|해줘|주세요",
        "선호해|선호합니다|더 좋아",
        "그만|더 이상",
    ),
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\s*\n+\s*")
_QUESTION: Final = ("?", "\uff1f", "\u061f")
_COURTESY: Final = (
    r"(?:(?:ok|okay|and|also|but|so|now|please|pls|hey|hi|hello|thanks|thank you|great|btw|by the way|"
    r"one more thing|note|important|remember|just|kindly)[\s,:.!-]+)*"
).replace(" ", r"\ ")
_PERIOD: Final = (
    r"from now on|from here on|going forward|from this point on|in (?:the )?future|"
    r"for the rest of (?:this|our) (?:chat|conversation)"
).replace(" ", r"\ ")
_EVENT: Final = (
    r"(?:when(?:ever)?|every ?time|each time|any ?time) i (?:ask|say|write|send|mention|talk)\b"
).replace(" ", r"\ ")
_CONDITION: Final = re.compile(r"\b(?:when(?:ever)?|if|every ?time|each time|any ?time) (?:i|we|you)\b")
_OF_PEOPLE: Final = r"(?:i|i'm|i'll|i've|i'd|we|he|she|it|they|the|my|our|his|her|their|there|this|that)\b"
_NO_REQUEST: Final = (
    r"(?:mind|again|been|had|heard|seen|saw|knew|thought|got|felt|went|came|made|took|met|found|did|was|were|"
    r"would|could|is|are|has|have a|a|an|the|my|i|he|she|it|we|they|too|so|here|there|good|nice|fun|great|"
    r"happy|wrong|right|give up|\w+ed|\w+ing)\b"
).replace(" ", r"\ ")
_ANSWERS: Final = r"(?:answers?|repl(?:y|ies)|responses?|explanations?|messages?)"
_INSTRUCTIONS: Final = re.compile(
    rf"""
    ^{_COURTESY}(?:
        (?:always|never)\s+(?!{_NO_REQUEST})
      | (?:{_PERIOD})[\s,:]+(?!{_OF_PEOPLE}(?!\s+(?:want|need|expect|prefer|would\ like)\s+(?:you|your)))
      | {_EVENT}.*[,;]\s*(?!{_OF_PEOPLE})
      | (?:you\ can\ |you\ may\ )?call\ me\ (?!back|later|when|at\b|on\b|tomorrow|today|if\b|a\b|an\b|crazy)
      | (?:stop|quit|avoid)
        \ (?:us|call|add|apologi[sz]|writ|giv|includ|explain|repeat|say|ask|answer|put|end|start)\w*ing\b
      | (?:don't|do\ not)\ (?:ever|always)\b
      | (?:can|could|would|will)\ you\ (?:please\ )?(?:always|never|(?:{_PERIOD}))\b
    )
  | \b(?:i\ want|i'd\ like|i\ would\ like|i\ need|i\ expect|make\ sure|be\ sure|remember|try)
        \ (?:you\ )?(?:to\ )?(?:always|never)\b(?!\ (?:have|had|be|been)\b)
  | \b(?:all|each|every)\ (?:of\ )?(?:your\ )?{_ANSWERS}\ (?:should|must|need|needs|has|have)\b
  | \byour\ {_ANSWERS}\ (?:should|must|need\ to|have\ to)\ (?:always|never|all|only|be)\b
  | \b(?:always|never)\b.*\b(?:when|whenever|if|every\ time)\ i\ (?:ask|say|write|send|mention|talk)\b
  | \b(?:please|you\ (?:should|must))\ (?:always|never)\s+(?!{_NO_REQUEST})
  | \b(?:answer|reply|respond|write|speak|talk|use|give|add|include|keep)\b.*\b(?:{_PERIOD})\b
  | \bkeep\ (?:all|your|the)\ (?:of\ your\ )?{_ANSWERS}\b
    """,
    re.VERBOSE,
)
_ASKS_FOR_IT: Final = re.compile(
    rf"\b(?:can|could|would|will) you (?:please )?(?:always|never|{_PERIOD})|"
    r"\b(?:please|you to) (?:always|never)\b"
)
_PREFERENCES: Final = re.compile(
    rf"""
    \bi(?:'d|'ll|\ would)?(?:\ (?:much|really|always|usually|generally|strongly|also|just|still))*\ prefer\b
    (?!\ not\ to\ say)
  | \bmy\ preference\ is\b
  | \bi\ (?:like|love|want)\ (?:my|your)\ (?:code|examples?|{_ANSWERS})\b
  | \bi(?:'d|\ would)\ rather\ (?:you|have|use|get|see)\b
  | \bi\ (?:like|hate|love|don't\ like)\ it\ when\ you\b
    """,
    re.VERBOSE,
)
_ABOUT_ANSWERS: Final = re.compile(
    rf"\b(?:prefer(?:ence is)?|like|love|hate|rather|want)\b[^.,;]{{0,40}}"
    rf"\b(?:{_ANSWERS}|examples?|summar(?:y|ies)|"
    r"bullet points|tables|when you|you|your)\b"
)
"""A preference for a kind of answers."""
_REVOCATIONS: Final = re.compile(
    rf"""
    ^{_COURTESY}(?:you\ can\ |you\ may\ )?(?:stop|quit)\ (?:with\b|the\b|\w+ing\b)
  | \byou\ (?:don't|do\ not|no\ longer|needn't)\ (?:have\ to|need\ to|always)
  | \bno\ need\ to\b.*\b(?:always|any\ ?more|any\ longer)\b
  | ^{_COURTESY}(?:you\ )?no\ longer\ (?:need\ to|have\ to|answer|use|write)
  | \b(?:don't|do\ not)\b.*\b(?:any\ ?more|any\ longer)\b
  | ^{_COURTESY}(?:forget|ignore|cancel|drop|disregard|never\ mind|undo)\b.*
    \b(?:instructions?|rules?|preferences?|i\ (?:said|asked|told)|always)\b
    """,
    re.VERBOSE,
)
_ALL_OF_THEM: Final = re.compile(
    r"\b(?:all|any|every|my)\b.*\b(?:instructions|rules|preferences)\b|"
    r"\b(?:that|the last|this) (?:instruction|rule)\b"
)


def _any_of(phrases: str) -> str:
    return "|".join(re.escape(phrase) for phrase in phrases.split("|"))


def _other(words: _Words, *, spaces: bool) -> tuple[re.Pattern[str], ...]:
    start, end = (r"(?<!\w)", r"(?!\w)") if spaces else ("", "")
    lasting, answering = (
        rf"{start}(?:{_any_of(words.lasting)}){end}",
        rf"{start}(?:{_any_of(words.answering)})",
    )
    return (
        re.compile(rf"{lasting}.*{answering}|{answering}.*{lasting}"),
        re.compile(rf"{start}(?:{_any_of(words.preferring)}){end}"),
        re.compile(rf"{start}(?:{_any_of(words.revoking)}){end}"),
    )


@cache
def _others() -> list[tuple[re.Pattern[str], ...]]:
    """The patterns of the other languages, which take 10 ms to compile."""
    return [
        *(_other(words, spaces=True) for words in _LANGUAGES),
        *(_other(words, spaces=False) for words in _LANGUAGES_WITHOUT_SPACES),
    ]


_ENGLISH_PARTS: Final = (
    "always|never|prefer|rather|whenever|every time|everytime|each time|any time|anytime|when i |from "
    "now|from here|from this|forward|future|the rest of|call me|stop |quit |avoid |don't ever|do not "
    "ever|it when you|i like |i love |no longer|no need|anymore|any more|any "
    "longer|forget|ignore|cancel|drop |disregard|undo |keep all|keep your|keep the|your answer|your "
    "repl|your response|your explanation|your message|all answers|every answer|each answer|all repl|every"
    " reply|each reply|all response|every response|each response|don't have|don't need|do not have|do not"
    " need|needn't"
)
_ENGLISH_MARKS: Final = tuple(_ENGLISH_PARTS.split("|"))
"""Parts of all English phrases."""


def _marks(words: _Words) -> tuple[str, ...]:
    return tuple("|".join((words.lasting, words.preferring, words.revoking)).split("|"))


_OTHER_MARKS: Final = [_marks(words) for words in (*_LANGUAGES, *_LANGUAGES_WITHOUT_SPACES)]
_EVERY_MARK: Final = tuple(
    dict.fromkeys([*_ENGLISH_MARKS, *(mark for marks in _OTHER_MARKS for mark in marks)])
)


_SHORTEST_MARK: Final = 4


def _beginning(phrase: str) -> str:
    """The beginning of the longest word of a phrase; its ending may be removed as that of a term."""
    words: list[str] = re.findall(r"\w+", phrase)
    word = max(words, key=len)
    return word[: max(len(word) - 2, _SHORTEST_MARK)]


_BEGINNINGS: Final = tuple(
    dict.fromkeys(
        _beginning(mark)
        for mark in (*_ENGLISH_MARKS, *(mark for marks in _OTHER_MARKS[: len(_LANGUAGES)] for mark in marks))
    )
)
_PARTS: Final = tuple(mark for marks in _OTHER_MARKS[len(_LANGUAGES) :] for mark in marks)
SEARCHED: Final = (
    "always never prefer whenever forward future anymore stop forget ignore longer immer niemals siempre "
    "toujours jamais désormais sempre altijd voortaan zawsze nigdy всегда никогда впредь "
    "دائما selalu 항상 언제나"
)
"""Words of most directives, for a search in all conversations of an owner."""


def marks(term: str) -> bool:
    """Whether a message that contains a term may contain a directive.

    Example:
        >>> marks("alway"), marks("bread")
        (True, False)
    """
    return term.startswith(_BEGINNINGS) or (not term.isascii() and any(part in term for part in _PARTS))


@cache_of_texts(4096)
def directives_in(text: str) -> Sequence[Directive]:
    """The standing instructions and preferences in a human message, and what it takes back.

    Cost: 10 to 30 µs for most messages.

    Example:
        >>> [one.kind for one in directives_in("Always name your sources. I prefer window seats.")]
        ['instruction', 'preference']
        >>> directives_in("Do you always answer so fast?"), directives_in("I always forget my keys.")
        ([], [])
        >>> [one.revokes for one in directives_in("You don't have to name sources anymore.")]
        [True]
    """
    if len(text) > 2 * EDGE:
        text = f"{text[:EDGE]}\n{text[-EDGE:]}"
    return list(_directives(text)) if _has(_plain(text), _EVERY_MARK) else []


def is_conditional(text: str) -> bool:
    """Whether a message has instructions, and all of them hold for requests of one kind alone.

    Example:
        >>> is_conditional("Always name doses when I ask about drugs."), is_conditional("Always use French.")
        (True, False)
    """
    found = [one for one in directives_in(text) if one.kind == "instruction"]
    return bool(found) and all(_CONDITION.search(_plain(one.text)) for one in found)


def _plain(text: str) -> str:
    return text.lower().replace("\u2019", "'")


def _has(plain: str, marks: Sequence[str]) -> bool:
    return any(mark in plain for mark in marks)


def _directives(text: str) -> Iterator[Directive]:
    for sentence in _SENTENCE.split(text):
        said = sentence.strip()
        plain = _plain(said).lstrip("-*\u2022> ")
        if not plain or len(plain) > LONGEST or not _has(plain, _EVERY_MARK):
            continue
        others = [
            patterns for patterns, marks in zip(_others(), _OTHER_MARKS, strict=True) if _has(plain, marks)
        ]
        is_question = plain.endswith(_QUESTION)
        instructs, prefers, revokes = (
            english.search(plain) is not None or any(one[place].search(plain) is not None for one in others)
            for place, english in enumerate((_INSTRUCTIONS, _PREFERENCES, _REVOCATIONS))
        )
        instructs &= not is_question or _ASKS_FOR_IT.search(plain) is not None
        revokes &= not is_question
        if instructs or prefers or revokes:
            asks = instructs or revokes or _ABOUT_ANSWERS.search(plain) is not None
            yield Directive(said, "instruction" if asks else "preference", revokes)


def revokes_all(text: str) -> bool:
    """Whether a revocation names no subject: "forget my instructions", "ignore that rule"."""
    return _ALL_OF_THEM.search(text.lower()) is not None

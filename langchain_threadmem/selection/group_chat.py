"""Group chats: the choice of the message that a message of several people continues.

In a group chat most messages have no answer of the bot, so human messages are candidates too. Small networks
score the candidates by their speakers, by the names in the texts and by shared words.
`training/fit_irc.py` fits the networks on logs of a help channel and makes `group_model.npz` beside this
module, which contains arrays only (no pickle).
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import takewhile
from operator import attrgetter
from typing import Any

import numpy as np

from langchain_threadmem.common import forking
from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.common.ranges import ENDLESS
from langchain_threadmem.messages.text import one_line
from langchain_threadmem.selection.choice import FIRST, Choice
from langchain_threadmem.selection.features.cues import MESSAGE_CUES
from langchain_threadmem.selection.features.structure import Table
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import Networks, networks_in, read_arrays, reader, score, softmax
from langchain_threadmem.selection.turn_ends import Speech, TurnEnd, TurnIndex

FILE = "group_model.npz"
WINDOW = 100
"""The number of latest messages that a message may continue."""
NEAR = 25
"""The number of latest messages that are always candidates; earlier candidates are related to the message."""
RELATED = 0.15
"""The cosine of the terms of two related messages."""
LEAST_NAME = 3
"""The minimum number of characters of a name without a sign, and of the beginning of a name."""
NOBODY = -1
_NAME = re.compile(r"@?[\w\[\]\\`^{}|-]+")
_ADDRESS = re.compile(r"\s*(?:(@?[\w\[\]\\`^{}|-]+)\s*[:,;>]+|(@[\w\[\]\\`^{}|-]+))\s*")
CUES = (*MESSAGE_CUES, "link")
_GREETING, _QUESTION = CUES.index("greeting"), CUES.index("question")


class _GroupThread:
    """A thread: the place of its last message, its size and its speakers."""

    def __init__(self) -> None:
        self.last = self.size = 0
        self.speakers: set[int] = set()


@dataclass(slots=True, eq=False)
class GroupMessage:
    """A message of a group chat. People are numbers, in the order in which they first spoke.

    Attributes:
        id: Node id of the message.
        speaker: The author.
        addressed: The person with whose name the message begins, or -1.
        named: The other people whose names the message contains.
        terms: The weight of each term; the sum of the squares is 1.
        cues: A number for each of `CUES`.
        place: The number of messages before it.
        parent: Place of the message that it continues; its own place at a root, and -1 if the message is
            older than the latest messages.
        parent_speaker: Speaker of that message.
        parent_terms: Terms of that message.
        thread: Its thread.
        replies: The number of messages that continue it.
        heard: The authors of these messages.
    """

    id: int
    speaker: int
    addressed: int
    named: frozenset[int]
    terms: Mapping[str, float]
    cues: tuple[float, ...]
    place: int
    parent: int = NOBODY
    parent_speaker: int = NOBODY
    parent_terms: Mapping[str, float] = field(default_factory=dict)
    thread: _GroupThread = field(default_factory=_GroupThread)
    replies: int = 0
    heard: set[int] = field(default_factory=set)


_NUMBERS = attrgetter(
    *("place", "speaker", "addressed", "parent", "parent_speaker", "replies", "thread.size", "thread.last")
)


class GroupChat:
    """The messages of a group chat, each with its features and its thread."""

    def __init__(self) -> None:
        self.lock = forking.lock()
        self._people: dict[tuple[bool, str], int] = {}
        self._names: dict[str, set[int]] = {}
        """The people with a name, or with a part of a name of several words."""
        self._latest: deque[GroupMessage] = deque(maxlen=WINDOW)
        self._threads: dict[int, _GroupThread] = {}
        self._speeches: dict[int, Speech] = {}

    def __len__(self) -> int:
        return len(self._speeches)

    def add(self, speeches: Iterable[Speech], reads: Reader) -> None:
        """Add messages, in the order of time."""
        for speech in speeches:
            speaker = self._person(speech)
            self._people.setdefault((speech.is_answer, _key(speech.speaker)), speaker)
            for name in _names(speech.speaker):
                self._names.setdefault(name, set()).add(speaker)
            message = self._read(speech, reads)
            above = next((earlier for earlier in self._latest if earlier.id == speech.previous), None)
            if speech.is_answer and above is not None and message.addressed == NOBODY:
                # An answer of the bot addresses the author of the message before it.
                message.addressed, message.named = above.speaker, message.named | {above.speaker}
            self._place(message, speech.previous, above)
            self._speeches[speech.id] = speech

    def choose(self, turn_ends: Sequence[TurnEnd], speaker: str, text: str, reads: Reader) -> Choice:
        """The choice for a new message; see `choose_in_group`."""
        latest, rows = self.describe(Speech(0, 0, None, speaker, text), reads)
        ids = {end.human_id: end.id for end in turn_ends} | {end.id: end.id for end in turn_ends}
        ends = [ids.get(self._speeches[message.id].human, ids.get(message.id)) for message in latest]
        indices = [row for row, end in enumerate(ends) if end is not None]
        if not indices:
            return FIRST
        chances = softmax(score(networks(), rows[[*indices, len(latest)]].astype(float)))
        by_end: dict[int | None, float] = {None: float(chances[-1])}
        for row, chance in zip(indices, chances.tolist(), strict=False):
            by_end[ends[row]] = by_end.get(ends[row], 0.0) + chance
        # Of equally likely candidates the latest is first.
        ranked = dict(sorted(by_end.items(), key=lambda item: (-item[1], -(item[0] or 0))))
        return Choice(self._reason(next(iter(ranked)), turn_ends, speaker), ranked)

    def _reason(self, best: int | None, turn_ends: Sequence[TurnEnd], speaker: str) -> str:
        if best is None:
            return "new topic: nothing fits well enough"
        end = next(end for end in turn_ends if end.id == best)
        speech = self._speeches.get(end.human_id or end.id)
        name = "" if speech is None or speech.is_answer else speech.speaker
        text = repr(one_line(end.human or end.answer, 40))
        return f"continues {text}" if _key(name) == _key(speaker) else f"answers {name or 'somebody'}: {text}"

    def describe(self, speech: Speech, reads: Reader) -> tuple[list[GroupMessage], Floats]:
        """The candidates of a message, oldest first, and their features.

        Returns:
            Earlier messages; a row of `FEATURES` for each and, at last, for a new root.
        """
        message = self._read(speech, reads)
        return _described(message, list(self._latest))

    def _person(self, speech: Speech) -> int:
        return self._people.get((speech.is_answer, _key(speech.speaker)), len(self._people))

    def _read(self, speech: Speech, reads: Reader) -> GroupMessage:
        speaker, text, stop_words = self._person(speech), speech.text, reads.phrases.stop_words
        addressed, address = NOBODY, _ADDRESS.match(text)
        if address:
            addressed = self._person_named(address[1] or address[2])
        elif first := _NAME.match(text.lstrip()):
            addressed = self._person_named(first[0], stop_words)
        named = {self._person_named(name, stop_words) for name in _NAME.findall(text)} | {addressed}
        if address and addressed != NOBODY:
            text = text[address.end() :]
        features = reads.message(text)
        length = float(np.sqrt(features.rarity @ features.rarity)) or 1.0
        terms = dict(zip(features.terms, (features.rarity / length).tolist(), strict=True))
        cues = (*features.cues, float("http" in text))
        return GroupMessage(
            speech.id, speaker, addressed, frozenset(named - {speaker, NOBODY}), terms, cues, len(self)
        )

    def _person_named(self, name: str, unless: Collection[str] | None = None) -> int:
        """The person with a name, if there is exactly one; else `NOBODY`.

        A name without a sign is not a short or common word; a name with a sign may be abbreviated.
        """
        is_marked, name = unless is None or name.startswith("@"), name.removeprefix("@").casefold()
        if not is_marked and (len(name) < LEAST_NAME or name in (unless or ())):
            return NOBODY
        people = self._names.get(name, set())
        if not people and is_marked and len(name) >= LEAST_NAME:
            people = {
                person
                for full_name, owners in self._names.items()
                if full_name.startswith(name)
                for person in owners
            }
        return next(iter(people)) if len(people) == 1 else NOBODY

    def _place(self, message: GroupMessage, previous: int | None, above: GroupMessage | None) -> None:
        """Put a message in its thread; `above` is the previous message, if it is one of the latest."""
        if previous is None:
            message.parent, message.parent_speaker = message.place, message.speaker
        else:
            message.thread = self._threads.get(previous, message.thread)
        if above is not None:
            above.replies += 1
            above.heard.add(message.speaker)
            message.parent, message.parent_speaker = above.place, above.speaker
            message.parent_terms = above.terms
            message.thread.speakers.add(above.speaker)
        thread = self._threads[message.id] = message.thread
        thread.last, thread.size = message.place, thread.size + 1
        thread.speakers.add(message.speaker)
        self._latest.append(message)


def choose_in_group(
    turns: TurnIndex,
    turn_ends: Sequence[TurnEnd],
    speaker: str | None,
    text: str,
    reads: Reader | None = None,
    before: int = ENDLESS,
) -> Choice:
    """Choose the turn of a group chat that a new message continues, or a new root.

    Args:
        turns: The index of the conversation.
        turn_ends: The turns that the message may continue; only those of the latest 100 messages count.
        speaker: `name` of the message.
        text: Text of the message.
        reads: The reader of the texts; by default a new reader for English.
        before: Number of the first node that is not before the message.

    Cost: 1 ms; the first call for an index reads all messages, 0.1 ms for each.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langchain_threadmem.tree.node import ConversationNode
        >>> index = TurnIndex()
        >>> index.add([ConversationNode(1, HumanMessage("How do I mount a disk?", name="ada"))])
        >>> index.add([ConversationNode(2, HumanMessage("Has anybody seen my umbrella?", name="bob"))])
        >>> choice = choose_in_group(index, index.ends(), "eve", "ada: with the command mount")
        >>> choice.parent_id, choice.reason
        (1, "answers ada: 'How do I mount a disk?'")
    """
    chat, reads = turns.derived(GroupChat), reads or reader()
    with chat.lock:
        chat.add(takewhile(lambda speech: speech.id < before, turns.speeches[len(chat) :]), reads)
        return chat.choose(turn_ends, speaker or "", text, reads)


def _key(name: str) -> str:
    return name.strip().casefold()


def _names(name: str) -> set[str]:
    """A name and its parts: "Ada" also names "Ada Lovelace"."""
    whole = _key(name)
    parts = {part for part in _NAME.findall(whole) if len(part) >= LEAST_NAME}
    return {part.removeprefix("@") for part in parts | {whole}} - {""}


def _described(message: GroupMessage, latest: Sequence[GroupMessage]) -> tuple[list[GroupMessage], Floats]:
    """The candidates among the latest messages, and their features."""
    if not latest:
        return [], np.zeros((1, 0), np.float32)
    place, speaker, addressed = message.place, message.speaker, message.addressed
    all_speakers = np.array([earlier.speaker for earlier in latest])
    is_mine, is_named = all_speakers == speaker, np.isin(all_speakers, list(message.named))
    calls_me = np.array([speaker in earlier.named for earlier in latest])
    all_alike = np.array([_cosine(message.terms, earlier.terms) for earlier in latest])
    all_between = np.arange(len(latest))[::-1]
    near = all_between < NEAR
    chosen = np.flatnonzero(near | is_mine | is_named | calls_me | (all_alike > RELATED))

    own, calls = np.flatnonzero(is_mine), np.flatnonzero(calls_me)
    my_last = latest[own[-1]] if len(own) else None
    my_thread = my_last.thread if my_last else None
    after_mine = own[-1] + 1 if len(own) else 0
    theirs = np.flatnonzero(all_speakers == addressed) if addressed != NOBODY else own[:0]
    their_thread = latest[theirs[-1]].thread if len(theirs) else None

    candidates = [latest[at] for at in chosen.tolist()]
    at, speakers, addressees, parents, parent_speakers, replies, size, last = np.array(
        [_NUMBERS(earlier) for earlier in candidates]
    ).T
    thread_speakers = np.array([len(earlier.thread.speakers) for earlier in candidates])
    cues = np.array([earlier.cues for earlier in candidates])
    names_somebody = np.array([bool(earlier.named) for earlier in candidates])
    heard_me = np.array([speaker in earlier.heard for earlier in candidates])
    in_my_thread = np.array([earlier.thread is my_thread for earlier in candidates])
    in_their_thread = np.array([earlier.thread is their_thread for earlier in candidates])
    with_me = np.array([speaker in earlier.thread.speakers for earlier in candidates])
    with_them = np.array([not message.named.isdisjoint(earlier.thread.speakers) for earlier in candidates])
    rank, between, alike = _rank(all_speakers.tolist())[chosen], all_between[chosen], all_alike[chosen]
    mine, named, names_me, last_of_speaker = is_mine[chosen], is_named[chosen], calls_me[chosen], rank == 0
    since, is_root, is_last = chosen >= after_mine, parents == at, last == at
    partner = speakers == (my_last.addressed if my_last and my_last.addressed != NOBODY else NOBODY - 1)
    caller = speakers == (all_speakers[calls[-1]] if len(calls) else NOBODY - 1)
    to_them = addressed if addressed != NOBODY else NOBODY - 1
    back = place - at
    each: dict[str, Any] = {
        "distance": np.log(back),
        "between": np.log1p(between),
        "near": 1 / back,
        **{f"back_{n}": between == n for n in range(4)},
        "mine": mine,
        "named": named,
        "addressed": speakers == to_them,
        "names_me": names_me,
        "addresses_me": addressees == speaker,
        "names_others": names_somebody & ~names_me,
        "names_same": addressees == to_them,
        "names_nobody": ~names_somebody,
        "rank": np.log1p(rank),
        "last_of_speaker": last_of_speaker,
        "last_of_mine": mine & last_of_speaker,
        "last_of_named": named & last_of_speaker,
        "latest_call": chosen == (calls[-1] if len(calls) else NOBODY),
        "call_since": names_me & since,
        "after_mine": since,
        "mine_since": np.log1p(is_mine[::-1].cumsum()[::-1][chosen] - mine),
        "partner": partner,
        "caller": caller,
        "last_of_partner": partner & last_of_speaker,
        "last_of_caller": caller & last_of_speaker,
        "alike": alike,
        "most_alike": (alike == alike.max()) & (alike > 0),
        "alike_before": np.array([_cosine(message.terms, earlier.parent_terms) for earlier in candidates]),
        "both_greet": cues[:, _GREETING] * message.cues[_GREETING],
        "open_question": cues[:, _QUESTION] * (replies == 0) * ~mine,
        "replies": np.log1p(replies),
        "heard_me": heard_me,
        "starts": is_root,
        "answers_me": parent_speakers == speaker,
        "answers_named": np.isin(parent_speakers, list(message.named)),
        "answers_own": (parent_speakers == speakers) & ~is_root,
        "my_thread": in_my_thread,
        "their_thread": in_their_thread,
        "in_mine": with_me,
        "in_theirs": with_them,
        "last_of_thread": is_last,
        "last_of_my_thread": is_last & in_my_thread,
        "thread_size": np.log(size),
        "thread_speakers": np.log1p(thread_speakers),
        "thread_since": np.log(place - last),
    }
    common: dict[str, Any] = {
        **dict(zip(CUES, message.cues, strict=True)),
        "named": len(message.named),
        "addressed": addressed != NOBODY,
        "named_is_here": is_named.any(),
        "speaker_is_new": my_last is None,
        "my_silence": math.log(place - my_last.place if my_last else WINDOW),
        "mine_before": math.log1p(len(own)),
        "i_spoke_last": is_mine[-1],
        "called_since": calls_me[after_mine:].any(),
        "speakers_since": math.log1p(len(set(all_speakers[after_mine:].tolist()))),
        "messages_since": math.log1p(len(latest) - after_mine),
        "best_alike": alike.max(),
        "speakers": math.log1p(len(set(all_speakers.tolist()))),
    }
    rows = np.zeros((len(candidates) + 1, len(each) + cues.shape[1] + len(common) + 1), np.float32)
    rows[:-1, : len(each)] = np.array([*each.values()]).T
    rows[:-1, len(each) : len(each) + cues.shape[1]] = cues
    rows[:, len(each) + cues.shape[1] : -1] = [*common.values()]
    rows[-1, -1] = 1
    return candidates, rows


def _cosine(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    if first.keys().isdisjoint(second):
        return 0.0
    return sum(first[term] * second[term] for term in first.keys() & second.keys())


def _rank(speakers: Sequence[int]) -> Table:
    """For each message the number of later messages of its speaker."""
    counts: Counter[int] = Counter()
    ranks = []
    for speaker in reversed(speakers):
        ranks.append(counts[speaker])
        counts[speaker] += 1
    return np.array(ranks[::-1], float)


@cache
def networks() -> Networks:
    """The networks; the first call reads the file."""
    return networks_in(read_arrays(files(__package__).joinpath(FILE)))

"""Who answers whom in a busy channel: links of a selector that may use names, beside two simple rules.

The logs are of Ubuntu's help channel (Kummerfeld et al., "A Large-Scale Corpus for Conversation
Disentanglement", ACL 2019): each message links to the messages that it answers, or to itself if it starts a
conversation. A link to itself counts as a link. Percent of links, over the annotated messages of all logs:

- precision: of the links given, those that people gave; recall: of the links people gave, those found; F1.
- The selector gives one link to each message. It is a small listwise network over `features`, fitted on
  `irc_train.jsonl` at each run, and runs free: it is never shown the true links of the log it reads.
- previous: each message answers the one before it. named: each answers the last message of the user that it
  addresses by name, or else the one before it. Notices of the server start a conversation for all three.

    python -m training.fit_irc [--data ../shared/data] [--file irc_dev.jsonl] [--limit 5]

The data is not part of this repository; nothing is measured when it is not there.
"""

# ruff: noqa: SIM905 - a list of words is read best as text

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import Line, duration, show
from langchain_threadmem.index.language import words
from langchain_threadmem.summaries.text_rank import STOP_WORDS
from langchain_threadmem.threads.features.learned_words import Floats
from langchain_threadmem.threads.model import Networks
from training.learn import Recipe, State, fit_networks

DATA = Path("../shared/data")
FILE = "irc_dev.jsonl"
TRAIN = "irc_train.jsonl"
AIM = 72.3
"""F1 of the feed-forward model of Kummerfeld et al. on their test logs."""
WINDOW = 100
"""How many messages back a message may answer."""
NEAR = 25
"""Of these, the last so many are always candidates, others only if anything relates them to the message."""
RELATED = 0.15
"""The cosine of words from which on two messages are related."""
NETWORKS = 3
FIRST = Recipe(hidden=24, epochs=6, drop=0.05)
LAST = Recipe(hidden=48, epochs=12, drop=0.05)
NOBODY = -1

_NOTICE = re.compile(
    r"^=== (\S.*\[[^\]]*\] +has (joined|left|quit)|\S+ is now known as|mode/|topic)", re.IGNORECASE
)
_RENAMED = re.compile(r"^=== (\S+) is now known as (\S+)")
_NICK = re.compile(r"[\w\[\]\\`^{}|-]+")
_ADDRESS = re.compile(r"^\s*@?([\w\[\]\\`^{}|-]+)\s*[:,;>]")
GREETINGS = frozenset(["hi", "hello", "hey", "hiya", "howdy", "yo", "greetings", "morning", "evening"])
REPLIES = frozenset(
    "yes yeah yep yup no nope nah ok okay right sure true thanks thank thx ty np cheers cool great ah oh hmm "
    "lol haha well sorry because maybe probably exactly indeed and but so then that it you".split()
)
ASKING = frozenset(
    "how what where why who which when can could does do is are anyone anybody someone".split()
)
CUES = ("question", "greeting", "reply", "asking", "link", "length", "action", "capital")


class Log:
    """A log as the selector reads it: who speaks, who is named, what is said, message by message.

    What is kept of a message depends on what came before it alone. Users are numbers; a user who takes
    another name keeps the number. What somebody does (`=== ann waves`) counts as said by that user.
    """

    def __init__(self, row: Mapping[str, Any], rarity: Mapping[str, float]) -> None:
        messages = row["messages"]
        self.name: str = row["id"]
        self.begin: int = row["annotated_from"]
        at = {message["id"]: i for i, message in enumerate(messages)}
        self.links = {(at[child], at[parent]) for child, parent in row["links"] if at[child] >= self.begin}
        count = len(messages)
        self.notice = np.zeros(count, bool)
        self.user = np.full(count, NOBODY)
        self.addressed = np.full(count, NOBODY)
        self.named: list[frozenset[int]] = []
        self.words: list[dict[str, float]] = []
        self.cues = np.zeros((count, len(CUES)), np.float32)
        self._users: dict[str, int] = {}
        for i, message in enumerate(messages):
            self._read(i, message, rarity)

    def __len__(self) -> int:
        return len(self.user)

    def _read(self, i: int, message: Mapping[str, Any], rarity: Mapping[str, float]) -> None:
        text, action = message["text"], message["system"]
        self.notice[i] = action and _NOTICE.match(text) is not None
        if renamed := _RENAMED.match(text):
            old, new = renamed[1].lower(), renamed[2].lower()
            self._users[new] = self._users.setdefault(old, len(self._users))
        if self.notice[i]:
            self.named.append(frozenset())
            self.words.append({})
            return
        if action:
            nick, _, text = text.removeprefix("===").strip().partition(" ")
        else:
            nick = message["user"]
        speaker = self._users.setdefault(nick.lower(), len(self._users))
        self.user[i] = speaker
        if address := _ADDRESS.match(text):
            self.addressed[i] = self._whom(address[1].lower())
        mentioned = {
            self._users[nick]
            for nick in map(str.lower, _NICK.findall(text))
            if nick in self._users and nick not in STOP_WORDS and len(nick) > 2
        }
        first = text.split()[:1]
        if self.addressed[i] == NOBODY and first and first[0].lower() in self._users and len(first[0]) > 2:
            self.addressed[i] = self._users[first[0].lower()]
        if self.addressed[i] != NOBODY:
            mentioned.add(int(self.addressed[i]))
        self.named.append(frozenset(mentioned - {speaker}))
        said = words(text)
        weights = {word: rarity.get(word, rarity[""]) for word in said if word not in STOP_WORDS}
        length = sum(weight * weight for weight in weights.values()) ** 0.5
        self.words.append({word: weight / length for word, weight in weights.items()})
        opening = set(said[:2]) if self.addressed[i] == NOBODY else set(said[1:3])
        self.cues[i] = (
            "?" in text,
            bool(opening & GREETINGS),
            bool(opening & REPLIES),
            bool(opening & ASKING),
            "http" in text,
            log1p(len(said)),
            action,
            text[:1].isupper(),
        )

    def _whom(self, nick: str) -> int:
        """Who is addressed: by a name, or by the beginning of the only name that begins so."""
        if nick in self._users:
            return self._users[nick]
        if len(nick) < 3:
            return NOBODY
        found = {user for name, user in self._users.items() if name.startswith(nick)}
        return found.pop() if len(found) == 1 else NOBODY


def rarities(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """How much a word tells, by the number of messages that hold it; under "" that of any other word."""
    texts = [message["text"] for row in rows for message in row["messages"] if not message["system"]]
    held = Counter(word for text in texts for word in set(words(text)))
    return {word: log(len(texts) / count) for word, count in held.items()} | {"": log(len(texts))}


class Channel:
    """What was decided so far in a log: who answers what, and the conversations that follow from it."""

    def __init__(self, log_: Log) -> None:
        self.log = log_
        self.parent = np.full(len(log_), NOBODY)
        self.thread = np.arange(len(log_))
        self.replies = np.zeros(len(log_))
        self.heard: dict[int, set[int]] = defaultdict(set)
        self.last: dict[int, int] = {}
        self.size = np.ones(len(log_))
        self.speakers: dict[int, set[int]] = defaultdict(set)

    def place(self, i: int, parents: Collection[int]) -> None:
        """Note what a message answers: itself, or earlier messages."""
        user = int(self.log.user[i])
        before = [parent for parent in parents if parent < i]
        for parent in before:
            self.replies[parent] += 1
            self.heard[parent].add(user)
        self.parent[i] = max(before, default=i)
        thread = self.thread[i] = self.thread[self.parent[i]]
        self.size[thread] += bool(before)
        self.last[thread] = i
        self.speakers[thread].add(user)
        if before:
            self.speakers[thread].add(int(self.log.user[self.parent[i]]))


def features(channel: Channel, i: int) -> tuple[NDArray[np.intp], Floats]:
    """The candidates of a message, and a row for each of them; the last row is to start a conversation.

    Args:
        channel: What was decided about the messages before.
        i: The message, an index into the log.

    Returns:
        Indexes of earlier messages, oldest first, of shape (candidates,); columns, (candidates + 1, columns).
    """
    log_ = channel.log
    speaker, addressed, named = int(log_.user[i]), int(log_.addressed[i]), log_.named[i]
    at = np.arange(max(0, i - WINDOW), i)
    at = at[~log_.notice[at]]
    user = log_.user[at]
    mine = user == speaker
    is_named = np.isin(user, list(named))
    names_me = np.array([speaker in log_.named[j] for j in at], bool)
    alike = np.array([_cosine(log_.words[i], log_.words[j]) for j in at])
    between = np.arange(len(at))[::-1]
    kept = (between < NEAR) | mine | is_named | names_me | (alike > RELATED)

    own = at[mine]
    my_last = int(own[-1]) if len(own) else NOBODY
    partner = int(log_.addressed[my_last]) if own.size else NOBODY
    calls = at[names_me]
    caller = int(log_.user[calls[-1]]) if calls.size else NOBODY
    rank = _rank(user)
    threads = channel.thread[at]
    last_of_thread = np.array([channel.last.get(thread, thread) for thread in threads], int)
    my_thread = channel.thread[my_last] if own.size else NOBODY
    theirs = at[user == addressed] if addressed != NOBODY else own[:0]
    their_thread = channel.thread[theirs[-1]] if theirs.size else NOBODY
    parent = channel.parent[at]
    parent_user = np.where(parent != NOBODY, log_.user[parent], NOBODY)
    in_mine = np.array([speaker in channel.speakers[thread] for thread in threads], bool)
    in_theirs = np.array([bool(named & channel.speakers[thread]) for thread in threads], bool)
    their_named = log_.addressed[at]
    other_named = np.array([bool(log_.named[j]) for j in at], bool) & ~names_me
    heard_me = np.array([speaker in channel.heard[j] for j in at], bool)
    after_mine = at > my_last
    cues = dict(zip(CUES, log_.cues[at].T, strict=True))
    heard = dict(zip(CUES, log_.cues[i].tolist(), strict=True))
    gap = i - at

    each: dict[str, Any] = {
        "distance": np.log(gap),
        "between": np.log1p(between),
        "near": 1 / gap,
        **{f"back_{n}": between == n for n in range(4)},
        "mine": mine,
        "named": is_named,
        "addressed": (user == addressed) & (addressed != NOBODY),
        "names_me": names_me,
        "addresses_me": their_named == speaker,
        "names_other": other_named,
        "names_same": (their_named == addressed) & (addressed != NOBODY),
        "names_nobody": ~other_named & ~names_me,
        "rank": np.log1p(rank),
        "last_of_user": rank == 0,
        "last_of_mine": mine & (rank == 0),
        "last_of_named": is_named & (rank == 0),
        "latest_call": at == (calls[-1] if calls.size else NOBODY),
        "call_since": names_me & after_mine,
        "after_mine": after_mine,
        "mine_since": np.log1p(mine[::-1].cumsum()[::-1] - mine),
        "partner": (user == partner) & (partner != NOBODY),
        "caller": (user == caller) & (caller != NOBODY),
        "last_of_partner": (user == partner) & (partner != NOBODY) & (rank == 0),
        "last_of_caller": (user == caller) & (caller != NOBODY) & (rank == 0),
        "alike": alike,
        "most_alike": (alike == alike.max(initial=0.0)) & (alike > 0),
        "alike_before": np.array(
            [
                _cosine(log_.words[i], log_.words[p]) if p not in (NOBODY, j) else 0
                for j, p in zip(at, parent, strict=True)
            ]
        ),
        "question": cues["question"],
        "greeting": cues["greeting"],
        "reply": cues["reply"],
        "asking": cues["asking"],
        "link": cues["link"],
        "length": cues["length"],
        "action": cues["action"],
        "both_greet": cues["greeting"] * heard["greeting"],
        "open_question": cues["question"] * (channel.replies[at] == 0) * ~mine,
        "replies": np.log1p(channel.replies[at]),
        "heard_me": heard_me,
        "starts": parent == at,
        "answers_me": parent_user == speaker,
        "answers_named": np.isin(parent_user, list(named)),
        "answers_own": (parent_user == user) & (parent != at),
        "my_thread": threads == my_thread,
        "their_thread": threads == their_thread,
        "in_mine": in_mine,
        "in_theirs": in_theirs,
        "last_of_thread": last_of_thread == at,
        "last_of_my_thread": (last_of_thread == at) & (threads == my_thread),
        "thread_size": np.log(channel.size[threads]),
        "thread_speakers": np.array([log1p(len(channel.speakers[thread])) for thread in threads]),
        "thread_since": np.log(i - np.minimum(last_of_thread, i - 1)),
    }
    whole = {
        **{f"heard_{name}": value for name, value in heard.items()},
        "heard_named": len(named),
        "heard_addressed": addressed != NOBODY,
        "named_is_here": bool(is_named.any()),
        "i_am_new": not own.size,
        "my_silence": log(i - my_last) if own.size else log(WINDOW),
        "mine_before": log1p(mine.sum()),
        "i_spoke_last": bool(mine[-1:].any()),
        "called_since": bool((names_me & after_mine).any()),
        "speakers_since": log1p(len(set(user[after_mine].tolist()))),
        "said_since": log1p(after_mine.sum()),
        "best_alike": alike.max(initial=0.0),
        "speakers": log1p(len(set(user.tolist()))),
    }
    rows = np.zeros((kept.sum() + 1, len(each) + len(whole) + 1), np.float32)
    for column, values in enumerate(each.values()):
        rows[:-1, column] = values[kept]
    rows[:, len(each) : -1] = list(whole.values())
    rows[-1, -1] = 1
    return at[kept], rows


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(weight * other[word] for word, weight in one.items() if word in other)


def _rank(user: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many later messages are of the same user."""
    seen: Counter[int] = Counter()
    rank = np.zeros(len(user), int)
    for i in range(len(user) - 1, -1, -1):
        rank[i] = seen[int(user[i])]
        seen[int(user[i])] += 1
    return rank


Choose = Callable[[Channel, int], int]
Links = Collection[tuple[int, int]]
"""Pairs of a message and what it answers, indexes into a log."""


def learned(networks: Networks) -> Choose:
    """The candidate that scores highest."""

    def choose(channel: Channel, i: int) -> int:
        at, rows = features(channel, i)
        return int(np.append(at, i)[networks.scores(rows).mean(0).argmax()])

    return choose


def previous(channel: Channel, i: int) -> int:
    """The message before, whoever said it; notices are passed over."""
    said = np.flatnonzero(~channel.log.notice[:i])
    return int(said[-1]) if said.size else i


def named(channel: Channel, i: int) -> int:
    """The last message of the user that is addressed, or else the message before."""
    theirs = np.flatnonzero(channel.log.user[:i] == channel.log.addressed[i])
    addressed = channel.log.addressed[i] != NOBODY
    return int(theirs[-1]) if addressed and theirs.size else previous(channel, i)


def _start(log_: Log) -> int:
    """Where to begin linking, so that the first message that counts finds something linked before it."""
    return max(0, log_.begin - WINDOW)


def run_free(log_: Log, choose: Choose) -> list[tuple[int, int]]:
    """Link the annotated messages of a log one by one, after a few messages before them to warm up."""
    channel = Channel(log_)
    given = []
    for i in range(_start(log_), len(log_)):
        parent = i if log_.notice[i] else choose(channel, i)
        channel.place(i, [parent])
        if i >= log_.begin:
            given.append((i, parent))
    return given


def states(log_: Log, choose: Choose | None = None) -> list[State]:
    """What to learn from a log, a state for each link of what was said.

    Without `choose` each message is put where it belongs; else where `choose` puts it, right or wrong, so
    that one learns to go on from mistakes.
    """
    right = defaultdict(list)
    for child, parent in sorted(log_.links):
        right[child].append(parent)
    channel = Channel(log_)
    found = []
    for i in range(_start(log_) if choose else log_.begin, len(log_)):
        if log_.notice[i]:
            channel.place(i, [i])
            continue
        if i >= log_.begin:
            at, rows = features(channel, i)
            known = {j: row for row, j in enumerate([*at.tolist(), i])}
            found += [State(rows, known[parent]) for parent in right[i] if parent in known]
        channel.place(i, [choose(channel, i)] if choose else right[i])
    return found


def fit(logs: Sequence[Log]) -> Networks:
    """Fit on where messages belong, then again on what the first fit makes of the same logs."""
    first = fit_networks([state for one in logs for state in states(one)], FIRST, 1)
    own = learned(first)
    return fit_networks([state for one in logs for state in states(one, own)], LAST, NETWORKS, seed=1)


@dataclass
class Found:
    """Links given, links that people gave, and those in both."""

    given: int = 0
    true: int = 0
    both: int = 0

    @classmethod
    def of(cls, logs: Sequence[Log], given: Sequence[Links], *, starts: bool | None = None) -> Found:
        """Count over logs: all links, those that start a conversation, or those that do not."""
        counts = cls()
        for log_, links in zip(logs, given, strict=True):
            guessed, true = (
                {(child, parent) for child, parent in each if starts in (None, child == parent)}
                for each in (links, log_.links)
            )
            counts.given += len(guessed)
            counts.true += len(true)
            counts.both += len(guessed & true)
        return counts

    @property
    def figures(self) -> tuple[float, float, float]:
        """Precision, recall and F1, in percent."""
        both = 100 * self.both
        return both / max(self.given, 1), both / max(self.true, 1), 2 * both / max(self.given + self.true, 1)


def measure(folder: Path, *, file: str = FILE, limit: int | None = None) -> list[Line]:
    """Precision, recall and F1 of the links in the logs of a file, after fitting on the train logs."""
    missing = [name for name in (file, TRAIN) if not (folder / name).exists()]
    if missing:
        return [
            Line("IRC links", "skipped", f"{' and '.join(missing)} not there; name the folder with --data")
        ]
    training, rows = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in (TRAIN, file)
    )
    rarity = rarities(training)
    begin = time.process_time()
    networks = fit([Log(row, rarity) for row in training])
    fitted = time.process_time() - begin
    logs = [Log(row, rarity) for row in rows[:limit]]
    begin = time.process_time()
    ours = [run_free(one, learned(networks)) for one in logs]
    spent = (time.process_time() - begin) / sum(len(one) - _start(one) for one in logs)
    beside = {rule.__name__: [run_free(one, rule) for one in logs] for rule in (previous, named)}
    lines = _figures(logs, ours, beside)
    by_log = [Found.of([one], [given]).figures[2] for one, given in zip(logs, ours, strict=True)]
    lines.append(Line("IRC links, F1 log by log", f"{min(by_log):.1f}-{max(by_log):.1f}", f"of {len(logs)}"))
    return [*lines, Line("IRC, CPU a message", duration(spent), f"fitting took {duration(fitted)}")]


def _figures(logs: Sequence[Log], ours: Sequence[Links], beside: Mapping[str, Sequence[Links]]) -> list[Line]:
    mine = Found.of(logs, ours).figures
    rules = {name: Found.of(logs, given).figures for name, given in beside.items()}
    lines = []
    for n, figure in enumerate(("precision", "recall", "F1")):
        told = ", ".join(f"{name} {figures[n]:.1f}" for name, figures in rules.items())
        bar, holds = (f"≥ {AIM:g}", mine[n] >= AIM) if figure == "F1" else ("", None)
        lines.append(Line(f"IRC links, {figure}", f"{mine[n]:.1f}", told, bar, holds))
    for what, starts in (("starts", True), ("answers", False)):
        precision, recall, f1 = Found.of(logs, ours, starts=starts).figures
        lines.append(Line(f"IRC {what}, F1", f"{f1:.1f}", f"precision {precision:.1f}, recall {recall:.1f}"))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--file", default=FILE, help="which file of it to measure on")
    parser.add_argument("--limit", type=int, help="how many of its logs")
    options = parser.parse_args()
    show(measure(options.data, file=options.file, limit=options.limit))


if __name__ == "__main__":
    main()

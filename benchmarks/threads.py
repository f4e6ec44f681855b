"""The accuracy of thread selection in a semantic memory, compared with three simple rules.

Each conversation interleaves several dialogs. The turns are appended one by one. The memory builds its own
tree, including its wrong choices, and never receives the true parent. The figures are percentages of all
human messages, by variant and as the macro average over the variants:

- parent: the message continues the right answer, or rightly opens a thread.
- returns, branches: the parent figure of messages that go back to another thread, and of messages that
  continue an answer which another message has continued. roots: precision and recall of opened threads,
  without the first thread of each conversation.
- suggested new threads: the opened threads whose probability suffices for `on_select="suggest"`.
- whole thread: every message of the thread that a model would be shown is right, and no message is missing.
- stored tree: the parent figure at the end of each conversation, after the moves of turns because of their
  answers. With general questions: if the answer that a message continues was not shown, the answer to the
  message is a general question, as from a model without this context.
- covered: the question that the message continues and the first 60 words of its answer are shown; the size of
  prompts is counted in words.
- price: of all prompts, if a word at the beginning of a prompt that an earlier prompt of the conversation had
  there costs 0.1 or 0.5 of a word; as a share of the price of sending everything each time. Beside it a
  window of 20 messages, and a list of which all but 20 messages are summarised in 100 words at every 40.
- sorted at once: the parent figure of conversations that are imported as one chain and then sorted
  (`ChatMemory.sort`), each turn by its message and its answer.
- one after another: the parent figure where all conversations of the file are joined to one conversation,
  with hundreds of threads that a message can go back to.

    python -m benchmarks.threads [--data ../shared/data] [--file threads_dev.jsonl] [--words] [--limit 5]

The cascade asks an oracle, in place of a language model, about the messages where an answer is expected to
help most: at most a quarter of the messages. The oracle is right in 100, 95, 90 or 80 of 100 answers;
otherwise it names one of the other candidates at random.

The data is not part of this repository; without it the benchmark is skipped.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from numpy.typing import NDArray
from pydantic import Field

from benchmarks._measure import Line, show, within
from langchain_threadmem import LLMNodeSelector, LocalEmbeddings, MemorySystem, SemanticNodeSelector
from langchain_threadmem.langgraph.routing.events import SUGGEST_AT
from langchain_threadmem.selection.run_selector import COVER
from langchain_threadmem.storage.schema import State
from threadbench.contestants import Nearest, always_last
from threadbench.cost import Cost, covers

DATA = Path("../shared/data")
FILE = "threads_dev.jsonl"
AIM = 86.0
AIM_OF_SUGGESTIONS = 95.0
AIM_WITH_ORACLE = 98.0
ORACLES = (1.0, 0.95, 0.9, 0.8)
"""The shares of right answers of the oracles."""
ASK = 0.25
"""The share of messages that the cascade may ask about."""
AIM_COVERED, AIM_PRICE = 98.5, 0.70
"""The targets for follow-ups whose continued turn is shown, in percent, and for the price at 0.1."""
CACHED = (0.1, 0.5)
"""The prices of a cached word."""
EVERYTHING, WINDOW, SUMMARISED = "everything", "a window of 20 messages", "summarised at 40 messages"
KEPT, LONGEST, SUMMARY = 20, 40, HumanMessage("summary " * 100)
"""The messages that a window and a summary keep, those that are summarised, and a summary of 100 words."""
GENERAL = (
    "I'm not sure what you are referring to. Could you give me a little more detail?",
    "Sure, let me help you with that. What exactly do you need?",
    "Could you tell me a bit more about that?",
    "Of course. Can you say which one you mean?",
)
"""Answers of a model that was not shown the turn which the message continues."""
AIM_SORTED = 3.0
"""The target difference of conversations sorted at once and those grown turn by turn, in points."""
SHARES = (0.9, 0.95, COVER, 0.99)
"""The measured values of the option `cover`."""
QUESTIONS = "with general questions"
RULES = ("always-last", "nearest neighbour", "centroid")
LONG, TIMED = 2000, 100
"""The number of turns of a long conversation, and the number of timed turns after them."""
Selector = Any
_OF_ROOTS = ("roots_chosen", "roots_suggested", "roots_suggested_right")
_OF_MOVES = ("stored", "corrected", "spoiled", "moved")


@dataclass
class Tally:
    """Counts of one variant."""

    messages: int = 0
    right: int = 0
    threads: int = 0
    followed: int = 0
    covered: Counter[float] = field(default_factory=Counter)
    shown: Counter[float] = field(default_factory=Counter)
    price: Counter[tuple[float | str, float]] = field(default_factory=Counter)
    whole: int = 0
    kinds: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    roots_chosen: int = 0
    roots_suggested: int = 0
    roots_suggested_right: int = 0
    stored: int = 0
    corrected: int = 0
    spoiled: int = 0
    moved: int = 0

    def add(self, other: Tally) -> None:
        """Add the counts of another variant."""
        for name in ("messages", "right", "threads", "followed", "whole", *_OF_ROOTS, *_OF_MOVES):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.covered += other.covered
        self.shown += other.shown
        self.price += other.price
        for kind, found in other.kinds.items():
            self.kinds[kind] += found

    @property
    def accuracy(self) -> float:
        return percent(self.right, self.messages)


def percent(part: float, whole: float) -> float:
    return 100 * part / max(whole, 1)


class Remembering(Embeddings):
    """The local model with a cache, which embeds each text once for all memories."""

    def __init__(self) -> None:
        self._model = LocalEmbeddings()
        self.model_name = self._model.model_name
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._model.embed_array(new), strict=True)
        return np.array([self._known[text] for text in texts])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = self.embed_array(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Oracle(BaseChatModel):
    """A model that returns the true parent of the next message with a given probability."""

    right: int | None = None
    reliability: float = 1.0
    chance: random.Random = Field(default_factory=lambda: random.Random(7))

    @property
    def _llm_type(self) -> str:
        return "oracle"

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("the oracle supports structured output only")

    def with_structured_output(self, schema: Any, **options: Any) -> Runnable[Any, Any]:
        return RunnableLambda(
            lambda prompt: {"selected_node_id": self._answer(prompt), "reasoning": "it knows"}
        )

    def _answer(self, prompt: Sequence[BaseMessage]) -> int | None:
        if self.chance.random() < self.reliability:
            return self.right
        shown = [int(found) for found in re.findall(r"^Node (\d+):", prompt[1].text, re.MULTILINE)]
        return self.chance.choice([node for node in (*shown, None) if node != self.right])


def centroid(embeddings: Embeddings, least: float = 0.3, fading: float = 0.03) -> Selector:
    """A rule that continues the thread with the nearest centroid, less a penalty for the age of the thread.

    If the best score is at most `least`, the rule opens a thread.
    """

    def choose(tree: Any, message: BaseMessage) -> int | None:
        leaves = _leaves(tree)
        by_id = {end.id: end for end in tree.turn_ends()}
        asked = np.array(embeddings.embed_query(str(message.content)))
        best, chosen = least, None
        for age, leaf in enumerate(reversed(leaves)):
            texts, end = [], leaf
            while end is not None:
                texts += [end.human, end.answer]
                end = by_id.get(end.previous)
            mean = np.array(embeddings.embed_documents(texts)).mean(0)
            score = float(asked @ mean / np.linalg.norm(mean)) - fading * age
            if score > best:
                best, chosen = score, int(leaf.id)
        return chosen

    return choose


def _leaves(tree: Any) -> list[Any]:
    ends = tree.turn_ends()
    continued = {end.previous for end in ends}
    return [end for end in ends if end.id not in continued]


def turns_of(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The turns: each human message with the answers that follow it."""
    turn: list[dict[str, Any]] = []
    for row in rows:
        if row["role"] == "human" and turn:
            yield turn
            turn = []
        turn.append(row)
    if turn:
        yield turn


def message_of(row: dict[str, Any]) -> BaseMessage:
    """The message that the memory receives: the role and the text, without the thread."""
    return (HumanMessage if row["role"] == "human" else AIMessage)(row["text"])


def play(
    system: MemorySystem,
    conversation: dict[str, Any],
    name: str,
    selector: Selector,
    tally: Tally,
    *,
    asks: bool = False,
) -> None:
    """Append a conversation turn by turn and count right choices."""
    oracle = selector.model if isinstance(selector, LLMNodeSelector) else None
    numbers: dict[Any, int | None] = {None: None}  # node numbers by the ids of the file
    memories = {
        share: system.conversation(f"{name} {conversation['id']}", node_selector=selector, cover=share)
        for share in (0.0, *SHARES)
    }
    memory = memories[COVER]
    ids: dict[int | None, Any] = {None: None}  # ids of the file by node numbers
    true: dict[Any, list[Any]] = {None: []}  # ids from the root to a message, in the true tree
    placed: dict[str | None, tuple[bool, Any]] = {}  # by message ids: choice right, true parent
    known: dict[str | None, Any] = {}  # ids of the file by message ids
    answered: set[Any] = set()
    words = 0
    said: dict[Any, tuple[str, str]] = {}  # question and answer by ids of the file
    history: list[BaseMessage] = []
    costs: dict[float | str, Cost] = defaultdict(Cost)
    last = None
    for position, turn in enumerate(turns_of(conversation["messages"])):
        human, *answers = map(message_of, turn)
        if isinstance(oracle, Oracle):
            oracle.right = numbers[turn[0]["parent"]]
        nodes = memory.append(human)
        views = {share: view.messages for share, view in memories.items()}
        alone = [known[message.id] for message in views[0.0][:-1]]
        parent = turn[0]["parent"]
        covered = {
            share: parent is not None and covers(view[:-1], *said[parent]) for share, view in views.items()
        }
        history.append(human)
        for what, prompt in {**views, **_others(history)}.items():
            costs[what].add(prompt)
        if asks and answers and not (parent is None or covered[COVER]):
            answers, turn = [AIMessage(GENERAL[position % len(GENERAL)])], [turn[0], turn[-1]]
        nodes += memory.append(*answers) if answers else []
        numbers.update((row["id"], node.id) for node, row in zip(nodes, turn, strict=True))
        ids.update((node.id, row["id"]) for node, row in zip(nodes, turn, strict=True))
        history += answers
        chosen = ids[nodes[0].parent_id]
        right = chosen == parent
        kind = (
            "root"
            if parent is None
            else "branch"
            if parent in answered
            else "continue"
            if parent == last
            else "return"
        )
        tally.messages += 1
        tally.right += right
        tally.threads += alone == true[parent]
        placed[nodes[0].message.id] = right, parent
        tally.followed += parent is not None
        known.update((node.message.id, row["id"]) for node, row in zip(nodes, turn, strict=True))
        for share, view in views.items():
            tally.covered[share] += covered[share]
            tally.shown[share] += sum(len(message.text.split()) for message in view[:-1])
        tally.whole += words
        if position:
            tally.kinds[kind].append(right)
            tally.roots_chosen += chosen is None
            placement = nodes[0].placement
            if (
                chosen is None
                and placement is not None
                and dict(placement.chances).get(None, 0) >= SUGGEST_AT
            ):
                tally.roots_suggested += 1
                tally.roots_suggested_right += parent is None
        answered.add(parent)
        for row, message in zip(turn, (human, *answers), strict=True):
            said[row["id"]] = human.text, message.text
            words += len(row["text"].split())
            true[row["id"]] = [*true[parent], row["id"]]
            parent = row["id"]
        last = turn[-1]["id"]
    for what, cost in costs.items():
        for share in CACHED:
            tally.price[what, share] += cost.at(share)
    for node in memory.history:
        if node.state is State.LIVE and node.message.id in placed:
            right, parent = placed[node.message.id]
            is_right = ids[node.parent_id] == parent
            tally.stored += is_right
            tally.corrected += is_right and not right
            tally.spoiled += right and not is_right
            tally.moved += bool(node.placement and node.placement.is_move)


def _others(history: list[BaseMessage]) -> dict[str, list[BaseMessage]]:
    """What a model is shown of a history without threads."""
    summarised = max(len(history) - KEPT, 0) // (LONGEST - KEPT) * (LONGEST - KEPT)
    summary = [SUMMARY] if summarised else []
    return {EVERYTHING: history, WINDOW: history[-KEPT:], SUMMARISED: [*summary, *history[summarised:]]}


def evaluate(
    path: Path,
    selectors: dict[str, Callable[[], Selector]],
    *,
    embeddings: Embeddings | Literal[False] | None = None,
    limit: int | None = None,
) -> dict[str, dict[str, Tally]]:
    """Counts by selector and variant, over at most `limit` conversations of each variant."""
    tallies: dict[str, dict[str, Tally]] = {name: defaultdict(Tally) for name in selectors}
    seen: dict[str, int] = defaultdict(int)
    with MemorySystem(embeddings=embeddings) as system:
        for conversation in conversations_of(path):
            variant = conversation["variant"]
            seen[variant] += 1
            if limit is None or seen[variant] <= limit:
                for name, make in selectors.items():
                    play(
                        system,
                        conversation,
                        name,
                        make(),
                        tallies[name][variant],
                        asks=name == QUESTIONS,
                    )
    return {name: dict(found) for name, found in tallies.items()}


def conversations_of(path: Path) -> Iterator[dict[str, Any]]:
    """The conversations of a file."""
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def sort_at_once(
    path: Path, *, embeddings: Embeddings | Literal[False] | None = None, limit: int | None = None
) -> dict[str, Tally]:
    """Counts by variant, where each conversation is imported as one chain and then sorted."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    seen: Counter[str] = Counter()
    with MemorySystem(embeddings=embeddings) as system:
        for conversation in conversations_of(path):
            tally = tallies[conversation["variant"]]
            seen[conversation["variant"]] += 1
            if limit is not None and seen[conversation["variant"]] > limit:
                continue
            rows = conversation["messages"]
            memory = system.conversation(f"sorted {conversation['id']}")
            before = memory.extend([message_of(row) for row in rows])
            memory.sort()
            by_message = {node.message.id: row for node, row in zip(before, rows, strict=True)}
            live = {node.id: node for node in memory.history if node.state is State.LIVE}
            for node in live.values():
                row = by_message[node.message.id]
                if row["role"] == "human":
                    mine = (
                        None if node.parent_id is None else by_message[live[node.parent_id].message.id]["id"]
                    )
                    tally.messages += 1
                    tally.right += mine == row["parent"]
    return tallies


def one_after_another(conversations: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """All conversations joined to one conversation."""

    def named(conversation: dict[str, Any], message: Any) -> Any:
        return None if message is None else (conversation["id"], message)

    rows = [
        {**row, "id": named(one, row["id"]), "parent": named(one, row["parent"])}
        for one in conversations
        for row in one["messages"]
    ]
    return {"id": "all", "messages": rows}


def measure(
    data: Path = DATA, *, file: str = FILE, words: bool = False, limit: int | None = None
) -> list[Line]:
    """The lines of the table; if the data is missing, one line that reports it."""
    path = data / file
    if not path.exists():
        return [Line("parent accuracy", "skipped", f"{path} not found; pass its folder with --data")]
    model = Remembering()
    cascades = {right: LLMNodeSelector(Oracle(reliability=right), ask=ASK) for right in ORACLES}
    makes: dict[str, Callable[[], Selector]] = {
        f"oracle {right}": partial(lambda selector: selector, cascade) for right, cascade in cascades.items()
    }
    tallies = evaluate(
        path,
        {
            "ours": SemanticNodeSelector,
            QUESTIONS: SemanticNodeSelector,
            "always-last": lambda: always_last,
            "nearest neighbour": lambda: Nearest(model),
            "centroid": lambda: centroid(model),
            **makes,
        },
        embeddings=False if words else model,
        limit=limit,
    )
    lines = [_line(variant, tallies) for variant in tallies["ours"]]
    lines.append(_macro(tallies, file))
    lines += [
        _stored("stored tree, macro", tallies["ours"]),
        _stored(f"stored tree {QUESTIONS}", tallies[QUESTIONS]),
    ]
    sorted_ = sort_at_once(path, embeddings=False if words else model, limit=limit)
    lines.append(_sorted(sorted_, tallies["ours"], file))
    together = Tally()
    for tally in tallies["ours"].values():
        together.add(tally)
    lines += _details(together)
    alone = _macro_of(tallies["ours"])
    lines += [_cascade(tallies[f"oracle {right}"], right, one, alone) for right, one in cascades.items()]
    if limit is None:
        lines.append(_long(path, False if words else model))
    lines.append(_speed(path, False if words else model))
    return lines


def _line(variant: str, tallies: dict[str, dict[str, Tally]]) -> Line:
    mine = tallies["ours"][variant].accuracy
    beside = {name: found[variant].accuracy for name, found in tallies.items() if name in RULES}
    told = ", ".join(f"{name} {value:.1f}" for name, value in beside.items())
    last = beside["always-last"]
    return Line(f"parent accuracy, {variant}", f"{mine:.1f}", told, f"≥ {last:.1f}", mine >= last)


def _macro(tallies: dict[str, dict[str, Tally]], file: str) -> Line:
    macro = {name: _macro_of(by_variant) for name, by_variant in tallies.items()}
    told = ", ".join(f"{name} {value:.1f}" for name, value in macro.items() if name in RULES)
    aim = f"≥ {AIM:g}" if file == FILE else ""
    holds = macro["ours"] >= AIM if aim else None
    return Line("parent accuracy, macro", f"{macro['ours']:.1f}", told, aim, holds)


def _stored(name: str, tallies: dict[str, Tally]) -> Line:
    """The line of the accuracy of the final tree, with the changes by moves of turns."""
    together = Tally()
    for tally in tallies.values():
        together.add(tally)
    stored = fmean(percent(tally.stored, tally.messages) for tally in tallies.values())
    placed = fmean(tally.accuracy for tally in tallies.values())
    beside = (
        f"as placed {placed:.1f}; {together.moved} moves: {together.corrected} corrected, "
        f"{together.spoiled} made wrong"
    )
    return Line(name, f"{stored:.1f}", beside, f"≥ {placed:.1f}", stored >= placed)


def _sorted(tallies: dict[str, Tally], grown: dict[str, Tally], file: str) -> Line:
    macro, free = (fmean(tally.accuracy for tally in each.values()) for each in (tallies, grown))
    beside = ", ".join(f"{variant} {tally.accuracy:.1f}" for variant, tally in tallies.items())
    aim = f"≥ {free + AIM_SORTED:.1f}" if file == FILE else ""
    holds = macro >= free + AIM_SORTED if aim else None
    return Line("parent accuracy, macro, sorted at once", f"{macro:.1f}", beside, aim, holds)


def _details(tally: Tally) -> list[Line]:
    roots, precision = tally.kinds["root"], percent(tally.roots_suggested_right, tally.roots_suggested)
    found = [
        Line(
            name,
            f"{percent(sum(tally.kinds[kind]), len(tally.kinds[kind])):.1f}",
            f"of {len(tally.kinds[kind])}",
        )
        for name, kind in (("returns", "return"), ("branches", "branch"), ("continued", "continue"))
    ]
    return [
        *found,
        Line(
            "roots, precision", f"{percent(sum(roots), tally.roots_chosen):.1f}", f"of {tally.roots_chosen}"
        ),
        Line("roots, recall", f"{percent(sum(roots), len(roots)):.1f}", f"of {len(roots)}"),
        Line(
            f"suggested new threads ({SUGGEST_AT:.2f}), precision",
            f"{precision:.1f}",
            f"of {tally.roots_suggested}",
            f"≥ {AIM_OF_SUGGESTIONS:g}",
            precision >= AIM_OF_SUGGESTIONS,
        ),
        Line(
            f"suggested new threads ({SUGGEST_AT:.2f}), recall",
            f"{percent(tally.roots_suggested_right, len(roots)):.1f}",
            f"of {len(roots)}",
        ),
        Line("whole thread right", f"{percent(tally.threads, tally.messages):.1f}"),
        *(_covered(tally, share) for share in (0.0, *SHARES)),
        *(_without_threads(tally, what) for what in (WINDOW, SUMMARISED)),
    ]


def _covered(tally: Tally, share: float) -> Line:
    """The line of follow-ups whose continued turn is shown, with the price of the prompts."""
    found, price = percent(tally.covered[share], tally.followed), _price(tally, share, CACHED[0])
    words = percent(tally.shown[share], tally.whole)
    name = f"covered, cover={share:g}" if share else "covered, thread alone"
    prices = ", ".join(f"{_price(tally, share, cached):.2f} at {cached:g}" for cached in CACHED)
    beside = f"{words:.1f} % of the words of the history, price {prices}"
    if share != COVER:
        return Line(name, f"{found:.1f}", beside)
    aim = f"≥ {AIM_COVERED:g} at a price of ≤ {AIM_PRICE:g}"
    return Line(name, f"{found:.1f}", beside, aim, found >= AIM_COVERED and price <= AIM_PRICE)


def _price(tally: Tally, what: float | str, cached: float) -> float:
    return tally.price[what, cached] / max(tally.price[EVERYTHING, cached], 1)


def _without_threads(tally: Tally, what: str) -> Line:
    prices = " and ".join(f"{_price(tally, what, cached):.2f} at {cached:g}" for cached in CACHED)
    return Line(f"price, {what}", prices)


def _macro_of(tallies: dict[str, Tally]) -> float:
    return fmean(tally.accuracy for tally in tallies.values())


def _cascade(tallies: dict[str, Tally], right: float, selector: LLMNodeSelector, alone: float) -> Line:
    """The line of a cascade, which must not be worse than the semantic selector alone."""
    macro, asked = _macro_of(tallies), selector.share_asked
    aim = AIM_WITH_ORACLE if right == 1.0 else alone
    holds = macro >= aim and asked <= ASK + 0.005
    told = f"asked about {100 * asked:.1f} % of messages, estimated reliability {selector.reliability:.2f}"
    name = f"cascade with an oracle right in {100 * right:g} of 100, macro"
    return Line(name, f"{macro:.1f}", told, f"≥ {aim:.1f}", holds)


def _long(path: Path, embeddings: Embeddings | Literal[False]) -> Line:
    conversation, mine, last = one_after_another(conversations_of(path)), Tally(), Tally()
    with MemorySystem(embeddings=embeddings) as system:
        play(system, conversation, "ours", SemanticNodeSelector(), mine)
        play(system, conversation, "last", always_last, last)
    beside = f"always-last {last.accuracy:.1f}; one conversation of {mine.messages:,} turns"
    return Line("parent accuracy, one after another", f"{mine.accuracy:.1f}", beside)


def _speed(path: Path, embeddings: Embeddings | Literal[False]) -> Line:
    """The line of a choice in a long conversation: the extra time of a semantic append, without embedding."""
    before = [turn for file in sorted(path.parent.glob("threads*_train.jsonl")) for turn in _turns(file)]
    turns = [*(before or _turns(path))[:LONG], *_turns(path)[:TIMED]]
    if embeddings:
        embeddings.embed_documents([row["text"] for turn in turns for row in turn])
    spent: dict[str, list[float]] = {"semantic": [], "linear": []}
    with MemorySystem(embeddings=embeddings) as system:
        selectors = {"semantic": SemanticNodeSelector(), "linear": None}
        memories = {name: system.conversation(name, node_selector=one) for name, one in selectors.items()}
        for turn in turns:
            for name, memory in memories.items():
                begin = time.process_time()
                memory.append(*map(message_of, turn))
                spent[name].append(time.process_time() - begin)
    each = [one - other for one, other in zip(spent["semantic"], spent["linear"], strict=True)]
    more = median(each[LONG:])
    return within(f"CPU of a choice after {LONG:,} turns, without embedding", more, most=3e-3)


def _turns(path: Path) -> list[list[dict[str, Any]]]:
    return list(turns_of(one_after_another(conversations_of(path))["messages"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--file", default=FILE, help="the name of the file in this folder")
    parser.add_argument("--words", action="store_true", help="by words alone, without an embedding model")
    parser.add_argument("--limit", type=int, help="the number of conversations of each variant")
    options = parser.parse_args()
    show(measure(options.data, file=options.file, words=options.words, limit=options.limit))


if __name__ == "__main__":
    main()

"""The `threadmem demo` command, which sorts a conversation into threads turn by turn."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import chain, count, repeat
from pathlib import Path
from typing import NamedTuple

from langchain_core.messages import BaseMessage
from rich.console import Console, RenderableType
from rich.text import Text

from langchain_threadmem.apps.cli import rich_output
from langchain_threadmem.apps.cli.arguments import progress_bar
from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.prompt_words import PromptCounter, PromptWords
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.formats.exporters.files import read_text, write_text
from langchain_threadmem.formats.exporters.json import parse_conversation
from langchain_threadmem.index.language import ENGLISH, words
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.text import plural
from langchain_threadmem.messages.tokens import count_tokens
from langchain_threadmem.selection.coverage import quoted_ids
from langchain_threadmem.selection.selectors import SemanticNodeSelector
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode, is_doubtful

DemoTurn = list[BaseMessage]


def demo(file: Path | None, index: int, out: Path, database: str | None, owner: str) -> None:
    """Append a conversation to a semantic memory; print its tree, its threads and two recalls.

    Args:
        file: JSON or JSON Lines as for `parse_conversation`; `None` for the sample.
        index: Position of the conversation in the file, from 0.
        out: Directory for `tree.mmd` and `tree.html`; created if it does not exist.
        database: As for `MemorySystem`; by default `memory.db` in `out`.

    Raises:
        InputError: The file has no usable conversation; nothing was written.
        PersistenceError: A file cannot be read or written.
    """
    turns = _read(file, index)
    _check_folder(out)
    console = Console()
    if database is None:
        out.mkdir(parents=True, exist_ok=True)
    with MemorySystem(database or out / "memory.db", owner=owner) as system:
        out.mkdir(parents=True, exist_ok=True)
        name = _free_name(system, file.stem if file else "everyday")
        memory = system.conversation(name, node_selector=SemanticNodeSelector())
        try:
            sample = everyday().splitlines() if file is None else []
            topics = [json.loads(line)["topic"] for line in sample[::2]]  # One for each turn.
            with progress_bar("sort") as update:
                played = play(memory, turns, update, topics)
        except BaseException:
            memory.reset()
            raise
        history = memory.history
        _print(console, "What a model reads", _saving(played))
        _print(console, "The tree", *_legend(history), rich_output.draw_tree(history))
        _print(console, "Its threads", rich_output.list_threads(history))
        questions = QUESTIONS if file is None else questions_for(history)
        hits = [memory.recall(question, n_results=2, context_depth=1) for question in questions]
        _print(console, "Two questions to it", *map(rich_output.show_recall, questions, hits))
        write_text(out / "tree.mmd", memory.to_mermaid() + "\n")
        write_text(out / "tree.html", memory.export("html"))
    console.print(
        Text(f"\nThe tree is in {out / 'tree.html'} (open it in a browser) and {out / 'tree.mmd'} (Mermaid).")
    )
    if database is None:
        console.print(Text(f"To show the conversation again: threadmem show {out / 'memory.db'} {name}"))


def turns_of(messages: Iterable[BaseMessage]) -> list[DemoTurn]:
    """Split a conversation into turns: each human or system message begins a turn.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> [len(turn) for turn in turns_of([HumanMessage("a"), AIMessage("b"), HumanMessage("c")])]
        [2, 1]
    """
    turns: list[DemoTurn] = []
    for message in messages:
        if not turns or message.type in ("human", "system"):
            turns.append([])
        turns[-1].append(message)
    return turns


class Played(NamedTuple):
    """Counts over the turns of a conversation that begin with a human message.

    Attributes:
        shown: Approximate tokens that a model reads: of `ChatMemory.messages` at each turn.
        total: Approximate tokens of the full history up to each turn.
        followed: The number of messages that continue an earlier turn, if the topics are known.
        covered: The number of these for which the turn that they continue is shown.
        sent: The words of the lists that a model reads.
        whole: The words of the full history up to each turn.
    """

    shown: int
    total: int
    followed: int
    covered: int
    sent: PromptWords
    whole: PromptWords


def play(
    memory: ChatMemory, turns: Sequence[DemoTurn], progress: Progress, topics: Sequence[str] = ()
) -> Played:
    """Append turns as a chat program does, and count the tokens that a model would read.

    Args:
        memory: The memory that the turns are appended to.
        turns: Turns, as from `turns_of`.
        progress: Called after each turn with the number of turns so far and of all turns.
        topics: The topic of each turn, if known; a message continues the last turn of its topic.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> play(ChatMemory(), [[HumanMessage("Hello"), AIMessage("Hi!")]], lambda done, total: None)
        Played(shown=6, total=6, followed=0, covered=0, sent=PromptWords(prompts=1, words=1, ...
    """
    shown = total = history = followed = covered = 0
    counter, whole = memory._runtime.get(PromptCounter), PromptCounter(memory._runtime)
    said, before = list[BaseMessage](), counter.total
    last_of_topic: dict[str, str | None] = {}
    for done, ((first, *answers), topic) in enumerate(zip(turns, chain(topics, repeat("")), strict=False), 1):
        last = memory.append([first])
        history += count_tokens([first])
        said.append(first)
        if first.type == "human":
            whole.count("", said)
            view = memory.messages
            shown += count_tokens(view)
            total += history
            if topic in last_of_topic:
                followed += 1
                covered += last_of_topic[topic] in quoted_ids(view)
        if answers:
            last = memory.append(answers)
            said += answers
            history += count_tokens(answers)
        if topic:
            last_of_topic[topic] = last[-1].message.id
        progress(done, len(turns))
    return Played(shown, total, followed, covered, counter.total - before, whole.total)


def questions_for(history: Sequence[ConversationNode]) -> list[str]:
    """Queries of the most distinctive words of the longest threads.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> questions_for([ConversationNode(1, HumanMessage("Tomato soup needs ripe tomatoes"))])
        ['tomato soup needs ripe']
    """
    total = Counter(word for node in history for word in words(text_of(node.message)))
    longest = sorted(graph.threads(history), key=len, reverse=True)[:2]
    queries = []
    for thread in longest:
        counts = Counter(word for node in thread for word in words(text_of(node.message)))
        rare = (word for word in counts if word not in ENGLISH.stop_words)
        terms = [word for word in rare if len(word) > 3 and not word.isdigit()]
        terms.sort(key=lambda word: counts[word] ** 2 / total[word], reverse=True)
        queries += [" ".join(terms[:4])] if terms else []
    return queries


def _read(file: Path | None, index: int) -> list[DemoTurn]:
    """The turns of a file, after the check that all of them can be stored."""
    text = everyday() if file is None else read_text(file)
    try:
        turns = turns_of(parse_conversation(text, index=index))
        trial = ChatMemory(embeddings=False)
        for turn in turns:
            trial.append(turn)
        trial.close()
    except InputError as error:
        raise InputError(f"{file or 'the sample'}: {error}") from error
    return turns


def _check_folder(out: Path) -> None:
    """Check that files can be written to a directory."""
    nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise PersistenceError(
            f"Cannot write to {str(out)!r}: {str(nearest)!r} is not a directory; choose another --out"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PersistenceError(f"Cannot write to {str(out)!r}; check its permissions or choose another --out")


def _free_name(system: MemorySystem, name: str) -> str:
    existing = set(system.conversations())
    return next(unused for n in count(1) if (unused := name if n == 1 else f"{name}-{n}") not in existing)


def _saving(played: Played) -> Text:
    shown, total, followed, covered, sent, whole = played
    coverage = f"{covered} of {followed} follow-ups see the turn that they continue.\n" if followed else ""
    share = f", {100 * shown / total:.0f} % of the {total:,} tokens of the full history" if total else ""
    at_tenth, at_half = (sent.price(cached) / (whole.price(cached) or 1.0) for cached in (0.1, 0.5))
    price = (
        f"\nWhere a provider bills a beginning that it has seen at a tenth, it costs {100 * at_tenth:.0f} % "
        f"of the full history; at half, {100 * at_half:.0f} %."
    )
    return Text(f"{coverage}Over all turns, a model reads {shown:,} tokens{share}.{price if total else ''}")


def _legend(history: Sequence[ConversationNode]) -> Iterator[Text]:
    """The meaning of the question mark, if a place is doubtful."""
    if doubtful := sum(map(is_doubtful, graph.living(history))):
        many = f"{plural(doubtful, 'message')} {'has' if doubtful == 1 else 'have'}"
        yield Text(
            f"{many} a question mark: another place was about as probable. A model is usually shown the turn "
            "before that place, too. `threadmem view` and `threadmem place` move a message.\n"
        )


def _print(console: Console, heading: str, *contents: RenderableType) -> None:
    console.print(Text(f"\n{heading}\n", style="bold underline"))
    for content in contents:
        console.print(content)


QUESTIONS = ("How long should the dough rise in a warm kitchen?", "Why are the leaves getting brown spots?")
"""Two questions that the sample answers in other words."""


def everyday() -> str:
    """The sample as JSON Lines.

    Example:
        >>> len(everyday().splitlines())
        60
    """
    return files(__package__).joinpath("sample.jsonl").read_text(encoding="utf-8")

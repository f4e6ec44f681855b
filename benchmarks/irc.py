"""The accuracy of `SemanticNodeSelector` in group chats: links between messages of an IRC channel.

The logs come from Ubuntu's help channel (Kummerfeld et al., "A Large-Scale Corpus for Conversation
Disentanglement", ACL 2019, CC BY 4.0): each message links to the messages that it answers, or to itself if it
starts a conversation; a link to itself counts as a link. Notices of the server and empty messages are not
passed to the memory and link to themselves. The figures are percentages of links, over the annotated messages
of all logs:

- precision: the share of found links that are annotated; recall: the share of annotated links that are found.
- The messages are appended one by one, with the speaker in `message.name` and without answers, beginning some
  messages before the annotated ones. The memory builds its own tree and never receives a true link.
- always last: each message answers the message before it. roots: each message starts a conversation.

    python -m benchmarks.irc [--data ../shared/data] [--file irc_dev.jsonl] [--limit 5] [--before 100]

The data is not part of this repository; without it the benchmark is skipped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from benchmarks._measure import Line, duration, show
from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.selection.tree_view import TreeView

DATA = Path("../shared/data")
FILE = "irc_dev.jsonl"
BEFORE = 100
LEAST_F1, MOST_SECONDS = 70.0, 0.003
Links = set[tuple[int, int]]


class Timed(SemanticNodeSelector):
    """A selector that records the processor time of each choice."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def choose(self, tree: TreeView, message: BaseMessage) -> Flow[int | None]:
        """The timed choice; in a group chat it waits for no other step."""
        begin = time.thread_time()
        chosen = yield from super().choose(tree, message)
        self.seconds.append(time.thread_time() - begin)
        return chosen


def links(log: Mapping[str, Any]) -> Links:
    """The true links of the annotated messages."""
    return {(child, parent) for child, parent in log["links"] if child >= log["annotated_from"]}


def found(memory: ChatMemory, log: Mapping[str, Any], before: int = BEFORE) -> Links:
    """The links that a memory finds when the messages are appended one by one."""
    begin, given = log["annotated_from"], set()
    ids: dict[int | None, int] = {}
    for message in log["messages"][max(begin - before, 0) :]:
        parent = id_ = message["id"]
        if not message["system"] and message["text"].strip():
            [node] = memory.append(HumanMessage(message["text"], name=message["user"]))
            ids[node.id] = id_
            parent = ids.get(node.parent_id, id_)
        if id_ >= begin:
            given.add((id_, parent))
    return given


def last(log: Mapping[str, Any]) -> Links:
    """The links where each message answers the message before it; notices are skipped."""
    given, before = set(), None
    for message in log["messages"]:
        id_ = message["id"]
        notice = message["system"] or before is None
        given.add((id_, id_ if notice else before))
        before = before if message["system"] else id_
    return {link for link in given if link[0] >= log["annotated_from"]}


def figures(true: Sequence[Links], given: Sequence[Links]) -> tuple[float, float, float]:
    """Precision, recall and F1, in percent."""
    both = 100.0 * sum(len(one & other) for one, other in zip(true, given, strict=True))
    found_, wanted = sum(map(len, given)), sum(map(len, true))
    return both / max(found_, 1), both / max(wanted, 1), 2 * both / max(found_ + wanted, 1)


def people(logs: Sequence[Mapping[str, Any]], given: Sequence[Links]) -> list[Links]:
    """The links between messages of people, without notices of the server."""
    kept = [{one["id"] for one in log["messages"] if not one["system"]} for log in logs]
    return [{link for link in some if ids.issuperset(link)} for some, ids in zip(given, kept, strict=True)]


def measure(
    folder: Path = DATA, *, file: str = FILE, limit: int | None = None, before: int = BEFORE
) -> list[Line]:
    """Precision, recall and F1 of the links in the logs of a file, and the processor time of a choice."""
    path = folder / file
    if not path.exists():
        return [Line("IRC links", "skipped", f"{file} not found; pass its folder with --data")]
    logs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:limit]
    selector, true, given = Timed(), [links(log) for log in logs], []
    with MemorySystem(embeddings=False) as system:
        for log in logs:
            memory = ChatMemory(system=system, conversation_id=log["id"], node_selector=selector)
            given.append(found(memory, log, before))
    rules = {
        "always last": [last(log) for log in logs],
        "roots": [{(child, child) for child, _ in some} for some in given],
    }
    beside = {name: figures(true, some) for name, some in rules.items()}
    lines = []
    ours = figures(true, given)
    for n, what in enumerate(("precision", "recall", "F1")):
        told = ", ".join(f"{name} {values[n]:.1f}" for name, values in beside.items())
        bar, holds = (f"≥ {LEAST_F1:g}", ours[n] >= LEAST_F1) if what == "F1" else ("", None)
        lines.append(Line(f"IRC links, {what}", f"{ours[n]:.1f}", told, bar, holds))
    alone = figures(people(logs, true), people(logs, given))[2]
    by_log = [figures([one], [other])[2] for one, other in zip(true, given, strict=True)]
    spent = median(selector.seconds)
    return [
        *lines,
        Line("IRC links without notices, F1", f"{alone:.1f}"),
        Line("IRC links, F1 log by log", f"{min(by_log):.1f}-{max(by_log):.1f}", f"of {len(logs)} logs"),
        Line(
            "IRC, CPU of a choice",
            duration(spent),
            f"of {len(selector.seconds):,} choices",
            f"≤ {duration(MOST_SECONDS)}",
            spent <= MOST_SECONDS,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.irc", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--file", default=FILE, help="the name of the file in this folder")
    parser.add_argument("--limit", type=int, help="the number of logs")
    parser.add_argument(
        "--before", type=int, default=BEFORE, help="the number of messages before the annotated ones"
    )
    options = parser.parse_args()
    show(measure(options.data, file=options.file, limit=options.limit, before=options.before))


if __name__ == "__main__":
    main()

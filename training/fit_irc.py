"""Fit the weights of group chats on logs of a help channel with annotated links.

The logs come from Ubuntu's IRC channel (Kummerfeld et al., "A Large-Scale Corpus for Conversation
Disentanglement", ACL 2019, CC BY 4.0): each message links to the messages that it answers, or to itself if it
starts a conversation. The networks are fitted on the true threads, then on the threads that a first network
chooses, including its errors, so that they learn to continue after errors.

    python -m training.fit_irc [--data ../shared/data] [--out build/group_model.npz]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.group_chat import WINDOW, GroupChat
from langchain_threadmem.selection.model import Networks, reader, score
from langchain_threadmem.selection.turn_ends import Speech
from training.learn import Recipe, State, fit_networks

DATA = Path("../shared/data")
TRAIN = "irc_train.jsonl"
NETWORKS = 2
FIRST = Recipe(hidden=16, epochs=4, drop=0.05)
LAST = Recipe(hidden=32, epochs=10, drop=0.05)
UNKNOWN = -1
"""The parent of a message without annotated links."""


def links(log: Mapping[str, Any]) -> dict[int, list[int]]:
    """The messages that each annotated message answers, by its id; the first of a conversation has itself."""
    right = defaultdict(list)
    for child, parent in sorted(log["links"]):
        if child >= log["annotated_from"]:
            right[child].append(parent)
    return right


def states(log: Mapping[str, Any], reads: Reader, own: Networks | None = None, *, early: bool) -> list[State]:
    """The states to learn from a log, one for each link between messages of people.

    Args:
        log: A line of the file.
        reads: The reader of the texts.
        own: Networks that place the messages; by default each message has its true place.
        early: Whether the people from the start of the log are known, instead of those shortly before the
            links only.
    """
    begin, right, chat = log["annotated_from"], links(log), GroupChat()
    warm = max(begin - WINDOW, 0)
    found = []
    for message in log["messages"][0 if early else warm :]:
        if message["system"]:
            continue
        id_, truth = message["id"], right.get(message["id"], [UNKNOWN])
        place = None if truth[-1] == id_ else truth[-1]
        speech = Speech(id_, id_, place, message["user"], message["text"])
        if id_ >= (warm if own else begin):
            latest, rows = chat.describe(speech, reads)
            ids = [*(one.id for one in latest), id_]
            if id_ >= begin and latest:
                found += [State(rows, ids.index(one)) for one in truth if one in ids]
            if own is not None:
                chosen = ids[int(score(own, rows.astype(float)).argmax())] if latest else id_
                speech = speech._replace(previous=None if chosen == id_ else chosen)
        chat.add([speech], reads)
    return found


def fit(logs: Sequence[Mapping[str, Any]]) -> Networks:
    """Fit networks on the true places of messages, then on the places that the first fit chooses."""
    reads = reader()
    first = fit_networks([state for log in logs for state in states(log, reads, early=False)], FIRST, 1)
    grown = [
        state for place, log in enumerate(logs) for state in states(log, reads, first, early=place % 2 == 0)
    ]
    return fit_networks(grown, LAST, NETWORKS, seed=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--out", type=Path, default=Path("build/group_model.npz"), help="the file to write")
    options = parser.parse_args()
    logs = [json.loads(line) for line in (options.data / TRAIN).read_text(encoding="utf-8").splitlines()]
    begin = time.process_time()
    fitted = fit(logs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    arrays = {part.name: getattr(fitted, part.name).astype(np.float32) for part in fields(Networks)}
    np.savez_compressed(options.out, **arrays)
    size, spent = options.out.stat().st_size / 1024, time.process_time() - begin
    print(f"{options.out}: {size:.0f} KB from {len(logs)} logs, {spent:.0f} s of processor time")


if __name__ == "__main__":
    main()

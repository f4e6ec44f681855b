"""Fit the numbers of `langchain_threadmem.core.network` and measure them.

    python -m training.fit_selection --data ../shared/data --write   # fit, measure, write the data file
    python -m training.fit_selection --data ../shared/data --write --beside   # put it beside what is shipped
    python -m training.fit_selection --data ../shared/data --shipped # measure what is shipped
    python -m training.fit_selection --data ../shared/data --leave   # fit without each family, measure it

Learned from are the train files, the train logs of an IRC channel, and chats between two people (`pip install
chitchat-dataset`, MIT; only numbers that were fitted on it are part of this project), and the conversations
and dialogs that were written for it (`training.corpus`), as they are and woven into others; see
`training.course` for how.

Measured is what counts in use: turns are appended one by one, the tree running free, never shown the true
parent. Nothing is fitted on the sources in `UNSEEN`, whose licences do not allow it; they show what a new
kind of dialog gets.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from langchain_threadmem.core import network
from langchain_threadmem.core.features import FEATURES
from langchain_threadmem.core.network import WAYS, Networks, Way
from training.corpus import HELD_OUT, as_conversation, written
from training.corpus import dialogs as spoken
from training.corpus import kinds as kinds_of
from training.corpus import texts_of as said_in
from training.course import (
    RECIPE,
    SHARES,
    WOVEN,
    Course,
    Fitted,
    Grown,
    Tally,
    beside,
    family,
    fit,
    grow,
    show,
    tally,
)
from training.learn import words_of
from training.sources import Conversation, Dialog, Vectors, chats, embed, irc, kinds, read, texts_of
from training.weave import without_greeting

TRAIN = ("threads_train.jsonl", "threads2_train.jsonl")
DEV = "threads_dev.jsonl"
IRC = "irc_train.jsonl"
CHATS = 400
"""Dialogs of the package `chitchat-dataset` (MIT) that are learned from."""
UNSEEN = ("locomo", "beam", "inscit")


def measure(conversations: Sequence[Conversation], fitted: Fitted) -> tuple[dict[str, Tally], list[Grown]]:
    """Grow conversations and count, by variant."""
    held = (fitted.way, fitted.networks, fitted.again, fitted.wording, fitted.learned)
    grown = [grow(one, *held) for one in conversations]
    return tally(conversations, grown), grown


def shipped(way: Way) -> Fitted:
    """What is shipped for one way to go."""
    learned = network.compatibility() if way == "local" else None
    held = network.networks(way), network.networks(way, again=True)
    return Fitted(way, *held, network.wording(), learned)


def show_sure(conversations: Sequence[Conversation], grown: Sequence[Grown]) -> None:
    """Print how often those choices were right that the networks were sure of."""
    pairs = [
        (sure, mine == turn.previous)
        for one, its in zip(conversations, grown, strict=True)
        for sure, mine, turn in list(zip(its.sure, its.chosen, one.turns, strict=True))[1:]
    ]
    for level in (0.5, 0.8, 0.9, 0.99):
        above = [right for sure, right in pairs if sure >= level]
        print(
            f"  p >= {level:<4} {100 * len(above) / len(pairs):5.1f} % of choices, "
            f"{100 * np.mean(above) if above else 0:5.1f} % right"
        )


def write(path: Path, fitted: Sequence[Fitted], about: dict[str, object]) -> None:
    """Write the data file of the package."""
    wording = fitted[0].wording
    arrays: dict[str, np.ndarray] = {
        "features": np.array(FEATURES),
        "about": np.array(json.dumps(about)),
        "words": np.array(" ".join(wording.vocabulary)),
        "terms": np.array(" ".join(wording.common)),
        "term_rarity": wording.rarity.astype(np.float16),
    }
    for name in ("answer", "message", "opener", "closing"):
        arrays[f"word_{name}"] = getattr(wording, name).astype(np.float16)
    for one in fitted:
        for field in fields(Networks):
            arrays[f"{one.way}_{field.name}"] = getattr(one.networks, field.name).astype(np.float32)
            arrays[f"{one.way}_again_{field.name}"] = getattr(one.again, field.name).astype(np.float32)
        if one.learned is not None:
            # Half precision changes no choice and halves the file.
            arrays |= {name: getattr(one.learned, name).astype(np.float16) for name in network.COMPATIBILITY}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    print(f"\n{path}: {path.stat().st_size / 1024:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, help="an .npz file for the vectors")
    parser.add_argument("--chats", type=Path, help="dataset.json of the package chitchat-dataset")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--write", action="store_true", help="write the data file of the package")
    parser.add_argument(
        "--beside", action="store_true", help="keep the networks that are shipped beside the new ones"
    )
    parser.add_argument("--shipped", action="store_true", help="measure what is shipped, fit nothing")
    parser.add_argument(
        "--leave", action="store_true", help="fit without each family of sources, and measure it"
    )
    options = parser.parse_args()
    paths = [options.data / name for name in (*TRAIN, DEV)]
    missing = [path for path in (*paths, options.data / IRC) if not path.exists()]
    if missing:
        sys.exit(f"{', '.join(map(str, missing))}: not there; name the folder of the data with --data")
    more = irc(options.data / IRC)
    chats_file = options.chats or chats_of_package()
    if chats_file is None and not options.shipped:
        sys.exit("the chats are not there: pip install chitchat-dataset, or name the file with --chats")
    if chats_file is not None:
        more |= chats(chats_file, CHATS)
    more |= spoken()
    own = written()
    texts = (
        texts_of(paths)
        | said_in(own)
        | {text for one in more.values() for turn in one.turns for text in turn}
    )
    words = set() if options.shipped else words_of(texts)
    vectors = embed(texts | {without_greeting(text) for text in texts} | words, options.cache)
    kind_of = kinds(paths) | kinds_of(own)
    known = [one for path in paths[:2] for one in read(path, vectors, UNSEEN) if one.variant not in UNSEEN]
    unseen = [one for path in paths[:2] for one in read(path, vectors) if one.variant in UNSEEN]
    dev = read(paths[2], vectors)
    known += [as_conversation(one, vectors) for one in own if one.part != HELD_OUT]
    agents = [as_conversation(one, vectors) for one in own if one.part == HELD_OUT]

    if options.leave:
        leave_one_out(known, more, kind_of, vectors, options.ways)
        return
    fitted = []
    courses = [] if options.shipped else [Course(known, more, kind_of, vectors, share) for share in SHARES]
    for way in options.ways:
        if options.shipped:
            fitted.append(shipped(way))
        elif options.beside:
            fitted.append(beside(shipped(way), fit(courses, way)))
        else:
            fitted.append(fit(courses, way))
        for title, conversations in (("dev", dev), ("unseen sources", unseen), ("agents", agents)):
            counts, grown = measure(conversations, fitted[-1])
            show(f"{way}: {title}", counts)
            show_sure(conversations, grown)
    if options.write:
        if options.shipped or list(options.ways) != list(WAYS):
            sys.exit("--write needs all ways, freshly fitted")
        about: dict[str, object] = {
            "sources": dict(
                Counter(name.split(":")[0] for name in {*more, *(n for one in known for n in one.dialogs)})
            ),
            "conversations": len(known),
            "woven": WOVEN,
            "recipe": asdict(RECIPE),
            "fitted": time.strftime("%Y-%m-%d"),
        }
        if options.beside:
            about["beside"] = dict(network.about())
        write(Path(network.__file__).with_name(network.FILE), fitted, about)


def chats_of_package() -> Path | None:
    """The file of the package `chitchat-dataset`, if it is installed."""
    found = importlib.util.find_spec("chitchat_dataset")
    return Path(found.origin).with_name("dataset.json") if found and found.origin else None


def leave_one_out(
    known: Sequence[Conversation],
    more: Mapping[str, Dialog],
    kind_of: dict[str, str],
    vectors: Vectors,
    ways: Sequence[Way],
) -> None:
    """Fit without each family of sources, everywhere; then measure the conversations that are all of it."""
    totals: dict[Way, dict[str, Tally]] = {way: {} for way in ways}
    family_of = {name: family(name.split(":")[0]) for one in known for name in one.dialogs}
    for left in sorted(set(family_of.values())):
        own = [one for one in known if {family_of[name] for name in one.dialogs} == {left}]
        rest = [one for one in known if left not in {family_of[name] for name in one.dialogs}]
        courses = [Course(rest, more, kind_of, vectors)]
        for way in ways:
            for variant, counts in measure(own, fit(courses, way))[0].items():
                # Single dialogs and mixes are of several families.
                totals[way][f"{variant} ({left})" if variant in ("single", "mix") else variant] = counts
    for way in ways:
        show(f"{way}: left out", totals[way])


if __name__ == "__main__":
    main()

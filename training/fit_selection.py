"""Fit the weights of `SemanticNodeSelector`, and measure them.

    python -m training.fit_selection fit --seed 0 --out build/fit-0.npz   # one fit
    python -m training.fit_selection combine build/fit-0.npz --neutral build/neutral.npz --out build/model.npz
    python -m training.fit_selection measure [build/model.npz]   # the shipped weights if no file is named
    python -m training.fit_selection leave-out                   # fit without each family of sources

All commands but `combine` take `--data FOLDER`, the folder of the data, which is not part of this repository,
and `--cache FILE`, an `.npz` file that stores embeddings between runs. `make fit` runs `fit` and `combine`;
`training/README.md` describes the sources and the method.

Figures are measured as in use: turns are appended one by one to a tree that the selector builds without the
true parents. No fit uses the sources in `UNSEEN`, whose licences do not allow it: their figures are those of
a new kind of dialog.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.threads import DATA
from langchain_threadmem.selection.features.phrases import phrases_in
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import Way
from langchain_threadmem.selection.turn_ends import is_of_agent
from training import weights
from training.corpus import HELD_OUT, UNSEEN_FOLDER, Written, alone, as_conversation, written
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
    each,
    family,
    fit,
    grow,
    show,
    tally,
)
from training.learn import WORD_DIALOGS, holders_of
from training.sources import (
    Conversation,
    Dialog,
    Floats,
    Vectors,
    chats,
    dialogs_of,
    embed,
    irc,
    kinds,
    texts_of,
)
from training.sources import read as read_file
from training.weave import variants
from training.weights import WAYS

TRAIN = ("threads_train.jsonl", "threads2_train.jsonl")
DEV = "threads_dev.jsonl"
IRC = "irc_train.jsonl"
CHATS = 400
"""The number of dialogs of the package `chitchat-dataset` (MIT) that a fit uses."""
UNSEEN = ("locomo", "beam", "inscit")


class Sources:
    """The embedded conversations and dialogs for fitting and measuring.

    Args:
        data: The folder of the data.
        cache: An `.npz` file that stores embeddings.
        learning: Whether weights are fitted; otherwise the data that only a fit needs is not read.
    """

    def __init__(self, data: Path, cache: Path | None, *, learning: bool) -> None:
        paths = [data / name for name in (*TRAIN, DEV)]
        missing = [path for path in (*paths, data / IRC) if not path.exists()]
        if missing:
            sys.exit(f"{', '.join(map(str, missing))} not found; pass the folder of the data with --data")
        own = written()
        self.more: dict[str, Dialog] = {}
        kept = written(UNSEEN_FOLDER / "conversations")
        single = spoken(UNSEEN_FOLDER / "dialogs")
        texts = texts_of(paths) | said_in(own + kept) | turns_of(single)
        words: set[str] = set()
        if learning:
            self.more = irc(data / IRC) | chats(chats_file(), CHATS) | spoken()
            texts |= turns_of(self.more)
            apart, words = texts_of_fit(paths[:2], [one for one in own if one.part != HELD_OUT], self.more)
            texts |= apart
        self.vectors = embed(texts | words, cache)
        self.kind_of = kinds(paths) | kinds_of(own)
        self.known = known_in(paths[:2], self.vectors)
        self.known += [as_conversation(one, self.vectors) for one in own if one.part != HELD_OUT]
        unseen = [one for path in paths[:2] for one in read_file(path, self.vectors)]
        self.measured = {
            "dev": read_file(paths[2], self.vectors),
            "unseen sources": [one for one in unseen if one.variant in UNSEEN],
            "agents": [as_conversation(one, self.vectors) for one in own if one.part == HELD_OUT],
            "calm": [as_conversation(one, self.vectors) for one in kept],
            "single dialogs": [alone(one, self.vectors) for one in single.values()],
        }

    def about(self, seed: int) -> dict[str, Any]:
        """The metadata that a file of weights contains about its fit."""
        names = {*self.more, *(name for one in self.known for name in one.dialogs)}
        return {
            "sources": dict(Counter(name.split(":")[0] for name in names)),
            "conversations": len(self.known),
            "woven": WOVEN,
            "recipe": asdict(RECIPE),
            "seeds": [seed],
        }


def known_in(paths: Iterable[Path], vectors: Vectors) -> list[Conversation]:
    """The conversations of files without the sources in `UNSEEN`."""
    several = [one for path in paths for one in read_file(path, vectors, UNSEEN)]
    return [one for one in several if one.variant not in UNSEEN]


def texts_of_fit(
    paths: Sequence[Path], own: Sequence[Written], more: Mapping[str, Dialog]
) -> tuple[set[str], set[str]]:
    """The texts of woven conversations that no dialog contains, and the words that may get a vector."""
    nothing = defaultdict[str, Floats](lambda: np.zeros(0, np.float32))
    known = known_in(paths, nothing) + [as_conversation(one, nothing) for one in own]
    several = dialogs_of(known, kinds(paths) | kinds_of(list(own))) | dict(more)
    apart = {text for one in several.values() for text in variants(one)}
    return apart, {word for word, names in holders_of(several.values()).items() if len(names) >= WORD_DIALOGS}


def turns_of(dialogs: Mapping[str, Dialog]) -> set[str]:
    """All texts of the given dialogs."""
    return {text for one in dialogs.values() for turn in one.turns for text in turn}


def chats_file() -> Path:
    """The data file of the package `chitchat-dataset`."""
    found = importlib.util.find_spec("chitchat_dataset")
    if found is None or found.origin is None:
        sys.exit("the package chitchat-dataset is not installed: pip install --group training")
    return Path(found.origin).with_name("dataset.json")


def measure(conversations: Sequence[Conversation], fitted: Fitted) -> tuple[dict[str, Tally], list[Grown]]:
    """The counts by variant, and the grown conversations."""
    reader = Reader(phrases_in("en"), fitted.word_vectors)

    def grown_by(one: Conversation) -> Grown:
        usual = (fitted.networks, fitted.again)
        held = (fitted.of_agents or usual) if is_of_agent(one.turns) else usual
        return grow(one, fitted.way, *held, reader, fitted.learned)

    grown = each(conversations, grown_by)
    return tally(conversations, grown), grown


def show_measured(sources: Sources, fits: Sequence[Fitted]) -> None:
    """Print the figures of each fit."""
    for fitted in fits:
        for title, conversations in sources.measured.items():
            counts, grown = measure(conversations, fitted)
            show(f"{fitted.way}: {title}", counts)
            show_sure(conversations, grown)


def show_sure(conversations: Sequence[Conversation], grown: Sequence[Grown]) -> None:
    """Print the share and the accuracy of choices above several probabilities."""
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


def fit_all(sources: Sources, seed: int, out: Path) -> None:
    """Fit the networks for all three inputs, measure them and write them to a file."""
    courses = [
        Course(sources.known, sources.more, sources.kind_of, sources.vectors, share, seed) for share in SHARES
    ]
    fits = []
    for way in WAYS:
        fits.append(fit(courses, way))
        show_measured(sources, fits[-1:])
    weights.write(out, fits, sources.about(seed))


def combine(fit: Path, neutral: Path, out: Path, earlier: Path | None = None) -> None:
    """Write a fit together with the fit for other languages, and with networks of an earlier file."""
    fitted, about = weights.read(fit)
    if earlier is not None:
        fitted[0] = weights.mixed(fitted[0], weights.read(earlier)[0][0])
        about["mixed_with"] = hashlib.sha256(earlier.read_bytes()).hexdigest()
    weights.write(out, fitted, about, weights.read_neutral(neutral))


def leave_one_out(sources: Sources) -> None:
    """Fit without each family of sources, and measure the conversations that consist of this family."""
    totals: dict[Way, dict[str, Tally]] = {way: {} for way in WAYS}
    family_of = {name: family(name.split(":")[0]) for one in sources.known for name in one.dialogs}
    for left in sorted(set(family_of.values())):
        own = [one for one in sources.known if {family_of[name] for name in one.dialogs} == {left}]
        rest = [one for one in sources.known if left not in {family_of[name] for name in one.dialogs}]
        courses = [Course(rest, sources.more, sources.kind_of, sources.vectors)]
        for way in WAYS:
            for variant, counts in measure(own, fit(courses, way))[0].items():
                # The variants `single` and `mix` occur in several families.
                totals[way][f"{variant} ({left})" if variant in ("single", "mix") else variant] = counts
    for way in WAYS:
        show(f"{way}: left out", totals[way])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    data.add_argument("--cache", type=Path, help="an .npz file for the embeddings")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("fit", parents=[data], help="fit, measure and write")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--out", type=Path, required=True, help="the file to write")
    whole = commands.add_parser("combine", help="add the networks for other languages to a fit")
    whole.add_argument("file", type=Path, help="the file that `fit` wrote")
    whole.add_argument("--neutral", type=Path, required=True, help="the file that `training.neutral` wrote")
    whole.add_argument(
        "--earlier",
        type=Path,
        help="a file whose networks for the local model are mixed with those of the fit",
    )
    whole.add_argument("--out", type=Path, required=True, help="the file to write")
    figures = commands.add_parser("measure", parents=[data], help="measure a file of weights")
    figures.add_argument("file", type=Path, nargs="?", default=weights.SHIPPED)
    commands.add_parser("leave-out", parents=[data], help="fit without each family of sources and measure it")
    options = parser.parse_args()
    if options.command == "combine":
        combine(options.file, options.neutral, options.out, options.earlier)
        return
    sources = Sources(options.data, options.cache, learning=options.command != "measure")
    if options.command == "fit":
        fit_all(sources, options.seed, options.out)
    elif options.command == "measure":
        show_measured(sources, weights.read(options.file)[0])
    else:
        leave_one_out(sources)


if __name__ == "__main__":
    main()

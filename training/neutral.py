"""The fit of the networks for languages other than English.

Most training conversations are in English. The networks for other languages are also fitted on them, without
features that were learned from English words: no word vectors, no rarities, and random parts of the lists of
phrases, because the list of another language lacks other phrases. They are also fitted on the first half of
the conversations in other languages (`training/languages`), each with the phrases of its language; the second
half is measured. The vectors are those of the multilingual model. For this model similarities are learned as
for the local model, since texts of one meaning have similar vectors in all languages.

    python -m training.neutral fit --out build/neutral.npz
    python -m training.neutral measure [build/model.npz]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from benchmarks.threads import DATA
from langchain_threadmem.engine.multilingual_embeddings import MultilingualEmbeddings
from langchain_threadmem.selection.features.phrases import AFFIXES, Phrases, phrases_in
from langchain_threadmem.selection.features.similarity import NO_WORDS, Compatibility
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import Networks, Way
from training import weights
from training.corpus import HELD_OUT, Written, as_conversation, in_languages, written
from training.corpus import dialogs as spoken
from training.corpus import kinds as kinds_of
from training.corpus import texts_of as said_in
from training.course import (
    AGAIN,
    BETWEEN,
    FOLDS,
    RECIPE,
    ROUGH,
    SHARES,
    STEPS,
    Fitted,
    Grown,
    Lesson,
    each,
    family,
    fit_states,
    grow,
    show,
    tally,
)
from training.fit_selection import CHATS, TRAIN, chats_file, known_in, turns_of
from training.learn import fit_compatibility
from training.sources import (
    Conversation,
    Dialog,
    Pools,
    Vectors,
    chats,
    dialogs_of,
    embed,
    folds,
    kinds,
    texts_of,
)
from training.weave import variants, weave

WOVEN = 800
"""The number of woven conversations in English."""
WOVEN_IN_EACH = 32
"""The number of woven conversations in each other language."""
NETWORKS = 6
VARIANTS = 48
"""The number of random parts of the English lists of phrases."""
LEAST_KEPT, WHOLE_CUES, CAPITALS = 0.3, 0.85, 0.8
"""The least share of the phrases of a cue that is kept; the probabilities that a cue is kept at all, and that
capitals mark names."""


class Lecture(NamedTuple):
    """A conversation for fitting, and the phrases of its language."""

    lesson: Lesson
    phrases: Phrases


@dataclass(frozen=True)
class Corpus:
    """All conversations: English ones and their dialogs, and those in other languages, in two halves."""

    known: Sequence[Conversation]
    dialogs: Mapping[str, Dialog]
    fitted: Mapping[str, Sequence[Conversation]]
    measured: Mapping[str, Sequence[Conversation]]
    written: Mapping[str, Sequence[Written]]
    vectors: Vectors


def read(data: Path, cache: Path | None, *, learning: bool = True) -> Corpus:
    """Read and embed all conversations."""
    paths = [data / name for name in TRAIN] if learning else []
    own = [one for one in written() if one.part != HELD_OUT] if learning else []
    languages = in_languages()
    more = chats(chats_file(), CHATS) | spoken() if learning else {}
    texts = texts_of(paths) | said_in(own) | {text for ones in languages.values() for text in said_in(ones)}
    texts |= turns_of(more)
    texts |= {text for one in more.values() for text in variants(one)}
    vectors = embed(texts, cache, MultilingualEmbeddings())
    known = known_in(paths, vectors) + [as_conversation(one, vectors) for one in own]
    kind_of = kinds(paths) | kinds_of(own)
    dialogs = dialogs_of(known, kind_of)
    for name, one in more.items():
        dialogs[name] = one._replace(share=SHARES[-1]) if name not in dialogs else dialogs[name]
    halves = {code: ([as_conversation(one, vectors) for one in ones]) for code, ones in languages.items()}
    return Corpus(
        known,
        dialogs,
        {code: ones[: len(ones) // 2] for code, ones in halves.items()},
        {code: ones[len(ones) // 2 :] for code, ones in halves.items()},
        {code: ones[: len(ones) // 2] for code, ones in languages.items()},
        vectors,
    )


def part_of(phrases: Phrases, rng: random.Random) -> Phrases:
    """A random part of the phrases of a language."""
    lists = {}
    for field in fields(Phrases):
        value = getattr(phrases, field.name)
        if isinstance(value, tuple) and field.name not in AFFIXES:
            kept = rng.uniform(LEAST_KEPT, 1.0) if rng.random() < WHOLE_CUES else 0.0
            value = tuple(phrase for phrase in value if rng.random() < kept)
        lists[field.name] = value
    return Phrases(**{**lists, "capitals": rng.random() < CAPITALS})


def lectures_of(corpus: Corpus, seed: int) -> list[Lecture]:
    """The conversations for fitting, with their phrases."""
    rng = random.Random(seed)
    variants = [part_of(phrases_in("en"), rng) for _ in range(VARIANTS)]
    place = folds(corpus.known, FOLDS)
    of_kind = {
        kind: i % FOLDS for i, kind in enumerate(dict.fromkeys(one.kind for one in corpus.dialogs.values()))
    }
    place = {name: place.get(name, of_kind[one.kind]) for name, one in corpus.dialogs.items()}

    def english(one: Conversation) -> Lecture:
        families = frozenset(family(corpus.dialogs[name].source) for name in one.dialogs)
        return Lecture(Lesson(one, place[one.dialogs[0]], families), rng.choice(variants))

    lectures = [english(one) for one in corpus.known]
    for fold in range(FOLDS):
        pools = Pools([one for name, one in corpus.dialogs.items() if place[name] == fold])
        lectures += [english(weave(rng, pools, corpus.vectors)) for _ in range(WOVEN // FOLDS)]
    for code, ones in corpus.fitted.items():
        phrases, families = phrases_in(code), frozenset({f"language {code}"})
        several = enumerate(ones)
        lectures += [Lecture(Lesson(one, number % FOLDS, families), phrases) for number, one in several]
        kind_of = kinds_of(list(corpus.written[code]))
        for fold in range(FOLDS):
            inside = [one for number, one in enumerate(ones) if number % FOLDS == fold]
            pools = Pools(list(dialogs_of(inside, kind_of).values()))
            for _ in range(WOVEN_IN_EACH // FOLDS):
                woven = weave(rng, pools, corpus.vectors, phrases)
                lectures.append(Lecture(Lesson(woven, fold, families), phrases))
    return lectures


def learn(corpus: Corpus, lectures: Sequence[Lecture], seed: int) -> dict[int | None, Compatibility]:
    """The similarities learned without each fold, and on all conversations (`None`)."""
    fold_of = {name: one.lesson.fold for one in lectures for name in one.lesson.conversation.dialogs}
    dialogs = dict(corpus.dialogs)
    for code, ones in corpus.fitted.items():
        dialogs |= {
            f"{code}:{name}": one._replace(name=f"{code}:{name}")
            for name, one in dialogs_of(ones, kinds_of(list(corpus.written[code]))).items()
        }

    def without(fold: int | None) -> Compatibility:
        inside = {name: one for name, one in dialogs.items() if fold is None or fold_of.get(name) != fold}
        return fit_compatibility(inside, corpus.vectors, steps=STEPS, seed=seed)

    keys: list[int | None] = [None, *range(FOLDS)]
    return dict(zip(keys, each(keys, without), strict=True))


def fit(
    lectures: Sequence[Lecture],
    way: Way,
    seed: int,
    learned: Mapping[int | None, Compatibility] | None = None,
) -> Fitted:
    """Fit the networks for one input, as `training.course` does, with folds left out."""

    def grown(networks: Mapping[int, Networks] | None, again: Mapping[int, Networks] | None) -> list[Grown]:
        def one(lecture: Lecture) -> Grown:
            fold = lecture.lesson.fold
            held = (networks[fold] if networks else None, again[fold] if again else None)
            same = learned[fold] if learned else None
            return grow(lecture.lesson.conversation, way, *held, Reader(lecture.phrases, NO_WORDS), same)

        return each(lectures, one)

    def without_folds(later: bool, several: Sequence[Grown]) -> dict[int, Networks]:
        def without(fold: int) -> Networks:
            outside = [
                (one.later if later else one.states, lecture.lesson)
                for one, lecture in zip(several, lectures, strict=True)
                if lecture.lesson.fold != fold
            ]
            return fit_states(outside, AGAIN if later else ROUGH, 1, seed)

        return dict(zip(range(FOLDS), each(list(range(FOLDS)), without), strict=True))

    networks = without_folds(False, grown(None, None))
    placed = grown(networks, None)
    again = without_folds(True, placed)
    placed = grown(networks, again)
    met = [(one, lecture.lesson) for one, lecture in zip(placed, lectures, strict=True)]

    def last(later: bool) -> Networks:
        states = [(one.later if later else one.states, lesson) for one, lesson in met]
        return fit_states(states, AGAIN if later else RECIPE, NETWORKS, seed, BETWEEN)

    final, looks = each([False, True], last)
    return Fitted(way, final, looks, NO_WORDS, learned[None] if learned else None)


def measure(corpus: Corpus, fitted: Sequence[Fitted]) -> None:
    """Print the figures of the second half of the conversations, by language."""
    for one in fitted:
        counts = {}
        for code, conversations in corpus.measured.items():
            reader = Reader(phrases_in(code), NO_WORDS)
            held = (one.way, one.networks, one.again, reader, one.learned)
            grown = each(conversations, lambda talk, held=held: grow(talk, *held))  # type: ignore[misc]
            together = tally([_one_variant(talk) for talk in conversations], grown)
            counts[code] = together[""]
        show(f"{one.way}: languages", counts)


def _one_variant(one: Conversation) -> Conversation:
    return Conversation("", one.turns, one.dialogs, one.humans, one.answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    data.add_argument("--cache", type=Path, help="an .npz file for the embeddings")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("fit", parents=[data], help="fit, measure and write")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--out", type=Path, required=True, help="the file to write")
    figures = commands.add_parser("measure", parents=[data], help="measure a file of weights")
    figures.add_argument("file", type=Path, nargs="?", default=weights.SHIPPED)
    options = parser.parse_args()
    corpus = read(options.data, options.cache, learning=options.command == "fit")
    if options.command == "measure":
        measure(corpus, weights.read_neutral(options.file))
        return
    lectures = lectures_of(corpus, options.seed)
    fitted: list[Fitted] = []
    learned = learn(corpus, lectures, options.seed)
    for way in weights.NEUTRAL:
        fitted.append(fit(lectures, way, options.seed, learned if way == "multilingual" else None))
        measure(corpus, fitted[-1:])
    # Networks without learned similarities are right where the similarities mislead, so both are combined.
    fitted[0] = weights.together(fitted[0], fitted[1])
    measure(corpus, fitted[:1])
    weights.write_neutral(options.out, fitted)


if __name__ == "__main__":
    main()

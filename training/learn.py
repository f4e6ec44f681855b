"""Fitting of small listwise networks and of similarities of messages and turns, in NumPy.

All fits use Adam with decoupled weight decay and a learning rate that follows a cosine schedule.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from langchain_threadmem.selection.features.cues import terms
from langchain_threadmem.selection.features.phrases import phrases_in
from langchain_threadmem.selection.features.similarity import (
    RAREST,
    Compatibility,
    WordVectors,
    answer_words,
    message_words,
)
from langchain_threadmem.selection.features.table import FEATURES
from langchain_threadmem.selection.model import WIDEST, Networks
from training.corpus import SPOKEN
from training.sources import Dialog, Floats, Pools, Vectors

Table = NDArray[np.float64]
Rows: TypeAlias = Floats | sparse.csr_array
WORD_RANK = 48
WORD_LENGTH = 2.0
"""The mean length of the initial vectors of words."""
WORD_STEPS = 1500
WORD_DIALOGS = 6
"""A word has a vector if it occurs in at least this number of dialogs, from more than one source."""
CENTERS = 64
TERM_DIALOGS = 3
"""A term is common if it occurs in at least this number of dialogs, from more than one source."""
LOGISTIC_STEPS = 200
Arrays = dict[str, Floats]


def _group(names: str, *, starts: str = "?") -> list[int]:
    """The columns of the given names, with or without a prefix, and those that start with `starts`."""
    parts = {prefix + name for prefix in ("", "lead_", "root_", "all_") for name in names.split()}
    return [i for i, name in enumerate(FEATURES) if name in parts or name.startswith(starts)]


GROUPS = (
    _group("answer human nearest thread thread_best thread_human opening soft_thread sibling"),
    _group("raw raw_thread raw_best familiar"),
    _group("compatible compatible_before same soft_same own_fit child_fit child_lead closing opener"),
    _group("follows follows_before own_follows child_follows child_follows_lead closing_words opener_words"),
    _group("answer_words turn_words thread_words only_words known values thread_values words"),
    _group("rare rare_turn rare_thread rare_share content unshared strange"),
    _group("fit", starts="fit_"),
    _group("", starts="heard_"),
    _group("before_farewell latest_asks latest_closed", starts="end_"),
)
"""Columns of one origin, dropped together at random, since each may mislead on a new kind of dialog."""


@dataclass(frozen=True)
class State:
    """A message to place: a row of features for each candidate, and the place of the right candidate."""

    rows: Floats
    right: int


@dataclass(frozen=True)
class Recipe:
    """The size of a network and the parameters of its fit."""

    hidden: int = 48
    epochs: int = 24
    batch: int = 128
    rate: float = 3e-3
    decay: float = 3e-3
    drop: float = 0.15
    """The dropout rate of hidden units; the dropout rate of columns is half of it."""
    drop_group: float = 0.05
    """The probability that a step drops a group of columns."""


class Adam:
    """Adam with decoupled weight decay; the learning rate rises for a few steps, then falls to 0.

    Args:
        held: The arrays to fit, changed in place.
        rate: The highest learning rate.
        decay: The weight decay.
        steps: The number of steps.
        warm: The number of warm-up steps.
        home: Whether the arrays decay to their initial values, instead of to 0.
    """

    def __init__(
        self, held: Arrays, rate: float, decay: float, steps: int, warm: int, *, home: bool = False
    ) -> None:
        self.held, self.rate, self.decay, self.steps, self.warm = held, rate, decay, steps, warm
        self.towards = {name: value.copy() if home else np.float32(0) for name, value in held.items()}
        self.first = {name: np.zeros_like(value) for name, value in held.items()}
        self.second = {name: np.zeros_like(value) for name, value in held.items()}
        self.step = 0

    def update(self, slopes: Arrays) -> None:
        """Move every array by one step against its gradient."""
        self.step += 1
        fall = 0.5 * (1 + np.cos(np.pi * self.step / self.steps))
        rate = self.rate * min(1.0, self.step / self.warm) * fall
        for name, value in self.held.items():
            slope = slopes[name]
            self.first[name] = 0.9 * self.first[name] + 0.1 * slope
            self.second[name] = 0.999 * self.second[name] + 0.001 * slope * slope
            mean = self.first[name] / (1 - 0.9**self.step)
            spread = np.sqrt(self.second[name] / (1 - 0.999**self.step)) + 1e-8
            drawn = self.decay * (value - self.towards[name])
            value -= (rate * (mean / spread + drawn)).astype(np.float32)


def fit_networks(
    states: Sequence[State],
    recipe: Recipe,
    count: int,
    seed: int = 0,
    *,
    weights: Sequence[float] | None = None,
    groups: Sequence[Sequence[int]] = (),
) -> Networks:
    """Fit networks that find the right candidate; they differ in their seeds.

    Args:
        states: The states to fit on.
        recipe: The size of a network and the parameters of its fit.
        count: The number of networks.
        seed: The seed of the first network.
        weights: The weight of each state; equal by default.
        groups: Groups of columns that are dropped together at random.
    """
    weighed = np.ones(len(states)) if weights is None else np.array(weights)
    weighed = (weighed / weighed.mean()).astype(np.float32)
    rows = np.concatenate([state.rows for state in states])
    mean, spread = rows.mean(0), rows.std(0)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-6)
    rows = ((rows - mean) * scale).clip(-WIDEST, WIDEST)
    sizes = np.array([len(state.rows) for state in states])
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])
    right = np.array([state.right for state in states])
    fitted = [
        _fit_network(rows, sizes, starts, right, weighed, groups, recipe, np.random.default_rng(seed + i))
        for i in range(count)
    ]
    held = [np.stack([one[name] for one in fitted]) for name in ("inner", "bias", "outer", "direct")]
    return Networks(mean, scale, *held, at_home=np.zeros(count, np.float32))


def _fit_network(
    rows: Floats,
    sizes: NDArray[np.intp],
    starts: NDArray[np.intp],
    right: NDArray[np.intp],
    weighed: Floats,
    groups: Sequence[Sequence[int]],
    recipe: Recipe,
    rng: np.random.Generator,
) -> Arrays:
    columns, hidden, count = rows.shape[1], recipe.hidden, len(sizes)
    held: Arrays = {
        "inner": (rng.normal(size=(columns, hidden)) / np.sqrt(columns)).astype(np.float32),
        "bias": np.zeros(hidden, np.float32),
        "outer": (rng.normal(size=hidden) / np.sqrt(hidden)).astype(np.float32),
        "direct": np.zeros(columns, np.float32),
    }
    batches = -(-count // recipe.batch)
    adam = Adam(held, recipe.rate, recipe.decay, recipe.epochs * batches, warm=50)
    for _ in range(recipe.epochs):
        order = rng.permutation(count)
        for begin in range(0, count, recipe.batch):
            drawn = order[begin : begin + recipe.batch]
            size = sizes[drawn]
            first = np.concatenate([[0], size.cumsum()[:-1]])
            seen = rows[np.repeat(starts[drawn] - first, size) + np.arange(size.sum())]
            seen = seen * _columns(rng, columns, groups, recipe)
            kept = (rng.random(hidden) > recipe.drop) / (1 - recipe.drop)
            raw = seen @ held["inner"] + held["bias"]
            gate = ((raw > 0) * kept).astype(np.float32)
            active = raw * gate
            scores = active @ held["outer"] + seen @ held["direct"]
            chances = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), size))
            chances /= np.repeat(np.add.reduceat(chances, first), size)
            chances[first + right[drawn]] -= 1
            slope = (chances * np.repeat(weighed[drawn], size) / len(drawn)).astype(np.float32)
            back = np.outer(slope, held["outer"]) * gate
            adam.update(
                {
                    "inner": seen.T @ back,
                    "bias": back.sum(0),
                    "outer": active.T @ slope,
                    "direct": seen.T @ slope,
                }
            )
    return held


def _columns(
    rng: np.random.Generator, columns: int, groups: Sequence[Sequence[int]], recipe: Recipe
) -> NDArray[np.bool_]:
    """The columns of a step, without single columns and whole groups that are dropped at random."""
    kept: NDArray[np.bool_] = rng.random(columns) > recipe.drop / 2
    for group in groups:
        if rng.random() < recipe.drop_group:
            kept[list(group)] = False
    return kept


def fit_compatibility(
    dialogs: Mapping[str, Dialog], vectors: Vectors, *, steps: int, seed: int
) -> Compatibility:
    """Fit the similarity of messages and turns: products over fixed vectors, and two logistic regressions.

    One product finds the turn that a message continues among all turns of a few dialogs, the other finds any
    earlier turn of its dialog. The regressions predict the first message and the last turn of a dialog.
    """
    held = _fit_products(list(dialogs.values()), vectors, steps, seed)
    said = [turn for one in dialogs.values() for turn in one.turns]
    humans = np.array([vectors[human] for human, _ in said])
    answers = np.array([vectors[answer] for _, answer in said])
    opener, closing = _fit_ends(list(dialogs.values()), humans, answers)
    # The written dialogs differ from each other on purpose, so they define no familiar style.
    made = np.array([one.source not in SPOKEN for one in dialogs.values() for _ in one.turns])
    return Compatibility(**held, opener=opener, closing=closing, centers=_centers(humans[made], seed))


def mean(several: Sequence[Compatibility]) -> Compatibility:
    """The mean of several fits; the centers are those of the last."""
    names = ("answer", "human", "thread", "opener", "closing")
    held = {name: np.mean([getattr(one, name) for one in several], 0) for name in names}
    return Compatibility(**held, centers=several[-1].centers)


def mean_word_vectors(several: Sequence[WordVectors]) -> WordVectors:
    """The mean of several fits on the same dialogs, whose word vectors have the same initial values."""
    first = several[0]
    assert all(one.vocabulary == first.vocabulary for one in several)
    names = ("answer", "message", "opener", "closing")
    held = {name: np.mean([getattr(one, name) for one in several], 0) for name in names}
    return WordVectors(first.vocabulary, **held, common=first.common, rarity=first.rarity)


def _centers(rows: Floats, seed: int) -> Floats:
    """The cluster centers of the rows as unit vectors, by spherical k-means."""
    centers = rows[np.random.default_rng(seed).permutation(len(rows))[:CENTERS]]
    for _ in range(10):
        nearest = (rows @ centers.T).argmax(1)
        for place in range(len(centers)):
            mean = rows[nearest == place].sum(0)
            size = float(np.linalg.norm(mean))
            if size > 0.0:
                centers[place] = mean / size
    return centers


def words_of(texts: Iterable[str]) -> set[str]:
    """The words of texts that are read for `WordVectors`."""
    return {word for text in texts for word in message_words(text) | answer_words(text)}


def holders_of(dialogs: Iterable[Dialog]) -> Mapping[str, set[str]]:
    """The names of the dialogs that contain each word."""
    holders: dict[str, set[str]] = defaultdict(set)
    for one in dialogs:
        for word in words_of(text for turn in one.turns for text in turn):
            holders[word].add(one.name)
    return holders


def fit_wording(
    dialogs: Mapping[str, Dialog], vectors: Vectors, *, steps: int = WORD_STEPS, seed: int
) -> WordVectors:
    """Fit the similarity of messages and turns from the words that several sources have in common.

    The initial vector of a word is its embedding, projected on the principal components of all embeddings,
    and weight decay pulls the vector to this value: words with similar embeddings, such as "train" and
    "tram", keep similar vectors.
    """
    said = list(dialogs.values())
    words = sorted(
        word
        for word, names in holders_of(said).items()
        if len(names) >= WORD_DIALOGS and len({name.split(":")[0] for name in names}) > 1
    )
    none = np.zeros((len(words), WORD_RANK), np.float32)
    empty = WordVectors(tuple(words), none, none, none[:, 0], none[:, :2].T)

    def table(texts: Iterable[set[str]]) -> sparse.csr_array:
        found = [empty.shares(text) for text in texts]
        ends = np.cumsum([0, *(len(at) for at, _ in found)])
        shares = np.repeat(np.float32([share for _, share in found]), np.diff(ends))
        columns = np.array([column for at, _ in found for column in at], np.int32)
        return sparse.csr_array((shares, columns, ends), shape=(len(found), len(words)))

    humans = {one.name: table(message_words(human) for human, _ in one.turns) for one in said}
    answers = {one.name: table(answer_words(answer) for _, answer in one.turns) for one in said}
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    pools = Pools(said)
    begun = _main_directions(np.array([vectors[word] for word in words]), WORD_RANK)
    begun *= WORD_LENGTH / np.float32((begun * begun).sum(1).mean() ** 0.5)
    held: Arrays = {"answer": begun, "message": begun.copy()}
    adam, drop, bags = Adam(held, 1e-2, 0.04, steps, warm=100, home=True), 0.25, 4
    for _ in range(steps):
        slopes = {name: np.zeros_like(value) for name, value in held.items()}
        for _ in range(bags):
            drawn = pools.draw(rng, rng.choice([2, 3, 4, 6, 8]) + 1, 0.6, 0.2)
            heard = sparse.vstack([humans[one.name] for one in drawn], "csr")
            ended = sparse.vstack([answers[one.name] for one in drawn], "csr")
            heard.data *= noise.random(heard.nnz, np.float32) > drop
            ended.data *= noise.random(ended.nnz, np.float32) > drop
            future, true, _ = _relations(drawn)
            weight = true.any(1, keepdims=True) / max(true.sum(), 1) / bags
            _descend(slopes, held, ended, None, heard, ("answer", "", "message"), future, true, weight)
        adam.update(slopes)
    all_humans = sparse.vstack([humans[one.name] for one in said], "csr")
    all_answers = sparse.vstack([answers[one.name] for one in said], "csr")
    opener, closing = _fit_ends(said, all_humans, all_answers)
    return WordVectors(tuple(words), held["answer"], held["message"], opener, closing, *_rarities(said))


def _main_directions(rows: Floats, count: int) -> Floats:
    """The rows, centred and of length 1, projected on their first `count` principal components."""
    rows = rows - rows.mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + np.float32(1e-9)
    main = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :count]
    return (rows @ main).astype(np.float32)


def _rarities(dialogs: Sequence[Dialog]) -> tuple[tuple[str, ...], Floats]:
    """The terms of more than one source and the rarity of each, with equal weights of all sources."""
    sizes = Counter(one.source for one in dialogs)
    shares: dict[str, Counter[str]] = defaultdict(Counter)
    for one in dialogs:
        for term in {term for turn in one.turns for text in turn for term in terms(text, phrases_in("en"))}:
            shares[term][one.source] += 1
    found = {}
    for term, counts in shares.items():
        if counts.total() >= TERM_DIALOGS and len(counts) > 1:
            share = sum(count / sizes[source] for source, count in counts.items()) / len(sizes)
            found[term] = min(-float(np.log(share)), RAREST)
    common = sorted(term for term, rarity in found.items() if rarity < RAREST)
    return tuple(common), np.array([found[term] for term in common], np.float32)


def _relations(
    drawn: Sequence[Dialog],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """The relations of each message to each turn: not yet said, continued, earlier in its dialog."""
    dialog = np.repeat(np.arange(len(drawn)), [len(one.turns) for one in drawn])
    place = np.concatenate([np.arange(len(one.turns)) for one in drawn])
    same = dialog[:, None] == dialog
    future = same & (place >= place[:, None])
    return future, same & (place == place[:, None] - 1), same & ~future


def _fit_products(dialogs: Sequence[Dialog], vectors: Vectors, steps: int, seed: int) -> Arrays:
    """Fit each product as two factors that decay to their initial values.

    With the initial values the products are cosine similarities, which are more reliable for an unseen kind
    of dialog than similarities that are learned on other kinds.
    """
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    pools = Pools(dialogs)
    texts = np.array([vectors[text] for dialog in dialogs for turn in dialog.turns for text in turn])
    # The principal directions, scaled to the range of a softmax.
    texts = texts - texts.mean(0)
    main = np.linalg.eigh(texts.T @ texts)[1].astype(np.float32) * np.float32(12**0.5)
    begun = {"answer": 0.7, "human": 0.3, "message": 1.0, "thread": 0.5, "topic": 1.0}
    held: Arrays = {name: np.float32(share) * main for name, share in begun.items()}
    adam, drop, bags = Adam(held, 2e-3, 1.0, steps, warm=100, home=True), 0.1, 4
    for _ in range(steps):
        slopes = {name: np.zeros_like(value) for name, value in held.items()}
        for _ in range(bags):
            drawn = pools.draw(rng, rng.choice([2, 3, 4, 6, 8]) + 1, 0.6, 0.2)
            kept = (noise.random(texts.shape[1]) > drop) / (1 - drop)
            humans = np.array([vectors[human] for one in drawn for human, _ in one.turns]) * kept
            answers = np.array([vectors[answer] for one in drawn for _, answer in one.turns]) * kept
            humans, answers = humans.astype(np.float32), answers.astype(np.float32)
            future, true, earlier = _relations(drawn)
            weight = true.any(1, keepdims=True) / max(true.sum(), 1) / bags
            _descend(
                slopes, held, answers, humans, humans, ("answer", "human", "message"), future, true, weight
            )
            both = answers + humans
            _descend(slopes, held, both, None, humans, ("thread", "", "topic"), future, earlier, weight)
        adam.update(slopes)
    factors = {"answer": "message", "human": "message", "thread": "topic"}
    return {name: held[name] @ held[other].T for name, other in factors.items()}


def _descend(
    slopes: Arrays,
    held: Arrays,
    answers: Rows,
    humans: Rows | None,
    messages: Rows,
    names: tuple[str, str, str],
    future: NDArray[np.bool_],
    right: NDArray[np.bool_],
    weight: Table,
) -> None:
    """Add the gradient of a product, whose target is a right turn among all turns not in `future`."""
    key, second, query = names
    keys = answers @ held[key]
    if humans is not None:
        keys = keys + humans @ held[second]
    queries = messages @ held[query]
    scores = queries @ keys.T
    scores[future] = -1e9
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    good = chances * right
    slope = ((chances - good / (good.sum(1, keepdims=True) + 1e-9)) * weight).astype(np.float32)
    slopes[query] += messages.T @ (slope @ keys)
    back = slope.T @ queries
    slopes[key] += answers.T @ back
    if humans is not None:
        slopes[second] += humans.T @ back


def _fit_ends(dialogs: Sequence[Dialog], humans: Rows, answers: Rows) -> tuple[Floats, Floats]:
    """The weights of two regressions: a message is the first of its dialog, a turn is the last."""
    sizes = Counter(one.source for one in dialogs for _ in one.turns)
    weights = np.concatenate([np.full(len(one.turns), sizes[one.source] ** -0.5) for one in dialogs])
    weights /= weights.mean()
    places = np.concatenate([np.arange(len(one.turns)) for one in dialogs])
    left = np.concatenate([np.arange(len(one.turns))[::-1] for one in dialogs])
    opener = _logistic(humans, places == 0, weights)
    beside = np.hstack if isinstance(humans, np.ndarray) else sparse.hstack
    closing = _logistic(beside([answers, humans]), left == 0, weights)
    return opener, closing.reshape(2, -1)


def _logistic(rows: Rows, right: NDArray[np.bool_], weights: Table, penalty: float = 1.0) -> Floats:
    """The weights of a logistic regression with an L2 penalty, without the constant."""
    held: Arrays = {
        "weights": np.zeros(rows.shape[1], np.float32),
        "constant": np.zeros(1, np.float32),
    }
    adam = Adam(held, 0.1, 0.0, LOGISTIC_STEPS, warm=10)
    each = (weights / weights.sum()).astype(np.float32)
    for _ in range(LOGISTIC_STEPS):
        chances = 1 / (1 + np.exp(-(rows @ held["weights"] + held["constant"])))
        back = (each * (chances - right)).astype(np.float32)
        adam.update(
            {
                "weights": rows.T @ back + penalty / rows.shape[0] * held["weights"],
                "constant": back.sum(keepdims=True),
            }
        )
    return held["weights"]

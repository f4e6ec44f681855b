"""The fit of the selector's networks on trees that networks grow, with folds and families left out.

In use a selector continues a tree that contains its own errors, and one error causes others. The networks are
therefore fitted on the states of the true trees first, then on the states of trees that these networks grew,
and the networks for second looks on the results. Each conversation is grown and described by networks and
tables that were fitted without it, so that errors are as frequent as in use: half of the conversations by
those fitted on the other folds (dialogs that share a conversation share a fold), half by those fitted on the
other families of sources.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from langchain_threadmem.selection.choice import prior_of, stored_chances, weigh
from langchain_threadmem.selection.features.phrases import phrases_in
from langchain_threadmem.selection.features.similarity import Compatibility, WordVectors
from langchain_threadmem.selection.features.table import describe
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import Networks, Way
from langchain_threadmem.selection.second_look import look_again
from langchain_threadmem.selection.turn_ends import TurnEnd
from training.corpus import PARTS, SPOKEN
from training.learn import (
    GROUPS,
    Recipe,
    State,
    fit_compatibility,
    fit_networks,
    fit_wording,
    mean,
    mean_word_vectors,
)
from training.sources import Conversation, Dialog, Pools, Vectors, dialogs_of, folds
from training.weave import LONGEST, weave

T = TypeVar("T")
FOLDS = 4
WOVEN = 2200
SHARES = (1.0, 1 / 3)
"""The relative frequency with which each course draws a dialog of `training/dialogs`. These dialogs are
numerous and have one author."""
LIKELIEST = 5
"""The number of likeliest candidates of a placed turn that later choices and second looks are fitted with."""
MEANS = 4
"""The number of fits of the learned similarities for each course, whose mean is used."""
NETWORKS = 6
"""The number of networks of each of the two kinds."""
BALANCE = 0.5
"""The weight of a family of sources is its number of states to the power of 1 - BALANCE."""
OWN = "written"
"""The family of the conversations that were written for this project."""
WRITTEN = {OWN, *SPOKEN.values()}


class Weights(NamedTuple):
    """The weights of states; a state of a woven conversation has the weight 1.

    Attributes:
        true: The weight for a conversation that is not woven.
        apart: The factor for a conversation that is described without its family.
        own: The factor for a conversation that was written for this project.
    """

    true: float
    apart: float
    own: float


AT_HOME, ELSEWHERE = Weights(5.0, 0.05, 0.25), Weights(1.0, 1.0, 1.0)
"""The weights for networks for familiar conversations, and for networks for other conversations."""
BETWEEN = Weights(2.0, 1.0, 1.0)
STEPS = 1200
RECIPE, OF_SEVERAL = Recipe(), Recipe(epochs=16)
"""The recipes for the conversations of one course, and of several courses."""
ROUGH = Recipe(epochs=10)
"""The recipe for networks that only grow trees."""
AGAIN = Recipe(hidden=24, epochs=12)
"""The recipe for networks for second looks."""


@dataclass(frozen=True)
class Grown:
    """A conversation whose turns networks have placed.

    Attributes:
        chosen: The chosen parents.
        sure: The probability of each chosen parent.
        states: The states in which the parents were chosen.
        later: The states of second looks.
        believed: The parents after second looks.
    """

    chosen: Sequence[int | None]
    sure: Sequence[float]
    states: Sequence[State]
    later: Sequence[State]
    believed: Sequence[int | None]


@dataclass
class Tally:
    """Counts of one variant."""

    messages: int = 0
    right: int = 0
    last: int = 0
    returns: int = 0
    returns_right: int = 0
    branches: int = 0
    branches_right: int = 0
    roots: int = 0
    roots_chosen: int = 0
    roots_right: int = 0


@dataclass(frozen=True)
class Fitted:
    """The fit for one input.

    Attributes:
        way: The input.
        networks: The networks.
        again: The networks for second looks.
        word_vectors: The learned word vectors.
        learned: The similarities learned on vectors.
        of_agents: The networks, and those for second looks, for agents' conversations, if there are any.
    """

    way: Way
    networks: Networks
    again: Networks
    word_vectors: WordVectors
    learned: Compatibility | None
    of_agents: tuple[Networks, Networks] | None = None


def grow(
    one: Conversation,
    way: Way,
    networks: Networks | None,
    again: Networks | None,
    reader: Reader,
    learned: Compatibility | None,
) -> Grown:
    """Place the turns one by one by `networks`, with second looks by `again`.

    Without networks each turn is placed at its true parent.
    """
    tree = list[TurnEnd]()
    chosen: list[int | None] = []
    sure: list[float] = []
    states: list[State] = []
    later: list[State] = []
    for i, turn in enumerate(one.turns):
        parent = turn.previous if networks is None else None
        chances: Sequence[tuple[int | None, float]] = ()
        if tree:
            vector = None if way.endswith("words") else one.humans[i]
            found = describe(tree, one.humans[:i], one.answers[:i], turn.human, vector, reader, learned)
            if turn.previous in found.ids:
                states.append(State(found.rows.astype(np.float32), found.ids.index(turn.previous)))
            if networks is not None:
                prior = prior_of(tree, turn.human, reader, way)
                chances = stored_chances(weigh(networks, found, tree, prior=prior))[:LIKELIEST]
                parent = chances[0][0]
        chosen.append(parent)
        sure.append(chances[0][1] if chances else 1.0)
        placed = turn._replace(previous=parent, chances=chances)
        vector = None if way.endswith("words") else one.answers[i]
        look = look_again(tree, one.humans[:i], one.answers[:i], placed, vector, reader, learned)
        if look is not None and turn.previous in look.ids:
            later.append(State(look.rows.astype(np.float32), look.ids.index(turn.previous)))
        if look is not None and again is not None:
            revised = look.revised(again)
            placed = placed._replace(previous=revised[0][0], chances=revised)
        tree.append(placed)
    return Grown(chosen, sure, states, later, [end.previous for end in tree])


@dataclass(frozen=True)
class Lesson:
    """A conversation for fitting."""

    conversation: Conversation
    fold: int
    families: frozenset[str]
    apart: str = ""
    """The family that is left out for this conversation, instead of its fold."""

    @property
    def key(self) -> int | str:
        """The fold or the family that is left out for this conversation."""
        return self.apart or self.fold


_FAMILIES = {
    **{"sgdm": "sgd", "tm4": "tm3", "tiage": "chat", "memorybank": "chat", "locomo": "chat"},
    **dict.fromkeys(PARTS, OWN),
    **SPOKEN,
}


def family(source: str) -> str:
    """The family of a source, which contains the sources of one style."""
    return _FAMILIES.get(source, source)


def joined(at_home: Networks, elsewhere: Networks) -> Networks:
    """Networks of two kinds as one set; they were fitted on the same rows, so mean and scale are equal."""
    arrays = ("inner", "bias", "outer", "direct")
    held = [np.concatenate([getattr(at_home, name), getattr(elsewhere, name)]) for name in arrays]
    kinds = np.repeat(np.float32([1, 0]), [len(at_home.bias), len(elsewhere.bias)])
    return Networks(at_home.mean, at_home.scale, *held, kinds)


def each(items: Sequence[Any], work: Callable[[Any], T]) -> list[T]:
    """Do the work for each item, on all cores that this process may use, in forked processes.

    Example:
        >>> each([1, 2, 3], lambda number: number * number)
        [1, 4, 9]
    """
    global _work
    _work = work
    with multiprocessing.get_context("fork").Pool(min(len(items), cores())) as pool:
        return pool.map(_do, items, chunksize=max(1, min(16, len(items) // 100)))


def cores() -> int:
    """The number of cores that this process may use, which `taskset` limits."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_work: Callable[[Any], Any]


def _do(item: Any) -> Any:
    return _work(item)


class Course:
    """The conversations for fitting, and the similarities learned without each fold and each family.

    The networks learn the reliability of the learned similarities, on familiar styles of dialog and on
    others. Half of the conversations are therefore described by similarities learned from the other folds,
    half by similarities learned from the other families of sources.

    Args:
        conversations: Conversations that are not woven.
        more: Dialogs to weave, beside those of the conversations.
        kind_of: The kind of each dialog of the conversations.
        vectors: The embeddings of all texts.
        share: The relative frequency with which a dialog of `training/dialogs` is drawn.
        seed: The seed of all random numbers.
    """

    def __init__(
        self,
        conversations: Sequence[Conversation],
        more: Mapping[str, Dialog],
        kind_of: dict[str, str],
        vectors: Vectors,
        share: float = SHARES[-1],
        seed: int = 0,
    ) -> None:
        self.seed = seed
        self.dialogs = dialogs_of(conversations, kind_of)
        for name, one in more.items():
            self.dialogs[name] = one._replace(share=share) if one.source in SPOKEN else one
        self.vectors = vectors
        place = folds(conversations, FOLDS)
        # Dialogs of one kind share a fold, so that they are woven with each other.
        of_kind = {kind: i % FOLDS for i, kind in enumerate(dict.fromkeys(one.kind for one in more.values()))}
        place |= {name: of_kind[one.kind] for name, one in more.items()}
        family_of = {name: family(one.source) for name, one in self.dialogs.items()}
        self.families = sorted(set(family_of.values()))

        def lesson(one: Conversation, apart: bool) -> Lesson:
            families = frozenset(family_of[name] for name in one.dialogs)
            alone = min(families) if apart and len(families) == 1 else ""
            return Lesson(one, place[one.dialogs[0]], families, alone)

        self.lessons = [lesson(one, apart=False) for one in conversations]
        self.lessons += [one for one in (lesson(c, apart=True) for c in conversations) if one.apart]
        rng = random.Random(1 + seed)
        for fold in range(FOLDS):
            inside = [one for name, one in self.dialogs.items() if place[name] == fold]
            pools = Pools(inside)
            self.lessons += [
                lesson(weave(rng, pools, vectors), apart=False) for _ in range(WOVEN // FOLDS // 2)
            ]
            for name in self.families:
                pools = Pools([one for one in inside if family(one.source) == name])
                self.lessons += [
                    lesson(weave(rng, pools, vectors), apart=True)
                    for _ in range(WOVEN // FOLDS // 2 // len(self.families))
                ]
        keys: list[int | str] = [*range(FOLDS), *self.families]
        parts = [self.dialogs] + [
            {name: one for name, one in self.dialogs.items() if key not in (place[name], family_of[name])}
            for key in keys
        ]
        counts = [MEANS] + [1] * len(keys)
        self.learned, *rest = each(list(zip(parts, counts, strict=True)), self._learn)
        self.without = dict(zip(keys, rest, strict=True))

    def _learn(self, part: tuple[Mapping[str, Dialog], int]) -> tuple[WordVectors, Compatibility]:
        dialogs, count = part
        seeds = range(self.seed * MEANS, self.seed * MEANS + count)
        return (
            mean_word_vectors([fit_wording(dialogs, self.vectors, seed=seed) for seed in seeds]),
            mean([fit_compatibility(dialogs, self.vectors, steps=STEPS, seed=seed) for seed in seeds]),
        )

    def go(self, way: Way) -> list[tuple[Grown, Lesson]]:
        """Grow each conversation by networks that were fitted without it, and print their figures."""
        true = self._grow(way)
        networks = self._fit_parts([one.states for one in true], ROUGH)
        grown = self._grow(way, networks)
        again = self._fit_parts([one.later for one in grown], AGAIN)
        grown = self._grow(way, networks, again)
        self._show(way, grown)
        return list(zip(grown, self.lessons, strict=True))

    def _show(self, way: Way, grown: Sequence[Grown]) -> None:
        read = [i for i, one in enumerate(self.lessons) if one.conversation.variant != "woven"]
        for title, apart in (("other folds", False), ("other families", True)):
            chosen = [i for i in read if bool(self.lessons[i].apart) == apart]
            show(
                f"{way}: {title}",
                tally([self.lessons[i].conversation for i in chosen], [grown[i] for i in chosen]),
            )
        parts: dict[str, list[int]] = defaultdict(list)
        for i, one in enumerate(self.lessons):
            if one.conversation.variant == "woven" and one.apart:
                parts[one.apart].append(i)
        counts: dict[str, Tally] = {}
        for name, places in parts.items():
            told = tally([self.lessons[i].conversation for i in places], [grown[i] for i in places])
            counts[f"woven {name}"] = told["woven"]
        show(f"{way}: other families", counts)

    def _grow(
        self,
        way: Way,
        networks: Mapping[int | str, Networks] | None = None,
        again: Mapping[int | str, Networks] | None = None,
    ) -> list[Grown]:
        def one(lesson: Lesson) -> Grown:
            word_vectors, learned = self.without[lesson.key]
            return grow(
                lesson.conversation,
                way,
                networks[lesson.key] if networks else None,
                again[lesson.key] if again else None,
                Reader(phrases_in("en"), word_vectors),
                learned if way == "local" else None,
            )

        return each(self.lessons, one)

    def _fit_parts(self, states: Sequence[Sequence[State]], recipe: Recipe) -> dict[int | str, Networks]:
        def without(key: int | str) -> Networks:
            outside = [
                (its, lesson)
                for its, lesson in zip(states, self.lessons, strict=True)
                if key != lesson.fold and key not in lesson.families
            ]
            return fit_states(outside, recipe, 1, self.seed)

        return dict(zip(self.without, each([*self.without], without), strict=True))


def fit(courses: Sequence[Course], way: Way) -> Fitted:
    """Fit the networks for one input, and print figures on left-out conversations.

    The learned similarities differ between two fits, by 0.7 points in the final figures. The networks for the
    local model are therefore fitted on the conversations of all courses, and the similarities are the means
    of all fits.
    """
    several = courses if way == "local" else courses[-1:]
    grown = [one for course in several for one in course.go(way)]
    recipe = RECIPE if len(several) == 1 else OF_SEVERAL
    states = [(one.states, lesson) for one, lesson in grown]
    first = 2 * NETWORKS * courses[0].seed
    kinds = [(first, AT_HOME), (first + NETWORKS, ELSEWHERE)]
    both = each(kinds, lambda kind: fit_states(states, recipe, NETWORKS, *kind))
    again = fit_states([(one.later, lesson) for one, lesson in grown], AGAIN, NETWORKS, first)
    word_vectors = mean_word_vectors([course.learned[0] for course in courses])
    learned = mean([course.learned[1] for course in courses]) if way == "local" else None
    return Fitted(way, joined(*both), again, word_vectors, learned)


def fit_states(
    met: Iterable[tuple[Sequence[State], Lesson]],
    recipe: Recipe,
    count: int,
    seed: int = 0,
    weights: Weights = BETWEEN,
) -> Networks:
    """Fit networks on the states of lessons; the weight of a family is the root of its number of states."""
    states = [(state, lesson) for its, lesson in met for state in its]
    sizes = Counter(name for _, one in states for name in one.families)
    weighed = [
        float(np.mean([sizes[name] ** -BALANCE for name in one.families]))
        # A longer conversation has the weight of a conversation of `LONGEST` turns.
        * min(1.0, LONGEST / len(one.conversation.turns))
        * (1.0 if one.conversation.variant == "woven" else weights.true)
        * (weights.apart if one.apart else 1.0)
        * (weights.own if one.families <= WRITTEN else 1.0)
        for _, one in states
    ]
    chosen = [state for state, _ in states]
    return fit_networks(chosen, recipe, count, seed, weights=weighed, groups=GROUPS)


def tally(conversations: Sequence[Conversation], grown: Sequence[Grown]) -> dict[str, Tally]:
    """The counts by variant."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for one, its in zip(conversations, grown, strict=True):
        counts = tallies[one.variant]
        last: list[int | None] = [None, *(turn.id for turn in one.turns[:-1])]
        for i, (mine, turn, before) in enumerate(zip(its.chosen, one.turns, last, strict=True)):
            true = turn.previous
            counts.messages += 1
            counts.right += mine == true
            counts.last += before == true
            counts.returns += one.kind(i) == "return"
            counts.returns_right += one.kind(i) == "return" and mine == true
            counts.branches += one.kind(i) == "branch"
            counts.branches_right += one.kind(i) == "branch" and mine == true
            # The first message of a conversation is a root in every tree.
            counts.roots += i > 0 and true is None
            counts.roots_chosen += i > 0 and mine is None
            counts.roots_right += i > 0 and mine is None and true is None
    return dict(tallies)


def show(title: str, tallies: dict[str, Tally]) -> None:
    """Print a table of percentages."""
    columns = ("right", "last", "returns", "root P", "root R", "branches")
    print(f"\n{title:24}" + "".join(f"{name:>9}" for name in (*columns, "messages")))

    def percent(part: int, whole: int) -> float:
        return 100 * part / max(whole, 1)

    for variant, tally in tallies.items():
        print(
            f"  {variant:22}{percent(tally.right, tally.messages):9.1f}"
            f"{percent(tally.last, tally.messages):9.1f}"
            f"{percent(tally.returns_right, tally.returns):9.1f}"
            f"{percent(tally.roots_right, tally.roots_chosen):9.1f}"
            f"{percent(tally.roots_right, tally.roots):9.1f}"
            f"{percent(tally.branches_right, tally.branches):9.1f}{tally.messages:9}"
        )
    right = np.mean([percent(tally.right, tally.messages) for tally in tallies.values()])
    last = np.mean([percent(tally.last, tally.messages) for tally in tallies.values()])
    back = percent(sum(t.returns_right for t in tallies.values()), sum(t.returns for t in tallies.values()))
    print(f"  {'macro (returns: all)':22}{right:9.1f}{last:9.1f}{back:9.1f}", flush=True)

"""The placing rule: the place in the tree of each message of a list.

A LangGraph checkpoint contains a full list of messages, most of which the tree already stores. The rule
places each message `m` after its predecessor `p`; the first clause that applies decides:

1. A place with this id and content under `p` is used, whatever its state (time travel): a place that is under
   `p` now, else a place that was written under `p` and has been moved.
2. If `p` is a new version of `m`'s stored parent, made by this list, `m` moves under `p` with all messages
   below it. If `p` is a system message, `m` stays, since system messages are not part of the conversation. A
   former version in such a list becomes live again.
3. A place with this id and content elsewhere is used, and a new span begins.
4. A place with this id and other content is superseded by a new live version. It is under the parent of that
   place if that parent is earlier in the list or the place is a root, else under `p`.
5. A new id becomes an aside if a stored message follows it in the list (for example a summary put into a
   conversation), else a live child of `p`, or of the tip if the list has no `p`. A tool result directly after
   its call always becomes a live child of `p`; the message that followed `p` moves under the result if it is
   next in the list.

`p` is the nearest predecessor that is not an aside. Asides are not part of the conversation: no message is
placed under an aside, and a new version of an aside is placed like a new id and supersedes nothing.

A new message is placed under the *home* of `p`. If a list contains the former place of a moved message, the
home of `p` is the current place of that message, so that an answer follows its question. A former version of
a conversation (its messages were edited, and others followed) is its own home, so that time travel continues
the former version. Messages that a former version shares with the current version are stored once, in the
current version; a new message below them gets superseded copies of the shared messages above it.

The rule does not depend on the order of writes. It moves only messages after a new version or a tool result;
every other move needs the verb `place`. `spans` keeps the order of the list, so a list that was trimmed,
reordered or summarized reads back exactly. The rule has two tested properties: a list of stored messages adds
no node, and a message id has at most one live place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.schema import State


@dataclass(frozen=True, slots=True)
class Element:
    """One message of an incoming list.

    Attributes:
        message_id: Id of the message.
        content: The full content, for example the stored body; compared by `==`.
        system: Whether the message is a system message.
        result: Whether the message is a tool result directly after its call.
    """

    message_id: str
    content: Hashable
    system: bool = False
    result: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A stored node of the tree.

    Attributes:
        key: Key of the node; keys are not in the order of time.
        parent: Key of the parent; `None` for a root.
        message_id: Id of the message.
        content: As in `Element`.
        state: Live, superseded or aside.
        former: Key of the node that it was written under, if it was moved.
        seq: Number of the node, which has no effect on the rule.
    """

    key: int
    parent: int | None
    message_id: str
    content: Hashable
    state: State = State.LIVE
    former: int | None = None
    seq: int = 0

    @property
    def written(self) -> int | None:
        """Key of the node that it was written under."""
        return self.parent if self.former is None else self.former


@dataclass(frozen=True, slots=True)
class Planned:
    """The new place of the element at `index` of the same plan; it has no key yet."""

    index: int


@dataclass(frozen=True, slots=True)
class Use:
    """The element is the stored node `key`."""

    key: int


@dataclass(frozen=True, slots=True)
class Follow:
    """The element is the stored node `key`, which moves under an earlier element of the plan."""

    key: int
    parent: Planned


@dataclass(frozen=True, slots=True)
class New:
    """The element needs a new node.

    Attributes:
        parent: Key of a stored node, or an earlier element of the plan; `None` for a root.
        state: Live or aside; superseded for a copy.
        supersedes: Key of the live node with the same message id that it replaces.
        copies: Key of the node that it is a copy of.
        beside: Whether the other children of its parent stay live: a tool result placed after its call.
    """

    parent: int | Planned | None
    state: State = State.LIVE
    supersedes: int | None = None
    copies: int | None = None
    beside: bool = False


Step = Use | Follow | New


class Plan(NamedTuple):
    """The places of the messages of a list.

    Attributes:
        steps: One step for each element; apply the steps in order.
        shared: Index of the first message of the end that the list, a former version, shares with the current
            version; `None` if they share no end.
    """

    steps: list[Step]
    shared: int | None


def plan(
    elements: Sequence[Element],
    places: Mapping[str, Sequence[Place]],
    tip: int | None,
    *,
    after: int | None = None,
    home: int | None = None,
    is_before: Callable[[int], bool] = lambda key: False,
) -> Plan:
    """Decide the place of each message of a list.

    Args:
        elements: The list, or its end if `after` is given; each message id once.
        places: All stored nodes of each message id in the list; ids without nodes may be missing.
        tip: Key of the parent of a new message without a predecessor in the list.
        after: Key of the nearest node before `elements` that is not an aside, if the list begins with stored
            nodes that are not in `elements`.
        home: Key of the home of `after`; `None` if `after` is part of a former version.
        is_before: Whether the stored nodes before `elements` contain the node with a key.

    Raises:
        InputError: A message id occurs twice.

    The cost is linear in the number of elements and places.

    Example:
        >>> hello = Place(key=1, parent=None, message_id="h1", content="Hello")
        >>> plan([Element("h1", "Hello"), Element("a1", "Hi!")], {"h1": [hello]}, tip=1).steps
        [Use(key=1), New(parent=1, state=<State.LIVE: 0>, supersedes=None, copies=None, beside=False)]
        >>> plan([Element("h1", "Good day")], {"h1": [hello]}, tip=1).steps
        [New(parent=None, state=<State.LIVE: 0>, supersedes=1, copies=None, beside=False)]
    """
    _check_duplicates(elements)
    last_stored = _last_stored(elements, places)
    steps: list[Step] = []
    parent: int | Planned | None = after
    below: int | Planned | None = home  # the home of `parent`; `None` in a former version
    # For clause 2: the stored versions of `parent` if this plan adds a new version of it, and the nodes whose
    # children move under `parent`. Only versions at its place, since others could form a circle.
    versions: Set[int] = frozenset()
    beside: Set[int] = frozenset()
    after_system = False  # whether `parent` is a new version of a system message
    edits = False  # whether a message has moved under a new version
    shared: list[int] = []  # the elements at the end that a former version shares with the current version
    above: int | Planned | None = None  # the predecessor of `shared`
    listed: set[int] = set()  # the stored nodes of the list, except asides
    for index, element in enumerate(elements):
        stored = places.get(element.message_id, ())
        same = [place for place in stored if place.content == element.content]
        used = best(
            place for place in same if place.parent == parent or (after_system and place.parent in versions)
        )
        if used is None and parent is not None:
            used = best(place for place in same if place.former == parent)
        if used is None and not after_system and (live := _live(same)) and live.parent in beside:
            assert isinstance(parent, Planned)
            steps.append(Follow(live.key, parent))
            parent = below = live.key
            versions, beside, edits = frozenset(), frozenset(), True
            continue
        if used is None and (after_system or not _follows(same, versions)):
            used = best(same)
        is_former = used is not None and used.state == State.SUPERSEDED and used.parent == parent == below
        if edits and is_former and _live(same) is None:
            used = None
        if used is not None:
            steps.append(Use(used.key))
            if used.state != State.ASIDE:
                listed.add(used.key)
                is_former = parent is not None and below is None
                if is_former and _shares(used, parent, bool(shared)):
                    above = above if shared else parent
                    shared.append(index)
                else:
                    is_former = is_former and used.state != State.LIVE
                    below, shared = None if is_former else live_of(same), []
                parent, versions, beside, after_system = used.key, frozenset(), frozenset(), False
            continue
        old = best(place for place in stored if place.state != State.ASIDE)
        is_between = old is None and index < last_stored
        if is_between and not element.result:
            steps.append(New(parent, State.ASIDE))
            continue
        for n in shared:  # copied, since they are part of the current version
            copied = steps[n]
            assert isinstance(copied, Use)
            steps[n] = New(above, State.SUPERSEDED, copies=copied.key)
            parent = above = Planned(n)
        shared = []
        under = parent if below is None else below
        if old is not None:
            # A list without a predecessor was trimmed.
            stays = parent is None or (
                not isinstance(parent, Planned)
                and (old.parent is None or old.parent in listed or is_before(old.parent))
            )
            place = old.parent if stays else under
            new = New(place, supersedes=old.key if old.state == State.LIVE else None)
        else:
            new = New(tip if parent is None else under, beside=is_between)
        steps.append(new)
        parent = below = Planned(index)
        versions = {place.key for place in stored}
        if is_between and not isinstance(new.parent, Planned):
            beside = set() if new.parent is None else {new.parent}
        elif not is_between:
            beside = {
                place.key
                for place in stored
                if place.parent == new.parent or (isinstance(new.parent, Planned) and place.parent in beside)
            }
        after_system = element.system
    return Plan(steps, shared[0] if shared else None)


def _shares(used: Place, parent: int | Planned | None, already: bool) -> bool:
    """Whether the former version that contains `parent` shares this node with the current version."""
    if used.former == parent:
        return used.state == State.LIVE or already
    return already and used.parent == parent


def spans(
    places: Iterable[tuple[int, int | None, *tuple[bool, ...]]], before: Iterable[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Write a list of places as spans; a span is a path down the tree from one key to another.

    Args:
        places: Key and parent key of each place, in the order of the list; more fields have no effect.
        before: The spans of the preceding places.

    Returns:
        First and last key of each span. A whole thread is one span, whatever its length and its forks.

    Example:
        >>> spans([(7, None), (8, 7), (64, 8), (3, None), (4, 3)])
        [(7, 64), (3, 4)]
    """
    placed, joined = list(places), list(before)
    above = [joined[-1][1] if joined else -1, *(place[0] for place in placed)]
    starts = [n for n, place in enumerate(placed) if place[1] != above[n]]
    ends = [*starts, len(placed)]
    if joined:  # The last span may continue.
        joined[-1] = (joined[-1][0], above[ends[0]])
    return joined + [(above[first + 1], above[end]) for first, end in pairwise(ends)]


def _check_duplicates(elements: Sequence[Element]) -> None:
    seen: set[str] = set()
    for element in elements:
        if element.message_id in seen:
            raise InputError(
                f"message id {element.message_id!r} occurs twice in one list; "
                "give each message a different id"
            )
        seen.add(element.message_id)


def _last_stored(elements: Sequence[Element], places: Mapping[str, Sequence[Place]]) -> int:
    """Index of the last element with a stored place that is not an aside; -1 if there is none."""
    for index in range(len(elements) - 1, -1, -1):
        stored = places.get(elements[index].message_id, ())
        if any(place.state != State.ASIDE for place in stored):
            return index
    return -1


def live_of(same: Iterable[Place]) -> int | None:
    """Key of the live place, or `None`."""
    return None if (live := _live(same)) is None else live.key


def _live(same: Iterable[Place]) -> Place | None:
    return next((place for place in same if place.state == State.LIVE), None)


def best(places: Iterable[Place]) -> Place | None:
    """The live place, else the place with the highest key, or `None`."""
    return max(places, key=lambda place: (place.state == State.LIVE, place.key), default=None)


def _follows(same: Sequence[Place], versions: Set[int]) -> bool:
    """Whether the live place of a message, else any superseded place, is under one of `versions`."""
    current = [place for place in same if place.state == State.LIVE] or [
        place for place in same if place.state == State.SUPERSEDED
    ]
    return any(place.parent in versions for place in current)

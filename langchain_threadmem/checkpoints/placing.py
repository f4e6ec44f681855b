"""The placing rule: where each message of a list lives in the tree.

A LangGraph checkpoint hands over a whole *list* of messages, and the tree already holds most
of them. For each element `m` after its predecessor `p`, the first clause that fits decides:

1. A place with this id and content under `p` is used, whatever its state (time travel): one that hangs
   there, else one that was written there and follows another message now.
2. If `p` has just become a new version of `m`'s stored parent, `m` follows it, and with it all that is below
   it; but where `p` is a system message, `m` stays, since the program's words are no part of the
   conversation. A former version that such a list names is live again.
3. The same id and content elsewhere stays there; the list's span breaks.
4. The same id with other content is a new live version under `p`; the old one is superseded.
5. A new id is an aside if a stored message follows it in the list (a summary or notice put
   into a conversation), else a live child of `p`, or of the tip if the list has no `p`. A tool's
   result right after its call is a live child of `p` all the same, and what has followed `p` so far
   follows it, if it comes next in the list.

`p` is the nearest predecessor that is no aside: asides are no part of the conversation, so
nothing lives under one, a new version of one is judged as a new id, and none is superseded.

What is new lives under `p`'s *home*. A list may still lead through the place that a message was
moved away from: its home is where it lives now, so that an answer comes to its question. But a
former version of a conversation (its messages were edited, and followed) is its own home: who
travels back to it goes on from there. What it shares with the present version hangs in that one
alone, so a message that is new below it gets superseded copies of the shared messages above it.

The rule never looks at the order of writes, and moves nothing but what follows a new version or
a result; all else moves by the verb `place` alone. The list's own order is kept by `runs`, so that any list,
trimmed, reordered or summarised, reads back exactly. Two laws follow, and are tested: a list whose
every message is stored adds nothing, and a message id has at most one live place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.schema import State


@dataclass(frozen=True, slots=True)
class Element:
    """One message of an incoming list.

    Attributes:
        message_id: Id of the message.
        content: Whatever stands for its full content, such as its stored body; compared by `==`.
        system: Whether it is a system message.
        result: Whether it is a tool's result that comes right after its call.
    """

    message_id: str
    content: Hashable
    system: bool = False
    result: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One stored row of the tree.

    Attributes:
        key: Key of the row; a higher key need not be a later row.
        parent: Key of the row it hangs under; `None` for a root.
        message_id: Id of the message.
        content: As in `Element`.
        state: Live, superseded or aside.
        former: Key of the row that it was written under, if it follows another one now.
    """

    key: int
    parent: int | None
    message_id: str
    content: Hashable
    state: State = State.LIVE
    former: int | None = None

    @property
    def written(self) -> int | None:
        """Key of the row that it was written under."""
        return self.parent if self.former is None else self.former


@dataclass(frozen=True, slots=True)
class Planned:
    """The place that the element at `index` gets from the same plan; it has no key yet."""

    index: int


@dataclass(frozen=True, slots=True)
class Use:
    """The element is the stored row `key`."""

    key: int


@dataclass(frozen=True, slots=True)
class Follow:
    """The element is the stored row `key`, which from now on hangs under an earlier element of the plan."""

    key: int
    parent: Planned


@dataclass(frozen=True, slots=True)
class New:
    """The element needs a new row.

    Attributes:
        parent: Key of a stored row, or an earlier element of the plan; `None` for a root.
        state: Live or aside; superseded if it is a copy.
        supersedes: Key of the live row of the same message id that it replaces, if there is one.
        copies: Key of the row that it is a copy of, if it is one.
        beside: Whether it replaces nothing that is below its parent: a result that was put behind its call.
    """

    parent: int | Planned | None
    state: State = State.LIVE
    supersedes: int | None = None
    copies: int | None = None
    beside: bool = False


Step = Use | Follow | New


def plan_list(
    elements: Sequence[Element],
    places: Mapping[str, Sequence[Place]],
    tip: int | None,
    *,
    after: int | None = None,
    home: int | None = None,
) -> list[Step]:
    """Say for each message of a list where it lives.

    Args:
        elements: The list, or its end if `after` is given; each message id once.
        places: Every stored row of each message id in the list; ids without rows may be left out.
        tip: Key of the row that a new message continues when nothing precedes it in the list.
        after: Key of the nearest row before `elements` that is no aside, for a caller who knows
            already that the list begins with stored rows.
        home: Key of the home of `after`; `None` if it is part of a former version.

    Returns:
        One step for each element, in their order. Apply them from first to last.

    Raises:
        InputError: A message id occurs twice; a list of that kind has to be kept verbatim.

    Cost is linear in the elements and the rows given.

    Example:
        >>> hello = Place(key=1, parent=None, message_id="h1", content="Hello")
        >>> plan_list([Element("h1", "Hello"), Element("a1", "Hi!")], {"h1": [hello]}, tip=1)
        [Use(key=1), New(parent=1, state=<State.LIVE: 0>, supersedes=None, copies=None, beside=False)]
        >>> plan_list([Element("h1", "Good day")], {"h1": [hello]}, tip=1)
        [New(parent=None, state=<State.LIVE: 0>, supersedes=1, copies=None, beside=False)]
    """
    return plan(elements, places, tip, after=after, home=home).steps


class Plan(NamedTuple):
    """Where the messages of a list live.

    Attributes:
        steps: One for each element, in their order.
        shared: Index of the first element of those at the end that the list, a former version, shares with
            the present one; `None` if it ends otherwise.
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
) -> Plan:
    """`plan_list`, and what has to be known of a list that is to be continued."""
    _refuse_duplicates(elements)
    last_stored = _last_stored(elements, places)
    steps: list[Step] = []
    parent: int | Planned | None = after
    below: int | Planned | None = home  # the home of `parent`; `None` in a former version
    # The stored versions of `parent`, if this plan has just made a new one: what clause 2 asks for. Those
    # that stand where the new one stands are left to it by what follows them; else a circle might be made.
    versions: Set[int] = frozenset()
    beside: Set[int] = frozenset()
    told = False  # whether that is a new version of a system message
    edits = False  # whether something has followed a new version
    shared: list[int] = []  # the elements at the end that a former version shares with the present one
    above: int | Planned | None = None  # what precedes them
    for index, element in enumerate(elements):
        stored = places.get(element.message_id, ())
        same = [place for place in stored if place.content == element.content]
        used = _best(place for place in same if place.parent == parent or (told and place.parent in versions))
        if used is None and parent is not None:
            used = _best(place for place in same if place.former == parent)
        if used is None and not told and (live := _live(same)) and live.parent in beside:
            assert isinstance(parent, Planned)
            steps.append(Follow(live.key, parent))
            parent = below = live.key
            versions, beside, edits = frozenset(), frozenset(), True
            continue
        if used is None and (told or not _follows(same, versions)):
            used = _best(same)
        if used is not None and edits and used.state == State.SUPERSEDED and used.parent == parent == below:
            used = None
        if used is not None:
            steps.append(Use(used.key))
            if used.state != State.ASIDE:
                is_former = parent is not None and below is None
                if is_former and _shares(used, parent, bool(shared)):
                    above = above if shared else parent
                    shared.append(index)
                else:
                    is_former = is_former and used.state != State.LIVE
                    below, shared = None if is_former else live_of(same), []
                parent, versions, beside, told = used.key, frozenset(), frozenset(), False
            continue
        old = _best(place for place in stored if place.state != State.ASIDE)
        is_between = old is None and index < last_stored
        if is_between and not element.result:
            steps.append(New(parent, State.ASIDE))
            continue
        for n in shared:  # Nothing new lives under them: they hang in the present version.
            copied = steps[n]
            assert isinstance(copied, Use)
            steps[n] = New(above, State.SUPERSEDED, copies=copied.key)
            parent = above = Planned(n)
        shared = []
        under = parent if below is None else below
        if old is not None:
            # With nothing before it the list was trimmed: the new version stands beside the old one.
            place = old.parent if parent is None else under
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
        told = element.system
    return Plan(steps, shared[0] if shared else None)


def _shares(used: Place, parent: int | Planned | None, already: bool) -> bool:
    """Whether a former version that has come to `parent` shares this row with the present one."""
    if used.former == parent:
        return used.state == State.LIVE or already
    return already and used.parent == parent


def runs(
    places: Iterable[tuple[int, int | None]], before: Iterable[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Write a list of places as runs, each of which leads down the tree from one key to another.

    Args:
        places: Key of each place and of the place it hangs under, in any order; the order is kept.
        before: The runs of the places before these, to be continued.

    Returns:
        First and last key of each run: however long a thread is, and however often it was forked, it is one
        run. Linear.

    Example:
        >>> runs([(7, None), (8, 7), (64, 8), (3, None), (4, 3)])
        [(7, 64), (3, 4)]
    """
    found = list(before)
    for key, parent in places:
        if found and parent == found[-1][1]:
            found[-1] = (found[-1][0], key)
        else:
            found.append((key, key))
    return found


def _refuse_duplicates(elements: Sequence[Element]) -> None:
    seen: set[str] = set()
    for element in elements:
        if element.message_id in seen:
            raise InputError(
                f"message id {element.message_id!r} occurs twice in one list; "
                "give each message an id of its own, or keep this list verbatim"
            )
        seen.add(element.message_id)


def _last_stored(elements: Sequence[Element], places: Mapping[str, Sequence[Place]]) -> int:
    """Find the last element that is part of the stored conversation; -1 if none is."""
    for index in range(len(elements) - 1, -1, -1):
        stored = places.get(elements[index].message_id, ())
        if any(place.state != State.ASIDE for place in stored):
            return index
    return -1


def live_of(same: Iterable[Place]) -> int | None:
    """Key of the live one of the places of one message and content; `None` if there is none."""
    return None if (live := _live(same)) is None else live.key


def _live(same: Iterable[Place]) -> Place | None:
    return next((place for place in same if place.state == State.LIVE), None)


def _best(places: Iterable[Place]) -> Place | None:
    """Choose the live place, else the one with the highest key; `None` if there is none."""
    return max(places, key=lambda place: (place.state == State.LIVE, place.key), default=None)


def _follows(same: Sequence[Place], versions: Set[int]) -> bool:
    """Tell whether a message stored at `same` lives under one of the `versions` just replaced.

    A live place alone decides if there is one: what was moved away no longer follows.
    """
    homes = [place for place in same if place.state == State.LIVE] or [
        place for place in same if place.state == State.SUPERSEDED
    ]
    return any(place.parent in versions for place in homes)

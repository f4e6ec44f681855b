"""The placing rule: the place in the tree of each message of a list.

A list of messages comes from a graph's state, a checkpoint, an agent or a client; the tree already stores
most of it. The rule places each message `m` after its predecessor `p`. The first clause that applies decides;
each is a function of this module:

0. *Apart*: an answer that reuses the id of an answer to another question is an aside, or the node with its
   content.
1. *Chosen*: a message for which a caller has chosen a parent keeps its live place, else it is a live child of
   that parent.
2. *Same place*: a place with this id and content under `p` is used, whatever its state (time travel): a place
   that is under `p` now, else a place that was written under `p` and has been moved.
3. *Follows*: if `p` is a new version of `m`'s stored parent, made by this list, `m` moves under `p` with all
   messages below it. If `p` is a system message, `m` stays, since system messages are not part of the
   conversation. A former version in such a list becomes live again. `m` also moves under `p` if `p` is a tool
   result directly after its call, and `m` is stored beside it.
4. *Elsewhere*: a place with this id and content elsewhere is used, and a new span begins.
5. *Earlier version*: a message whose live place has other content that was stored after the list was made is
   stored as removed; its home is that place.
6. *New version*: a place with this id and other content is superseded by a new live version. It is under the
   parent of that place if that parent is earlier in the list or the place is a root, else under `p`.
7. *Aside*: a new id becomes an aside if a stored message follows it in the list (for example a summary put
   into a conversation), unless it is a tool result directly after its call.
8. *New*: any other new id is a live child of `p`, or of the tip if the list has no `p`.

`p` is the nearest predecessor that is not an aside. Asides are not part of the conversation: no message is
placed under an aside, and a new version of an aside is placed like a new id and supersedes nothing.

A new message is placed under the *home* of `p`. If a list contains the former place of a moved message, the
home of `p` is the current place of that message, so that an answer follows its question. The home of a
removed place is the live version that replaced it; that of a deleted message is the home of its predecessor.
A former version of a conversation (its messages were edited, and others followed) is its own home, so that
time travel continues the former version. Messages that a former version shares with the current version are
stored once, in the current version; a new message below them gets superseded copies of the shared messages
above it.

The rule does not depend on the order of writes. It moves only messages after a new version or a tool result;
every other move needs the verb `place`. `spans` keeps the order of the list, so a list that was trimmed,
reordered or summarized reads back exactly. The rule has two tested properties: a list of stored messages adds
no node, and a message id has at most one live place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
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
        result: Whether the message is a tool result directly after its call, or another answer that belongs
            directly after its predecessor.
        apart: Whether the message is not part of the conversation (see `tree.lists.reused_ids`).
    """

    message_id: str
    content: Hashable
    system: bool = False
    result: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A stored node of the tree.

    Attributes:
        key: Key of the node; keys are not in the order of time.
        parent: Key of the parent; `None` for a root.
        message_id: Id of the message.
        content: As in `Element`.
        state: Live, superseded, aside or removed.
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
    """The element is the stored node `key`, which moves under a node or an earlier element of the plan."""

    key: int
    parent: int | Planned


@dataclass(frozen=True, slots=True)
class New:
    """The element needs a new node.

    Attributes:
        parent: Key of a stored node, or an earlier element of the plan; `None` for a root.
        state: Live or aside; superseded for a copy; removed for an earlier version.
        supersedes: Key of the live node with the same message id that it replaces.
        copies: Key of the node that it is a copy or an earlier version of.
        beside: Whether the other children of its parent stay live: a tool result placed after its call.
    """

    parent: int | Planned | None
    state: State = State.LIVE
    supersedes: int | None = None
    copies: int | None = None
    beside: bool = False


PlanStep = Use | Follow | New


class ListPlan(NamedTuple):
    """The places of the messages of a list.

    Attributes:
        steps: One step for each element; apply the steps in order.
        shared: Index of the first message of the end that the list, a former version, shares with the current
            version; `None` if they share no end.
        home: The home of the last message that is not an aside; `None` for a former version.
    """

    steps: list[PlanStep]
    shared: int | None
    home: int | Planned | None = None


@dataclass(slots=True)
class _Walk:
    """The walk along a list, up to the predecessor `p` of the next message.

    Attributes:
        tip: The parent of a new message without a predecessor in the list.
        chosen: Parents that a caller has chosen, by message id.
        later: The hashes of the contents that were stored after the list was made, by message id.
        is_before: Whether the nodes before the walk contain the node with a key.
        last_stored: Index of the last element with a stored place that is not an aside; -1 for none.
        parent: `p`.
        home: The home of `p`; `None` if `p` is part of a former version.
        versions: The stored versions of `p`, if this list adds a new version of it.
        beside: The nodes whose children move under `p`. Of versions only those at its place, since others
            could form a circle.
        after_system: Whether `p` is a new version of a system message.
        edits: Whether a message has moved under a new version.
        shared: The elements at the end that a former version shares with the current version.
        above: The predecessor of `shared`.
        listed: The stored nodes of the list, except asides.
        steps: The steps so far.
    """

    tip: int | None
    chosen: Mapping[str, int | None]
    later: Mapping[str, int]
    is_before: Callable[[int], bool]
    last_stored: int
    parent: int | Planned | None
    home: int | Planned | None
    versions: Set[int] = frozenset()
    beside: Set[int] = frozenset()
    after_system: bool = False
    edits: bool = False
    shared: list[int] = field(default_factory=list)
    above: int | Planned | None = None
    listed: set[int] = field(default_factory=set)
    steps: list[PlanStep] = field(default_factory=list)

    def is_next(self, element: Element, place: StoredPlace) -> bool:
        """Use the only place of a message if the message is live and follows `p` in the tree and the list.

        This is what the clauses do, at the cost of one call for the most frequent message.
        """
        if (
            place.state != State.LIVE
            or place.content != element.content
            or place.parent != self.parent
            or self.home != self.parent
            or element.result
            or self.after_system
            or place.message_id in self.chosen
        ):
            return False
        self.steps.append(Use(place.key))
        self.listed.add(place.key)
        self.parent = self.home = place.key
        self.versions = self.beside = frozenset()
        return True

    def use(self, item: _PlacedElement, used: StoredPlace) -> None:
        """Use a stored node."""
        is_result = item.element.result and used.parent == self.parent
        above_in_turn = self.parent if is_result and isinstance(self.parent, int) else None
        self.steps.append(Use(used.key))
        if used.state == State.ASIDE:
            return
        self.listed.add(used.key)
        is_former = self.parent is not None and self.home is None
        if is_former and _shares(used, self.parent, bool(self.shared)):
            self.above = self.above if self.shared else self.parent
            self.shared.append(item.index)
        else:
            is_former = is_former and used.state != State.LIVE
            places = item.stored if used.state == State.REMOVED else item.same
            home = None if is_former else live_of(places)
            # A message that was deleted, and has no live version, changes no place of the messages after it.
            self.home = self.home if home is None and used.state == State.REMOVED else home
            self.shared = []
        exchange = frozenset() if above_in_turn is None else self.beside | {above_in_turn}
        self.go_to(used.key, beside=exchange)

    def go_to(
        self,
        node: int | Planned,
        versions: Set[int] = frozenset(),
        beside: Set[int] = frozenset(),
        after_system: bool = False,
    ) -> None:
        """Make a node the predecessor of the next message."""
        self.parent, self.versions, self.beside, self.after_system = node, versions, beside, after_system

    def add(self, item: _PlacedElement, new: New) -> None:
        """Add a new live node."""
        self.steps.append(new)
        node = self.home = Planned(item.index)
        versions = {place.key for place in item.stored} if item.stored else frozenset[int]()
        if new.beside and not isinstance(new.parent, Planned):
            beside = set() if new.parent is None else {new.parent}
        elif new.beside:
            beside = set(self.beside)
        elif not item.stored:
            beside = set()
        else:
            beside = {
                place.key
                for place in item.stored
                if place.parent == new.parent
                or (isinstance(new.parent, Planned) and place.parent in self.beside)
            }
        self.go_to(node, versions, beside, item.element.system)

    def under(self) -> int | Planned | None:
        """The parent of a new node after `p`; shared messages above it are copied to the former version."""
        for index in self.shared:
            copied = self.steps[index]
            assert isinstance(copied, Use)
            self.steps[index] = New(self.above, State.SUPERSEDED, copies=copied.key)
            self.parent = self.above = Planned(index)
        self.shared = []
        return self.parent if self.home is None else self.home


@dataclass(frozen=True, slots=True)
class _PlacedElement:
    """An element with its stored places.

    Attributes:
        index: Its index.
        element: The element.
        stored: All places of its message id.
        same: The places with its content.
        old: The place with any content that is not an aside: the live place, else the newest.
    """

    index: int
    element: Element
    stored: Sequence[StoredPlace] = ()
    same: Sequence[StoredPlace] = ()
    old: StoredPlace | None = None


def plan(
    elements: Sequence[Element],
    places: Mapping[str, Sequence[StoredPlace]],
    tip: int | None,
    *,
    after: int | None = None,
    home: int | None = None,
    is_before: Callable[[int], bool] = lambda key: False,
    chosen: Mapping[str, int | None] = MappingProxyType({}),
    beside: Collection[int] = (),
    later: Mapping[str, int] = MappingProxyType({}),
) -> ListPlan:
    """Decide the place of each message of a list.

    Args:
        elements: The list, or its end if `after` is given; each message id once.
        places: All stored nodes of each message id in the list; ids without nodes may be missing.
        tip: Key of the parent of a new message without a predecessor in the list.
        after: Key of the nearest node before `elements` that is not an aside, if the list begins with stored
            nodes that are not in `elements`.
        home: Key of the home of `after`; `None` if `after` is part of a former version.
        is_before: Whether the stored nodes before `elements` contain the node with a key.
        chosen: Keys of chosen parents, by message id; `None` for a root.
        beside: If `after` is a tool result directly after its call, the keys of the call and of the results
            before it.
        later: The hashes of the contents that were stored after the list was made, by message id.

    Raises:
        InputError: A message id occurs twice.

    The cost is linear in the number of elements and places.

    Example:
        >>> hello = StoredPlace(key=1, parent=None, message_id="h1", content="Hello")
        >>> plan([Element("h1", "Hello"), Element("a1", "Hi!")], {"h1": [hello]}, tip=1).steps
        [Use(key=1), New(parent=1, state=<State.LIVE: 0>, supersedes=None, copies=None, beside=False)]
        >>> plan([Element("h1", "Good day")], {"h1": [hello]}, tip=1).steps
        [New(parent=None, state=<State.LIVE: 0>, supersedes=1, copies=None, beside=False)]
    """
    _check_duplicates(elements)
    walk = _Walk(tip, chosen, later, is_before, _last_stored(elements, places), after, home)
    walk.beside = frozenset(beside)
    for index, element in enumerate(elements):
        stored = places.get(element.message_id, ())
        if len(stored) == 1 and walk.is_next(element, stored[0]):
            continue
        clauses: Sequence[Callable[[_Walk, _PlacedElement], bool]] = _CLAUSES_OF_NEW_IDS
        item = _PlacedElement(index, element)
        if stored or element.message_id in chosen:
            same = [place for place in stored if place.content == element.content]
            old = best([place for place in stored if place.state != State.ASIDE])
            item, clauses = _PlacedElement(index, element, stored, same, old), _CLAUSES
        for clause in clauses:
            if clause(walk, item):
                break
    return ListPlan(walk.steps, walk.shared[0] if walk.shared else None, walk.home)


def _apart(walk: _Walk, item: _PlacedElement) -> bool:
    if not item.element.apart:
        return False
    used = best(item.same)
    walk.steps.append(New(walk.parent, State.ASIDE) if used is None else Use(used.key))
    return True


def _chosen(walk: _Walk, item: _PlacedElement) -> bool:
    if item.element.message_id not in walk.chosen:
        return False
    if (live := _live(item.same)) is not None:
        walk.use(item, live)
        return True
    walk.under()
    supersedes = item.old.key if item.old is not None and item.old.state == State.LIVE else None
    walk.add(item, New(walk.chosen[item.element.message_id], supersedes=supersedes))
    return True


def _same_place(walk: _Walk, item: _PlacedElement) -> bool:
    used = best(
        place
        for place in item.same
        if place.parent == walk.parent or (walk.after_system and place.parent in walk.versions)
    )
    if used is None and walk.parent is not None:
        used = best(place for place in item.same if place.former == walk.parent)
    if used is None or (used.state == State.SUPERSEDED and _becomes_live(walk, item)):
        return False
    walk.use(item, used)
    return True


def _follows(walk: _Walk, item: _PlacedElement) -> bool:
    live = _live(item.same)
    if walk.after_system or live is None or live.parent not in walk.beside or live.key in walk.beside:
        return False
    assert walk.parent is not None
    walk.steps.append(Follow(live.key, walk.parent))
    walk.edits, walk.home = True, live.key
    walk.go_to(live.key)
    return True


def _elsewhere(walk: _Walk, item: _PlacedElement) -> bool:
    used = best(item.same)
    if used is None or _becomes_live(walk, item):
        return False
    if not walk.after_system and _was_below_version(walk, item):
        return False
    walk.use(item, used)
    return True


def _earlier_version(walk: _Walk, item: _PlacedElement) -> bool:
    old = item.old
    if old is None or old.state != State.LIVE or walk.later.get(old.message_id) != hash(old.content):
        return False
    walk.steps.append(New(walk.parent, State.REMOVED, copies=old.key))
    walk.go_to(Planned(item.index))
    walk.home = old.key
    return True


def _new_version(walk: _Walk, item: _PlacedElement) -> bool:
    old = item.old
    if old is None:
        return False
    under = walk.under()
    # A list without a predecessor was trimmed.
    stays = walk.parent is None or (
        not isinstance(walk.parent, Planned)
        and (old.parent is None or old.parent in walk.listed or walk.is_before(old.parent))
    )
    supersedes = old.key if old.state == State.LIVE else None
    walk.add(item, New(old.parent if stays else under, supersedes=supersedes))
    return True


def _aside(walk: _Walk, item: _PlacedElement) -> bool:
    if item.element.result or item.index >= walk.last_stored:
        return False
    walk.steps.append(New(walk.parent, State.ASIDE))
    return True


def _new(walk: _Walk, item: _PlacedElement) -> bool:
    under = walk.under()
    parent = walk.tip if walk.parent is None else under
    walk.add(item, New(parent, beside=item.index < walk.last_stored))
    return True


_CLAUSES_OF_NEW_IDS = (_aside, _new)
_CLAUSES = (
    *(_apart, _chosen, _same_place, _follows, _elsewhere, _earlier_version, _new_version),
    *_CLAUSES_OF_NEW_IDS,
)
"""The clauses of the rule, in the order in which they are tried; the last always applies."""


def _becomes_live(walk: _Walk, item: _PlacedElement) -> bool:
    """Whether a former version in an edited list becomes live again."""
    if not walk.edits or walk.parent != walk.home or _live(item.same) is not None:
        return False
    return any(place.state == State.SUPERSEDED and place.parent == walk.parent for place in item.same)


def _was_below_version(walk: _Walk, item: _PlacedElement) -> bool:
    """Whether the live place of a message, else any superseded place, is under a version of `p`."""
    live = [place for place in item.same if place.state == State.LIVE]
    places = live or [place for place in item.same if place.state == State.SUPERSEDED]
    return any(place.parent in walk.versions for place in places)


def _shares(used: StoredPlace, parent: int | Planned | None, already: bool) -> bool:
    """Whether the former version that contains `parent` shares this node with the current version."""
    if used.state == State.REMOVED:
        return False
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
    joined = list(before)
    first, last = joined.pop() if joined else (None, -1)  # The last span may continue.
    for place in places:
        if place[1] != last or first is None:
            if first is not None:
                joined.append((first, last))
            first = place[0]
        last = place[0]
    return joined if first is None else [*joined, (first, last)]


def _check_duplicates(elements: Sequence[Element]) -> None:
    seen: set[str] = set()
    for element in elements:
        if element.message_id in seen:
            raise InputError(
                f"message id {element.message_id!r} occurs twice in one list; "
                "give each message a different id"
            )
        seen.add(element.message_id)


def _last_stored(elements: Sequence[Element], places: Mapping[str, Sequence[StoredPlace]]) -> int:
    """Index of the last element with a stored place that is not an aside; -1 if there is none."""
    for index in range(len(elements) - 1, -1, -1):
        for place in places.get(elements[index].message_id, ()):
            if place.state != State.ASIDE:
                return index
    return -1


def live_of(same: Iterable[StoredPlace]) -> int | None:
    """Key of the live place, or `None`."""
    return None if (live := _live(same)) is None else live.key


def _live(same: Iterable[StoredPlace]) -> StoredPlace | None:
    return next((place for place in same if place.state == State.LIVE), None)


def best(places: Iterable[StoredPlace]) -> StoredPlace | None:
    """The live place, else the place with the highest key, or `None`."""
    return max(places, key=lambda place: (place.state == State.LIVE, place.key), default=None)

"""Events: the selected place of a message, a suggested place, and moved turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, Literal, NamedTuple, get_args

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from langchain_threadmem.common.inputs import check_one_of, is_share
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import decode_stored, text_of
from langchain_threadmem.messages.typed_json import ReadOpaque
from langchain_threadmem.selection.moves.heal import Moved
from langchain_threadmem.selection.run_selector import Selected
from langchain_threadmem.selection.titles import ASKED, title_of, title_of_thread
from langchain_threadmem.tree.append import TIP
from langchain_threadmem.tree.lists.stored_lists import NodePlace

OnSelect = Literal["apply", "suggest"]
"""Whether the place that the selector chooses is applied or only suggested."""
SelectionKind = Literal["continues", "new_thread", "returns"]
SELECTION: Final = "threadmem.selection"
MOVE: Final = "threadmem.move"
SUGGEST_AT = 0.85
"""The minimum probability of a suggestion. On `threads_dev` of the benchmark `threads`, 99 % of the
suggested new threads are new threads, and 60 % of the new threads are suggested.
"""


class Candidate(TypedDict):
    """A place for a message, and its probability.

    Attributes:
        parent_id: Number of the node to continue; `None` for a new thread.
        probability: Its probability, 0 to 1.
    """

    parent_id: int | None
    probability: float


class Suggestion(TypedDict):
    """Another place for a message; `memory.place(suggestion["node_id"], suggestion["parent_id"])` accepts it.

    Attributes:
        message_id: Id of the message.
        node_id: Number of its node.
        parent_id: Number of the node that the message is to continue; `None` for a new thread.
        probability: Probability of the place, 0 to 1; `None` if the selector gives no probabilities.
        title: Title of the thread that the message continues or begins.
        text: The suggestion in one line, for people.
    """

    message_id: str
    node_id: int
    parent_id: int | None
    probability: float | None
    title: str
    text: str


class SelectionEvent(TypedDict):
    """The selection of a place for a human message.

    Attributes:
        type: "threadmem.selection".
        conversation_id: Name of the conversation.
        message_id: Id of the message; of several messages in a row that of the first.
        node_id: Number of its node.
        parent_id: Number of the node that it continues; `None` at a root.
        kind: "continues" the active thread, begins a "new_thread", or "returns" to another thread or to an
            earlier turn.
        probability: Probability of the place, 0 to 1; `None` if the selector gave none.
        candidates: The likeliest places, the likeliest first; empty without probabilities.
        reason: The reason, in a few words.
        title: Title of the thread of the message, as in `ChatMemory.list_threads`.
        suggestion: Another place for the message, with `on_select="suggest"`; else `None`.
    """

    type: Literal["threadmem.selection"]
    conversation_id: str
    message_id: str
    node_id: int
    parent_id: int | None
    kind: SelectionKind
    probability: float | None
    candidates: list[Candidate]
    reason: str
    title: str
    suggestion: Suggestion | None


class MoveEvent(TypedDict):
    """An earlier turn that was moved because of its answer.

    Attributes:
        type: "threadmem.move".
        conversation_id: Name of the conversation.
        message_id: Id of the human message of the turn.
        node_id: Number of its new node.
        former_node_id: Number of its former node, which is superseded.
        parent_id: Number of the node that it continues now; `None` at a root.
        former_parent_id: Number of the node that it continued before; `None` at a root.
        probability: Probability of the new place, 0 to 1.
        candidates: The likeliest places, the likeliest first.
        reason: The reason, in a few words.
        title: Title of the thread to which it was moved.
    """

    type: Literal["threadmem.move"]
    conversation_id: str
    message_id: str
    node_id: int
    former_node_id: int
    parent_id: int | None
    former_parent_id: int | None
    probability: float
    candidates: list[Candidate]
    reason: str
    title: str


def suggestion_threshold(on_select: OnSelect, suggest_at: float) -> float | None:
    """The minimum probability of a suggestion; `None` if places are applied.

    Raises:
        InputError: `on_select` is neither "apply" nor "suggest", or `suggest_at` is not from 0 to 1.
    """
    check_one_of("on_select", on_select, get_args(OnSelect))
    if not is_share(suggest_at):
        raise InputError(f"suggest_at={suggest_at!r} is not a probability; pass a number from 0 to 1")
    return suggest_at if on_select == "suggest" else None


class Placed(NamedTuple):
    """A human message in its place.

    Attributes:
        message: The message.
        place: The place of its node.
        active: Number of the node in which the active thread ended before the message.
        selected: The selection.
        moved: The earlier turns that were moved in the same transaction.
    """

    message: BaseMessage
    place: NodePlace
    active: int | None
    selected: Selected
    moved: Sequence[Moved] = ()

    def place_of(self, message: BaseMessage) -> NodePlace | None:
        """The place of a message, if it is this message."""
        return self.place if message.id == self.message.id else None


class StoredThread:
    """The messages from the root of a thread to a message, without system messages, decoded at first use.

    Args:
        rows: Id, body and role of each message.
        other: As for `decode`.
    """

    def __init__(self, rows: Sequence[tuple[str, str, str]], other: ReadOpaque) -> None:
        self._rows, self._other = rows, other

    @property
    def ids(self) -> list[str]:
        """The ids of the messages."""
        return [row[0] for row in self._rows]

    @cached_property
    def messages(self) -> list[BaseMessage]:
        """The messages."""
        return decode_stored(self._rows, other=self._other)

    def questions(self, most: int) -> list[BaseMessage]:
        """The first human messages."""
        rows = [*islice((row for row in self._rows if row[2] == "human"), most)]
        return decode_stored(rows, other=self._other)


def selection_event(
    conversation_id: str, placed: Placed, path: StoredThread, suggest_at: float | None
) -> SelectionEvent:
    """The event of a selection.

    Args:
        conversation_id: Name of the conversation.
        placed: The message in its place.
        path: Its thread.
        suggest_at: The minimum probability of a suggestion; `None` for no suggestion.
    """
    message, selected = placed.message, placed.selected
    active, end = _end_above(selected, placed.active), _end_above(selected, placed.place.parent)
    chances = dict(selected.chances)
    is_root = path.ids[0] == message.id
    return SelectionEvent(
        type=SELECTION,
        conversation_id=conversation_id,
        message_id=str(message.id),
        node_id=placed.place.seq,
        parent_id=placed.place.parent,
        kind="new_thread" if is_root else "continues" if end == active else "returns",
        probability=chances.get(end),
        candidates=[Candidate(parent_id=id_, probability=chance) for id_, chance in selected.chances],
        reason=selected.reason,
        title=title_of_thread(path.questions(ASKED)),
        suggestion=None if suggest_at is None else _suggestion(placed, end, chances, suggest_at),
    )


def move_event(conversation_id: str, moved: Moved) -> MoveEvent:
    """The event of a move."""
    placement = moved.move.placement
    return MoveEvent(
        type=MOVE,
        conversation_id=conversation_id,
        message_id=moved.new.message,
        node_id=moved.new.seq,
        former_node_id=moved.former.seq,
        parent_id=moved.new.parent,
        former_parent_id=moved.former.parent,
        probability=placement.chances[0][1],
        candidates=[Candidate(parent_id=id_, probability=chance) for id_, chance in placement.chances],
        reason=placement.reason,
        title=moved.move.title,
    )


def _end_above(selected: Selected, node: int | None) -> int | None:
    """The turn end that a message below a node continues."""
    return None if selected.turns is None or node is None else selected.turns.end_above(node)


def _suggestion(
    placed: Placed, end: int | None, chances: Mapping[int | None, float], suggest_at: float
) -> Suggestion | None:
    """The place that the selector prefers, if it is another place and at least as likely as the threshold."""
    parent, turns = placed.selected.preferred, placed.selected.turns
    if parent is TIP or parent == end:
        return None
    probability = chances.get(parent)
    if probability is not None and probability < suggest_at:
        return None
    opening = None if parent is None or turns is None else turns.opening(parent)
    title = title_of(text_of(placed.message) if opening is None else opening.human)
    looks = "another topic" if parent is None else "a return to an earlier topic"
    return Suggestion(
        message_id=str(placed.message.id),
        node_id=placed.place.seq,
        parent_id=parent,
        probability=probability,
        title=title,
        text=f"this looks like {looks}: '{title}'" + ("" if probability is None else f" ({probability:.2f})"),
    )

"""The placing rule: each clause, whole conversations, and laws over random walks.

Lists are written as words: `"h1 a1 h2"` is three messages, and a trailing `'` makes another
content for the same id, so `"a1'"` is message `a1`, edited.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.lists.placing import (
    Element,
    Follow,
    New,
    Planned,
    PlanStep,
    StoredPlace,
    Use,
    plan,
    spans,
)
from langchain_threadmem.tree.node import ConversationNode


def elements(words: str) -> list[Element]:
    return [Element(word.rstrip("'"), word) for word in words.split()]


@dataclass
class Tree:
    """A minimal store of places."""

    rows: dict[int, StoredPlace] = field(default_factory=dict)
    tip: int | None = None
    first: int = 1
    step: int = 1

    def places(self) -> dict[str, list[StoredPlace]]:
        by_id: dict[str, list[StoredPlace]] = {}
        for place in self.rows.values():
            by_id.setdefault(place.message_id, []).append(place)
        return by_id

    def plan(self, words: str) -> list[PlanStep]:
        return plan(elements(words), self.places(), self.tip).steps

    def insert(self, message_id: str, content: object, parent: int | None, state: State = State.LIVE) -> int:
        key = self.first + self.step * len(self.rows)
        self.rows[key] = StoredPlace(key, parent, message_id, content, state)
        return key

    def store(self, words: str) -> list[int]:
        """Apply the plan for a list, move the tip to its end, and return its keys."""
        keys: list[int] = []
        for element, step in zip(elements(words), self.plan(words), strict=True):
            if isinstance(step, Use):
                keys.append(step.key)
                continue
            if isinstance(step, New) and step.supersedes is not None:
                self.rows[step.supersedes] = replace(self.rows[step.supersedes], state=State.SUPERSEDED)
            parent = keys[step.parent.index] if isinstance(step.parent, Planned) else step.parent
            if isinstance(step, Follow):
                old = self.rows[step.key]
                self.rows[step.key] = replace(old, parent=parent, former=old.written)
                keys.append(step.key)
                continue
            keys.append(self.insert(element.message_id, element.content, parent, step.state))
        self.tip = next((key for key in reversed(keys) if self.rows[key].state != State.ASIDE), self.tip)
        return keys

    def live(self, message_id: str) -> StoredPlace:
        (place,) = (
            row for row in self.rows.values() if row.message_id == message_id and row.state == State.LIVE
        )
        return place

    def place(self, message_id: str, parent: str | None) -> None:
        """Move a message to the end of `parent`, as the verb does."""
        old = self.live(message_id)
        self.rows[old.key] = replace(old, state=State.SUPERSEDED)
        new = self.insert(message_id, old.content, None if parent is None else self.live(parent).key)
        for row in list(self.rows.values()):
            if row.parent == old.key and row.state == State.LIVE:
                self.rows[row.key] = replace(row, parent=new, former=row.written)

    def path(self, key: int | None) -> list[int]:
        """The keys from a row up to its root."""
        found = []
        while key is not None:
            found.append(key)
            key = self.rows[key].parent
        return found

    def read(self, keys: list[int]) -> str:
        return " ".join(str(self.rows[key].content) for key in keys)

    def spans(self, keys: list[int]) -> list[tuple[int, int]]:
        return spans((key, self.rows[key].written) for key in keys)

    def keys(self, found: list[tuple[int, int]]) -> list[int]:
        """The keys of runs: from the last key of each up to its first."""
        read: list[int] = []
        for first, last in found:
            path = [last]
            while path[-1] != first:
                above = self.rows[path[-1]].written
                assert above is not None
                path.append(above)
            read += reversed(path)
        return read

    def nodes(self) -> list[ConversationNode]:
        return [
            ConversationNode(row.key, HumanMessage(str(row.content)), row.parent, state=row.state)
            for row in self.rows.values()
        ]

    def threads(self) -> list[str]:
        return [" ".join(node.message.text for node in thread) for thread in graph.threads(self.nodes())]

    def words(self, state: State) -> list[str]:
        return [str(row.content) for row in self.rows.values() if row.state == state]


def stored(*lists: str) -> Tree:
    result = Tree()
    for words in lists:
        result.store(words)
    return result


# --- the clauses -------------------------------------------------------------------------------


def test_1_a_place_under_the_predecessor_is_used() -> None:
    assert stored("h1 a1").plan("h1 a1") == [Use(1), Use(2)]


def test_1_a_superseded_place_under_the_predecessor_is_used() -> None:
    assert stored("h1 a1", "h1 a1'").plan("h1 a1") == [Use(1), Use(2)]


def test_1_the_place_under_the_predecessor_comes_before_a_live_place_elsewhere() -> None:
    moved = stored("h1 a1 h2", "h1")
    moved.place("h2", "h1")
    assert moved.plan("h1 a1 h2") == [Use(1), Use(2), Use(3)]
    assert moved.plan("h1 h2") == [Use(1), Use(4)]


def test_1_an_aside_is_passed_over_when_looking_for_the_predecessor() -> None:
    conversation = stored("h1 a1", "h1 a1'", "h1 s a1")
    assert conversation.plan("h1 s a1")[2] == Use(2)


def test_2_a_message_follows_the_new_version_of_its_parent() -> None:
    assert stored("h1 a1 h2").plan("h1 a1' h2") == [Use(1), New(1, supersedes=2), Follow(3, Planned(1))]


def test_2_a_message_follows_past_an_aside() -> None:
    conversation = stored("h1 a1 h2", "h1 a1 s h2")
    assert conversation.plan("h1 a1' s h2")[2:] == [Use(4), Follow(3, Planned(1))]


def test_2_a_superseded_version_follows_when_an_old_list_is_edited() -> None:
    conversation = stored("h1 h2", "h1 h2'")
    assert conversation.plan("h1' h2") == [New(None, supersedes=1), New(Planned(0), supersedes=3)]


def test_2_a_message_that_was_moved_away_does_not_follow() -> None:
    moved = stored("h0 h1 a1 h2")
    moved.place("h2", "h0")
    assert moved.plan("h0 h1 a1' h2")[3] == Use(5)


def test_2_a_message_does_not_follow_past_one_that_stayed() -> None:
    assert stored("x", "x h1 a1").plan("h1' x a1") == [New(1, supersedes=2), Use(1), Use(3)]


def test_2_a_branch_outside_the_list_stays_with_the_old_version() -> None:
    branched = stored("h1 a1 h2", "h1 a1 x2", "h1 a1' h2")
    assert branched.threads() == ["h1 a1' h2", "h1 a1 x2"]


def test_2_nothing_follows_the_new_version_of_a_system_message() -> None:
    places = {
        "s": [StoredPlace(1, None, "s", "s")],
        "h": [StoredPlace(2, 1, "h", "h")],
        "a": [StoredPlace(3, 2, "a", "a")],
    }
    elements = [Element("s", "new", system=True), Element("h", "h"), Element("a", "a")]
    assert plan(elements, places, 3).steps == [New(None, supersedes=1), Use(2), Use(3)]


def test_2_a_message_edited_under_a_new_system_message_takes_what_follows_along() -> None:
    places = {
        "s": [StoredPlace(1, None, "s", "s")],
        "h": [StoredPlace(2, 1, "h", "h")],
        "a": [StoredPlace(3, 2, "a", "a")],
    }
    elements = [Element("s", "new", system=True), Element("h", "new"), Element("a", "a")]
    assert plan(elements, places, 3).steps == [
        New(None, supersedes=1),
        New(Planned(0), supersedes=2),
        Follow(3, Planned(1)),
    ]


def test_3_a_message_stored_elsewhere_stays_and_the_run_breaks() -> None:
    conversation = stored("h1 a1 h2 a2")
    assert conversation.plan("h1 a2") == [Use(1), Use(4)]
    assert conversation.spans(conversation.store("h1 a2")) == [(1, 1), (4, 4)]


def test_3_of_several_places_elsewhere_the_live_one_is_used() -> None:
    old, live = StoredPlace(8, 4, "h2", "h2", State.SUPERSEDED), StoredPlace(7, 5, "h2", "h2")
    assert plan(elements("h2"), {"h2": [old, live]}, tip=7).steps == [Use(7)]


def test_3_of_several_superseded_places_elsewhere_the_highest_key_is_used() -> None:
    places = [StoredPlace(key, 4, "h2", "h2", State.SUPERSEDED) for key in (6, 8, 7)]
    assert plan(elements("h2"), {"h2": places}, tip=4).steps == [Use(8)]


def test_4_other_content_is_a_new_version_and_the_old_one_is_superseded() -> None:
    assert stored("h1 a1").plan("h1 a1'") == [Use(1), New(1, supersedes=2)]


def test_4_a_new_version_lives_under_its_predecessor_in_the_list() -> None:
    assert stored("h1 a1 h2", "h1 b1").plan("h1 b1 h2'") == [Use(1), Use(4), New(4, supersedes=3)]


def test_4_a_new_version_at_the_front_of_a_trimmed_list_stands_beside_the_old_one() -> None:
    assert stored("h1 a1 h2 a2").plan("h2' a2") == [New(2, supersedes=3), Follow(4, Planned(0))]


def test_4_an_id_without_a_live_place_supersedes_nothing() -> None:
    gone = StoredPlace(1, None, "h1", "h1", State.SUPERSEDED)
    assert plan(elements("h1'"), {"h1": [gone]}, tip=None).steps == [New(None)]


def test_4_an_aside_with_other_content_is_another_aside() -> None:
    assert stored("h1 a1", "s h1 a1").plan("s' h1 a1")[0] == New(None, State.ASIDE)


def test_5_a_new_id_is_a_live_child_of_its_predecessor() -> None:
    assert stored("h1").plan("h1 a1 h2") == [Use(1), New(1), New(Planned(1))]


def test_5_a_new_id_in_front_of_a_stored_message_is_an_aside() -> None:
    assert stored("h1 a1").plan("h1 s a1") == [Use(1), New(1, State.ASIDE), Use(2)]


def test_5_nothing_lives_under_an_aside_of_the_same_list() -> None:
    assert stored("h1 a1").plan("h1 s a1'") == [Use(1), New(1, State.ASIDE), New(1, supersedes=2)]


def test_5_a_new_id_after_an_aside_continues_the_message_before_it() -> None:
    conversation = stored("h1 a1", "h1 s a1")
    assert conversation.plan("h1 s h2") == [Use(1), Use(3), New(1)]


def test_5_a_new_id_with_nothing_before_it_continues_the_tip() -> None:
    assert stored("h1 a1").plan("h2") == [New(2)]


def test_5_a_new_id_with_only_asides_before_it_continues_the_tip() -> None:
    assert stored("h1 a1", "s h1 a1").plan("s h2") == [Use(3), New(2)]


def test_5_a_new_id_in_front_of_a_stored_aside_alone_is_live() -> None:
    assert stored("h1 a1", "s h1 a1").plan("h2 s") == [New(2), Use(3)]


def test_5_the_first_message_of_an_empty_tree_is_a_root() -> None:
    assert Tree().plan("h1") == [New(None)]


def test_5_what_is_new_lives_where_its_predecessor_was_moved_to() -> None:
    moved = stored("h1 a1 h2", "h1")
    moved.place("h2", "h1")
    assert moved.plan("h1 a1 h2 a2") == [Use(1), Use(2), Use(3), New(4)]
    assert plan(elements("a2"), moved.places(), tip=4, after=3, home=4).steps == [New(4)]
    moved.store("h1 a1 h2 a2")
    assert moved.threads() == ["h1 a1", "h1 h2 a2"]


def test_4_a_new_version_lives_where_its_predecessor_was_moved_to() -> None:
    moved = stored("h1 a1 h2", "h1 b1 x1")
    moved.place("h2", "h1")
    assert moved.plan("h1 a1 h2 x1'")[3:] == [New(6, supersedes=5)]


def test_4_a_new_version_stays_below_a_message_of_the_list() -> None:
    moved = stored("h1 a1 h2 a2 h3")
    moved.place("h3", "a1")
    assert moved.plan("h1 a1 h2 a2 h3'")[4:] == [New(2, supersedes=6)]


def test_4_a_new_version_of_a_root_is_a_root() -> None:
    moved = stored("h1 a1 h2")
    moved.place("h2", None)
    assert moved.plan("h1 a1 h2'")[2:] == [New(None, supersedes=4)]


def test_5_what_is_new_lives_where_a_moved_root_is() -> None:
    moved = stored("h1 a1", "h1 a1 h2")
    moved.place("h2", None)
    moved.place("h1", "h2")
    moved.store("h1 b1")
    assert moved.threads() == ["h2 h1 a1", "h2 h1 b1"]


def test_5_what_is_new_follows_through_two_moves() -> None:
    moved = stored("h1 a1 h2", "h1")
    moved.place("h2", "h1")
    moved.store("h1 a1 h2 a2 h3")
    moved.place("h3", "a1")
    moved.store("h1 a1 h2 a2 h3 a3")
    assert moved.threads() == ["h1 h2 a2", "h1 a1 h3 a3"]


def test_5_a_former_version_of_a_conversation_goes_on_where_it_is() -> None:
    conversation = stored("h1 h2", "h1' h2")
    assert conversation.plan("h1 h2 a2") == [
        Use(1),
        New(1, State.SUPERSEDED, copies=2),
        New(Planned(1)),
    ]
    conversation.store("h1 h2 a2 h3")
    conversation.place("h3", "h1")
    assert conversation.plan("h1 h2 a2 h3 a3")[3:] == [Use(6), New(7)]


def test_a_list_known_to_begin_with_stored_rows_is_planned_from_there() -> None:
    places = stored("h1 a1 h2", "h1 a1' h2").places()
    whole = plan(elements("h1 a1 h2 a2"), places, tip=5).steps
    copy = New(2, State.SUPERSEDED, copies=3)
    assert whole[2:] == [copy, New(Planned(2))]
    assert plan(elements("h2 a2"), places, tip=5, after=2).steps == [copy, New(Planned(0))]


def test_an_empty_list_needs_nothing() -> None:
    assert stored("h1").plan("") == []


def test_an_id_that_occurs_twice_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="message id 'h1' occurs twice"):
        Tree().plan("h1 a1 h1'")


# --- whole conversations -----------------------------------------------------------------------


def test_turn_by_turn_a_conversation_is_one_thread_and_one_run() -> None:
    conversation = stored(*(" ".join(f"m{i}" for i in range(n)) for n in range(1, 20)))
    assert conversation.threads() == [" ".join(f"m{i}" for i in range(19))]
    assert conversation.spans(sorted(conversation.rows)) == [(1, 19)]


def test_an_answer_regenerated_with_a_new_id_is_a_sibling() -> None:
    assert stored("h1 a1", "h1 b1").threads() == ["h1 a1", "h1 b1"]


def test_an_answer_regenerated_with_its_id_supersedes_the_old_one() -> None:
    conversation = stored("h1 a1", "h1 a1'")
    assert conversation.threads() == ["h1 a1'"]
    assert conversation.words(State.SUPERSEDED) == ["a1"]


def test_an_edit_in_place_takes_all_that_follows_with_it() -> None:
    assert stored("h1 a1 h2 a2 h3", "h1' a1 h2 a2 h3").threads() == ["h1' a1 h2 a2 h3"]


def test_two_messages_edited_in_a_row_stay_in_one_thread() -> None:
    conversation = stored("h1 a1 h2 a2", "h1 a1' h2' a2")
    assert conversation.threads() == ["h1 a1' h2' a2"]
    assert conversation.words(State.SUPERSEDED) == ["a1", "h2"]


def test_an_old_list_that_is_edited_takes_its_own_versions_along() -> None:
    conversation = stored("h1 a1 h2 a2", "h1 a1 h2' a2", "h1' a1 h2 a2")
    assert conversation.threads() == ["h1' a1 h2 a2"]


def test_a_fork_and_a_replay_leave_both_threads_as_they_are() -> None:
    conversation = stored("h1 a1 h2 a2", "h1 a1 x2 y2", "h1 a1 h2 a2", "h1 a1 h2 a2 h3")
    assert conversation.threads() == ["h1 a1 x2 y2", "h1 a1 h2 a2 h3"]
    assert len(conversation.rows) == 7


def test_a_replay_of_a_superseded_list_can_be_continued() -> None:
    conversation = stored("h1 a1 h2", "h1 a1' h2", "h1 a1 h2 a2")
    assert conversation.threads() == ["h1 a1' h2", "h1 a1 h2 a2"]


@pytest.mark.parametrize("kept", [1, 2, 5, 10])
def test_a_thread_trimmed_at_every_turn_stays_whole(kept: int) -> None:
    conversation = Tree()
    window: list[str] = []
    for i in range(60):
        window = [*window[-kept:], f"m{i}"]
        conversation.store(" ".join(window))
    assert conversation.threads() == [" ".join(f"m{i}" for i in range(60))]
    assert len(conversation.rows) == 60


def test_a_summary_put_in_front_is_an_aside_and_the_thread_stays_whole() -> None:
    conversation = stored("h1 a1 h2 a2", "s h2 a2", "s h2 a2 h3 a3", "t a3", "t a3 h4")
    assert conversation.threads() == ["h1 a1 h2 a2 h3 a3 h4"]
    assert conversation.words(State.ASIDE) == ["s", "t"]


def test_a_summary_rewritten_under_its_id_never_becomes_a_thread() -> None:
    conversation = stored("h1 a1", "s h1 a1 h2", "s' a1 h2 a2", "s'' h2 a2 h3")
    assert conversation.threads() == ["h1 a1 h2 a2 h3"]


def test_a_summary_in_place_of_everything_continues_the_thread() -> None:
    assert stored("h1 a1", "s", "s h2 a2").threads() == ["h1 a1 s h2 a2"]


def test_reordering_moves_nothing() -> None:
    conversation = stored("h1 a1 h2 a2")
    keys = conversation.store("a2 h1 h2 a1")
    assert conversation.read(keys) == "a2 h1 h2 a1"
    assert conversation.threads() == ["h1 a1 h2 a2"]
    assert len(conversation.rows) == 4


def test_a_list_with_a_message_removed_from_its_middle_continues_the_thread() -> None:
    assert stored("h1 a1 h2 a2", "h1 a1 a2", "h1 a1 a2 h3").threads() == ["h1 a1 h2 a2 h3"]


@pytest.mark.parametrize("input_list_first", [True, False])
def test_a_message_placed_on_another_thread_lives_there_whenever_its_list_is_stored(
    input_list_first: bool,
) -> None:
    conversation = stored("h1 a1", "h1 a1 h2 a2", "h1 a1")
    if input_list_first:
        conversation.store("h1 a1 h2 a2 h3")
        conversation.place("h3", "a1")
    else:
        conversation.insert("h3", "h3", conversation.live("a1").key)
        conversation.store("h1 a1 h2 a2 h3")
    conversation.store("h1 a1 h3 a3")
    assert conversation.threads() == ["h1 a1 h2 a2", "h1 a1 h3 a3"]


@pytest.mark.parametrize("writes", ["input first", "input last", "input never"])
def test_thirty_turns_over_three_interleaved_topics_are_three_pure_threads(writes: str) -> None:
    conversation = Tree()
    topics = {"x": "", "y": "", "z": ""}
    shown = ""
    for turn in range(30):
        topic = "xyzzyx"[turn % 6]
        human, answer = f"{topic}h{turn}", f"{topic}a{turn}"
        before = topics[topic].split()[-1] if topics[topic] else None
        if writes == "input first":
            conversation.store(f"{shown} {human}")
            conversation.place(human, before)
        else:
            conversation.insert(human, human, None if before is None else conversation.live(before).key)
        input_list = f"{shown} {human}"
        shown = topics[topic] = f"{topics[topic]} {human} {answer}".strip()
        conversation.store(shown)
        if writes == "input last":
            keys = conversation.store(input_list)
            assert conversation.read(keys) == input_list.strip()
    assert sorted(conversation.threads()) == sorted(topics.values())


def test_two_writers_on_one_tip_leave_two_sibling_threads() -> None:
    conversation = stored("h1 a1", "h1 a1 h2 a2", "h1 a1 x2", "h1 a1 x2 y2")
    assert conversation.threads() == ["h1 a1 h2 a2", "h1 a1 x2 y2"]


# --- laws --------------------------------------------------------------------------------------

ACTIONS = ["grow", "grow", "edit", "revert", "fork", "trim", "drop", "insert", "swap", "replay", "place"]
walks = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40), st.integers(0, 40)), max_size=25)


def walk(steps: list[tuple[str, int, int]], conversation: Tree) -> list[str]:
    """Store the lists of the steps and return them; `place` moves a stored message."""
    history = [""]
    for number, (action, i, j) in enumerate(steps):
        words = history[-1].split()
        at, other = (i % len(words), j % len(words)) if words else (0, 0)
        if action == "grow":
            words += [f"n{number}x{k}" for k in range(j % 3 + 1)]
        elif action == "edit" and words:
            words[at] += "'"
        elif action == "revert" and words:
            words[at] = words[at].removesuffix("'")
        elif action == "fork":
            words = words[: at + 1]
        elif action == "trim":
            words = words[at:]
        elif action == "drop" and words:
            del words[at]
        elif action == "insert":
            words.insert(at, f"s{number}")
        elif action == "swap" and words:
            words[at], words[other] = words[other], words[at]
        elif action == "replay":
            words = history[i % len(history)].split()
        elif action == "place":
            live = [row.message_id for row in conversation.rows.values() if row.state == State.LIVE]
            if live:
                moved, parent = live[i % len(live)], live[j % len(live)]
                below = conversation.path(conversation.live(parent).key)
                conversation.place(moved, None if conversation.live(moved).key in below else parent)
        history.append(" ".join(words))
        check_store(conversation, history[-1])
    return history


def check_store(conversation: Tree, words: str) -> None:
    """Store a list and check every law."""
    before = dict(conversation.rows)
    keys = conversation.store(words)
    assert conversation.read(conversation.keys(conversation.spans(keys))) == words
    for key, old in before.items():
        new = conversation.rows[key]
        assert replace(new, state=old.state, parent=old.parent, former=old.former) == old
        assert new.written == old.written
        assert (old.state, new.state) in {*((s, s) for s in State), (State.LIVE, State.SUPERSEDED)}
    live = Counter(row.message_id for row in conversation.rows.values() if row.state == State.LIVE)
    assert all(count == 1 for count in live.values())
    assert conversation.plan(words) == [Use(key) for key in keys]
    graph.validate(conversation.nodes())


@settings(max_examples=150)
@given(walks, st.booleans())
def test_every_list_of_a_random_walk_reads_back_and_breaks_no_law(
    steps: list[tuple[str, int, int]], keys_fall: bool
) -> None:
    conversation = Tree(first=9_999, step=-1) if keys_fall else Tree()
    history = walk(steps, conversation)
    rows = len(conversation.rows)
    for words in history:
        assert conversation.read(conversation.store(words)) == words
    assert len(conversation.rows) == rows, "a list whose every message is stored adds nothing"


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(["grow", "trim", "drop", "insert"]), st.integers(0, 40))))
def test_whatever_is_cut_or_summarised_a_conversation_stays_one_thread(steps: list[tuple[str, int]]) -> None:
    conversation = stored("m")
    words, said = ["m"], ["m"]
    for number, (action, i) in enumerate(steps):
        at = i % len(words)
        if action == "grow":
            said.append(f"m{number}")
            words.append(f"m{number}")
        elif action == "trim":
            words = words[at:]
        elif action == "drop" and at < len(words) - 1:
            del words[at]
        elif action == "insert":
            words.insert(at, f"s{number}")
        conversation.store(" ".join(words))
    assert conversation.threads() == [" ".join(said)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=30))
def test_however_a_conversation_is_edited_each_version_is_stored_once(steps: list[tuple[bool, int]]) -> None:
    conversation, words = stored("m"), ["m"]
    for number, (grows, i) in enumerate(steps):
        if grows:
            words.append(f"m{number}")
        else:
            words[i % len(words)] += "'"
        conversation.store(" ".join(words))
    assert conversation.threads() == [" ".join(words)]
    assert len(conversation.rows) == 1 + len(steps)


@given(st.lists(st.integers(1, 30), max_size=40), st.lists(st.integers(0, 30), min_size=31, max_size=31))
def test_runs_are_as_few_as_can_be(keys: list[int], parents: list[int]) -> None:
    above = {key: parents[key] % key or None for key in range(1, 31)}
    found = spans((key, above[key]) for key in keys)
    assert [first for first, _ in found] == [
        key for before, key in pairwise([None, *keys]) if before is None or above[key] != before
    ]
    assert all(above[later[0]] != earlier[1] for earlier, later in pairwise(found))


def test_a_thread_that_was_forked_at_every_message_is_one_run() -> None:
    assert spans([(10, None), (30, 10), (20, 30), (99, 20)]) == [(10, 99)]


def test_5_a_result_right_after_its_call_is_no_aside() -> None:
    tree = stored("h1 a1 h2")
    found = [*elements("h1 a1"), Element("t1", "t1", result=True), *elements("h2")]
    steps = plan(found, tree.places(), tree.tip).steps
    assert steps == [Use(1), Use(2), New(2, beside=True), Follow(3, Planned(2))]

"""Summaries of sessions and of the long-term memory: cases 55 and 56, R25, R34, R37."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import StreamCipher, WordEmbeddings
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from langchain_threadmem import MemorySystem, MemoryUnit, MessageSummary, ThreadMemSaver
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import (
    InputError,
    NodeNotFoundError,
    SessionNotFoundError,
    UnitNotFoundError,
)
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.owner_index import catch_up_owner
from langchain_threadmem.storage.schema import metadata
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.hierarchy import own_threads

TABLES = [name for name in metadata.tables if name != "threadmem_migration"]

Open = Callable[..., MemorySystem]
Wrap = Callable[[Any], Any]


class Writer:
    """Writes a short, numbered summary; fails from call `fails` on, if set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.contexts: list[str] = []
        self.fails: int | None = None
        self.says = "S{}."

    def summarize(self, message: Any) -> MessageSummary | None:
        self.asked.append(message.content)
        self.contexts.append(message.additional_kwargs["threadmem_context"])
        if self.fails is not None and len(self.asked) >= self.fails:
            return None
        number = len(self.asked)
        return MessageSummary(title=f"T{number}", summary=self.says.format(number))


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def opened(url: str, owner: str, writer: Writer) -> Iterator[Open]:
    """Opens the same memory repeatedly, with any settings."""
    systems: list[MemorySystem] = []

    def open_(size: int = 3, tokens: int = 2000, **options: Any) -> MemorySystem:
        settings = {"max_group_size": size, "max_token_count": tokens}
        chosen = {"embeddings": False, "summarizer": writer, **options}
        systems.append(MemorySystem(url, owner=owner, settings=settings, **chosen))
        return systems[-1]

    yield open_
    for system in systems:
        system.close()


def say(system: MemorySystem, number: int, session: str = "s", first: int = 0) -> None:
    system.conversation(session).extend([f"m{n}" for n in range(first, first + number)])


def contents(units: list[MemoryUnit]) -> list[str]:
    return [unit.content for unit in units]


@pytest.mark.parametrize(("leaves", "calls", "children"), [(1, 1, 1), (7, 4, 3), (10, 7, 2)])
def test_case_55_groups_of_three(
    opened: Open, writer: Writer, verbs: Wrap, leaves: int, calls: int, children: int
) -> None:
    system = opened(size=3)
    say(system, leaves)
    verb = verbs(system)
    root = verb.summarize_session("s")
    assert len(writer.asked) == calls
    assert (root.id, root.rank, len(root.children_ids)) == ("s", 1, children)
    assert contents(verb.unfold(root)) == [f"m{n}" for n in range(leaves)]
    parents = {verb.unit(unit.id).parent_id for unit in verb.unfold(root)}
    assert None not in parents


@pytest.mark.parametrize("text", ["aaaaa", "bb cc"])
def test_case_56_groups_of_twelve_tokens(opened: Open, writer: Writer, verbs: Wrap, text: str) -> None:
    system = opened(size=60, tokens=12)
    system.conversation("s").extend([text] * 4)
    root = verbs(system).summarize_session("s")
    assert len(writer.asked) == 3
    assert [len(unit.children_ids) for unit in system.unfold(root, levels=1)] == [2, 2]


def test_case_56_blank_output_changes_nothing(opened: Open, writer: Writer, verbs: Wrap, caplog: Any) -> None:
    system = opened(size=60, tokens=12)
    system.conversation("s").extend(["aaaaa"] * 4)
    writer.says = " \n"
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        assert verbs(system).summarize_session("s") is None
    assert len(writer.asked) == 1
    assert "'s' is not summarised" in caplog.text
    with pytest.raises(UnitNotFoundError):
        system.unit("s")
    assert [system.unit(node.message.id).parent_id for node in system.conversation("s").history] == [None] * 4


def all_units(system: MemorySystem, root: MemoryUnit) -> Iterator[MemoryUnit]:
    """A unit and all units below it; every link is checked from both ends."""
    yield root
    if root.rank == 0:
        return
    below = system.unfold(root, levels=1)
    assert [unit.id for unit in below] == list(root.children_ids)
    for unit in below:
        assert unit.parent_id == root.id
        yield from all_units(system, unit)


def test_r25_intermediates_carry_the_target_rank_their_level_and_what_they_cover(opened: Open) -> None:
    system = opened(size=2)
    say(system, 5)
    root = system.summarize_session("s")
    assert root is not None
    found = [
        (unit.rank, unit.metadata["action"], unit.metadata["level"], unit.metadata["messages"])
        for unit in all_units(system, root)
        if unit.rank
    ]
    summary = (1, "summary")
    assert found == [
        (*summary, 3, 5),
        *[(*summary, 2, 4), (*summary, 1, 2), (*summary, 1, 2)],
        *[(*summary, 2, 1), (*summary, 1, 1)],
    ]
    assert {unit.source for unit in all_units(system, root) if unit.rank} == {"ai-summary"}
    assert {unit.group_id for unit in all_units(system, root)} == {"s"}


def test_a_summary_says_which_time_it_covers_and_has_a_title(opened: Open) -> None:
    times = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 2, 3)]
    system = opened()
    system.conversation("s").extend(["a", "b", "c"], times)
    root = system.summarize_session("s")
    assert root is not None
    assert (root.creation_time, root.end_time, root.title, root.content) == (times[0], times[2], "T1", "S1.")


def test_the_summary_before_is_given_as_context(opened: Open, writer: Writer) -> None:
    system = opened(size=2)
    say(system, 4)
    system.summarize_session("s")
    assert writer.asked == ["user: m0\n\nuser: m1", "user: m2\n\nuser: m3", "S1.\n\nS2."]
    assert writer.contexts == ["", "S1.", ""]


def test_with_nothing_new_no_summary_is_written(opened: Open, writer: Writer, verbs: Wrap) -> None:
    verb = verbs(opened())
    say(verb._memory, 7)
    first = verb.summarize_session("s")
    assert verb.summarize_session("s") == first
    assert len(writer.asked) == 4


def test_only_the_ancestors_of_what_is_new_are_written_anew(opened: Open, writer: Writer) -> None:
    system = opened(size=3)
    say(system, 16)
    before = system.summarize_session("s")
    assert before is not None
    kept = {unit.id: unit.content for unit in all_units(system, before)}
    writer.asked.clear()
    say(system, 1, first=16)
    root = system.summarize_session("s")
    assert root is not None
    # Its own group, the group above that, and the root.
    assert writer.asked[0] == "user: m15\n\nuser: m16"
    assert len(writer.asked) == 3
    now = {unit.id: unit.content for unit in all_units(system, root)}
    assert len([name for name in kept if now[name] != kept[name]]) == 3
    assert contents(system.unfold("s")) == [f"m{n}" for n in range(17)]


def test_a_session_that_grows_gets_a_new_root_above_the_old_one(opened: Open, writer: Writer) -> None:
    system = opened(size=3)
    say(system, 3)
    before = system.summarize_session("s")
    say(system, 3, first=3)
    root = system.summarize_session("s")
    assert before is not None
    assert root is not None
    assert len(writer.asked) == 3
    assert [unit.content for unit in system.unfold(root, levels=1)] == [before.content, "S2."]
    assert [unit.id for unit in all_units(system, root)].count("s") == 1


def test_what_was_edited_makes_its_summaries_stale_until_the_next_run(
    opened: Open, writer: Writer, verbs: Wrap
) -> None:
    system = opened(size=2)
    say(system, 8)
    verb = verbs(system)
    verb.summarize_session("s")
    writer.asked.clear()
    system.conversation("s").edit(3, "new")
    root = system.unit("s")
    assert [unit.stale for unit in system.unfold(root, levels=2) if unit.rank] == [False, True, False, False]
    assert root.stale
    after = verb.summarize_session("s")
    # The group that lost a message, the new message's, and what lies above the two.
    assert writer.asked[0] == "user: m3"
    assert contents(verb.unfold(after)) == ["m0", "m1", "m3", "m4", "m5", "m6", "m7", "new"]
    assert not any(unit.stale for unit in all_units(system, after))


def test_what_is_live_again_is_summarised_again(opened: Open) -> None:
    system = opened(size=2)
    saver, fresh = ThreadMemSaver(system), empty_checkpoint()
    config: Any = {"configurable": {"thread_id": "s", "checkpoint_ns": ""}}

    def save(name: str, version: int, text: str) -> None:
        at = {
            **fresh,
            "id": str(uuid6(version)),
            "channel_values": {"messages": [HumanMessage(text, id="h1")]},
        }
        versions = {"messages": version}
        saver.put(config, {**at, "channel_versions": versions}, {"run_id": name}, versions)  # type: ignore[typeddict-item]

    for version, (name, text) in enumerate([("first", "old"), ("second", "new")], 1):
        save(name, version, text)
        root = system.summarize_session("s")
        assert root is not None
        assert contents(system.unfold(root)) == [text]
    saver.delete_for_runs(["second"])
    with pytest.raises(UnitNotFoundError):
        system.unit("s")
    root = system.summarize_session("s")
    assert root is not None
    assert contents(system.unfold(root)) == ["old"]


def test_a_failed_run_changes_nothing_and_the_next_goes_on_from_there(
    opened: Open, writer: Writer, verbs: Wrap, caplog: Any
) -> None:
    system = opened(size=3)
    say(system, 10)
    writer.fails = 4
    verb = verbs(system)
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        assert verb.summarize_session("s") is None
    with pytest.raises(UnitNotFoundError):
        verb.unit("s")
    writer.fails = None
    writer.asked.clear()
    told: list[tuple[int, int]] = []
    verb = verbs(opened(size=3))  # another process, as it were
    root = verb.summarize_session("s", progress=lambda done, of: told.append((done, of)))
    assert len(writer.asked) == 4
    assert told == [(n, 7) for n in range(1, 8)]
    assert contents(verb.unfold(root)) == [f"m{n}" for n in range(10)]


def test_a_failed_run_leaves_the_summaries_of_the_last_one(opened: Open, writer: Writer) -> None:
    system = opened(size=3)
    say(system, 4)
    before = system.summarize_session("s")
    say(system, 3, first=4)
    writer.fails = 0
    assert system.summarize_session("s") is None
    assert system.unit("s") == before
    assert contents(system.unfold("s")) == ["m0", "m1", "m2", "m3"]


def test_a_summarizer_that_raises_is_a_failure_like_any_other(opened: Open, caplog: Any) -> None:
    class Broken:
        def summarize(self, message: Any) -> MessageSummary | None:
            raise ConnectionError("no route")

    system = opened(summarizer=Broken())
    say(system, 2)
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        assert system.summarize_session("s") is None
    assert "no route" in caplog.text


def test_messages_that_come_while_a_run_lasts_are_left_to_the_next(opened: Open, url: str) -> None:
    class Talkative(Writer):
        def summarize(self, message: Any) -> MessageSummary | None:
            if len(self.asked) < 2:
                say(other, 1, first=50 + len(self.asked))
            return super().summarize(message)

    other, talkative = opened(), Talkative()
    system = opened(summarizer=talkative)
    say(system, 4)
    root = system.summarize_session("s")
    assert root is not None
    assert contents(system.unfold(root)) == ["m0", "m1", "m2", "m3"]
    assert contents(system.unfold(other.summarize_session("s") or "")) == [
        "m0",
        "m1",
        "m2",
        "m3",
        "m50",
        "m51",
    ]


def test_a_message_that_changes_while_a_run_lasts_is_summarised_as_it_is_now(opened: Open) -> None:
    class Editing(Writer):
        def summarize(self, message: Any) -> MessageSummary | None:
            if not self.asked:
                other.conversation("s").edit(1, "changed")
            return super().summarize(message)

    other, editing = opened(), Editing()
    system = opened(summarizer=editing)
    say(system, 3)
    root = system.summarize_session("s")
    assert root is not None
    assert contents(system.unfold(root)) == ["m1", "m2", "changed"]
    assert not root.stale


def test_two_runs_at_once_end_in_one_hierarchy(opened: Open) -> None:
    class Overtaken(Writer):
        def summarize(self, message: Any) -> MessageSummary | None:
            if not self.asked:
                other.summarize_session("s")
            return super().summarize(message)

    other = opened()
    system = opened(summarizer=Overtaken())
    say(system, 7)
    root = system.summarize_session("s")
    assert root is not None
    assert sorted(contents([unit for unit in all_units(system, root) if not unit.rank])) == [
        f"m{n}" for n in range(7)
    ]


def test_a_session_that_is_erased_while_a_run_lasts_leaves_no_draft(opened: Open) -> None:
    class Erasing(Writer):
        def summarize(self, message: Any) -> MessageSummary | None:
            other.erase(conversation="s")
            return super().summarize(message)

    other, system = opened(), opened(summarizer=Erasing())
    say(system, 3)
    with pytest.raises(SessionNotFoundError, match="erased"):
        system.summarize_session("s")
    orphans = "SELECT summary FROM threadmem_summary_draft WHERE tree NOT IN (SELECT id FROM threadmem_tree)"
    drafts = Statement.of(sqlite=orphans, postgresql=orphans)
    assert system.runtime.database.read(lambda conn: conn.all(drafts)) == []


def test_a_run_returns_its_summary_if_another_run_replaces_it_at_once(
    opened: Open, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, system = opened(), opened()
    say(system, 3)
    database = system.runtime.database
    write = database.write

    def overtaken(transaction: Any) -> Any:
        result = write(transaction)
        if not database.read(lambda conn: summary_queries.unfinished(conn, owner)):
            monkeypatch.undo()
            other.conversation("s").edit(1, "changed")
            assert other.summarize_session("s").content == "S2."
        return result

    monkeypatch.setattr(database, "write", overtaken)
    assert system.summarize_session("s").content == "S1."


def test_a_session_is_summarised_thread_by_thread(opened: Open, writer: Writer, verbs: Wrap) -> None:
    system = opened(size=60)
    memory = system.conversation("s", node_selector=by_first_letter)
    for text in ("a1", "b1", "a2", "b2"):
        memory.append(text, text.upper())
    root = verbs(system).summarize_session("s", by="thread")
    assert writer.asked[:2] == [
        "user: a1\n\nai: A1\n\nuser: a2\n\nai: A2",
        "user: b1\n\nai: B1\n\nuser: b2\n\nai: B2",
    ]
    assert [unit.metadata["thread"] for unit in system.unfold(root, levels=1)] == [1, 3]
    writer.asked.clear()
    memory.append("b3", "B3")
    root = verbs(system).summarize_session("s")
    assert [text.count("b3") for text in writer.asked] == [1, 0]
    assert contents(system.unfold(root)) == [
        *("a1", "A1", "a2", "A2"),
        *("b1", "B1", "b2", "B2", "b3", "B3"),
    ]


def test_one_thread_is_summarised_alone(opened: Open, writer: Writer, verbs: Wrap) -> None:
    system = opened(size=60)
    memory = system.conversation("s", node_selector=by_first_letter)
    for text in ("a1", "b1", "a2"):
        memory.append(text, text.upper())
    summary = verbs(system).summarize_thread(2, session="s")
    assert writer.asked == ["user: a1\n\nai: A1\n\nuser: a2\n\nai: A2"]
    assert (summary.rank, summary.metadata["thread"], summary.group_id) == (1, 1, "s")
    assert contents(system.unfold(summary)) == ["a1", "A1", "a2", "A2"]
    with pytest.raises(UnitNotFoundError):
        system.unit("s")  # The session itself is not summarised.
    assert verbs(system).summarize_thread(1, session="s") == summary
    assert len(writer.asked) == 1


def test_a_session_takes_up_the_summaries_of_its_threads(opened: Open, writer: Writer, verbs: Wrap) -> None:
    system = opened(size=60)
    memory = system.conversation("s", node_selector=by_first_letter)
    for text in ("a1", "b1"):
        memory.append(text, text.upper())
    system.summarize_thread(1, session="s")
    writer.asked.clear()
    root = verbs(system).summarize_session("s")
    assert writer.asked == ["user: b1\n\nai: B1", "S1.\n\nS1."]
    memory.append("a2", "A2")
    system.summarize_thread(1, session="s")
    assert system.unit("s").stale
    writer.asked.clear()
    assert system.summarize_session("s") == system.unit("s") != root
    assert len(writer.asked) == 1
    assert contents(system.unfold("s")) == ["a1", "A1", "a2", "A2", "b1", "B1"]
    assert system.summarize_long_term_memory() is not None
    assert system.verify().ok


def test_a_thread_that_cannot_be_summarised_says_why(opened: Open, verbs: Wrap) -> None:
    system = opened()
    memory = system.conversation("s")
    memory.append("a1", "A1")
    memory.edit(2, ("ai", "A2"))
    with pytest.raises(NodeNotFoundError, match="session 's' has no node 99"):
        verbs(system).summarize_thread(99, session="s")
    with pytest.raises(InputError, match="superseded"):
        verbs(system).summarize_thread(2, session="s")
    with pytest.raises(SessionNotFoundError):
        verbs(system).summarize_thread(1, session="t")
    system.summarize_session("s", by="session")
    with pytest.raises(InputError, match="by='thread'"):
        verbs(system).summarize_thread(1, session="s")


def test_a_session_can_be_grouped_anew(opened: Open) -> None:
    system = opened(size=2)
    memory = system.conversation("s", node_selector=by_first_letter)
    for text in ("a1", "b1", "a2"):
        memory.append(text, text.upper())
    said = ["a1", "A1", "b1", "B1", "a2", "A2"]
    for by, order in (("session", said), ("thread", [*said[:2], *said[4:], *said[2:4]]), ("session", said)):
        root = system.summarize_session("s", by=by)  # type: ignore[arg-type]
        assert root is not None
        assert [unit.content for unit in all_units(system, root) if not unit.rank] == order
    with pytest.raises(InputError, match="by='topic'"):
        system.summarize_session("s", by="topic")  # type: ignore[arg-type]


def by_first_letter(tree: Any, message: Any) -> int | None:
    ends = [end.id for end in tree.turn_ends() if end.human[0] == message.content[0]]
    return ends[-1] if ends else None


def test_the_long_term_memory_covers_every_session(
    opened: Open, writer: Writer, owner: str, verbs: Wrap
) -> None:
    system = opened(size=3)
    for number in range(4):
        say(system, 2, session=f"s{number}", first=10 * number)
    verb = verbs(system)
    root = verb.summarize_long_term_memory()
    assert (root.id, root.rank, root.group_id, len(writer.asked)) == (owner, 2, owner, 4 + 3)
    assert [unit.id for unit in verb.unfold(root, levels=2)] == ["s0", "s1", "s2", "s3"]
    assert {unit.rank for unit in verb.unfold(root, levels=1)} == {2}
    assert contents(verb.unfold(root)) == ["m0", "m1", "m10", "m11", "m20", "m21", "m30", "m31"]
    assert verb.summarize_long_term_memory() == root
    writer.asked.clear()
    say(system, 1, session="s3", first=99)
    after = verb.summarize_long_term_memory()
    # The session, the group it is in, and the root.
    assert len(writer.asked) == 3
    assert contents(verb.unfold(after))[-1] == "m99"


def test_sessions_are_summarised_in_the_order_in_which_they_began(opened: Open, owner: str) -> None:
    system = opened(size=2)
    for day in (3, 1, 2):
        system.conversation(f"day {day}").extend(["m"], [datetime(2026, 5, day, tzinfo=UTC)])
    system.summarize_session("day 2")
    root = system.summarize_long_term_memory()
    assert root is not None
    assert [unit.id for unit in system.unfold(root, levels=2)] == ["day 1", "day 2", "day 3"]


def test_a_memory_in_which_nothing_was_said_has_no_summary(opened: Open) -> None:
    system = opened()
    assert system.summarize_long_term_memory() is None
    with pytest.raises(SessionNotFoundError, match="'nowhere'"):
        system.summarize_session("nowhere")


def test_without_an_id_the_session_at_hand_is_summarised(opened: Open, verbs: Wrap) -> None:
    system = opened()
    verb = verbs(system)
    with pytest.raises(InputError, match="no current session"):
        verb.summarize_session()
    unit = verb.add_memory("Hello")
    assert verb.summarize_session().id == unit.group_id


def test_r34_removing_a_session_makes_what_lies_above_it_stale(
    opened: Open, writer: Writer, verbs: Wrap
) -> None:
    system = opened(size=2)
    for name in ("a", "b", "c"):
        say(system, 2, session=name)
    verb = verbs(system)
    root = verb.summarize_long_term_memory()
    verb.remove_session("b", cascade="stale")
    stale = verb.unit(root.id)
    assert stale.stale
    assert [unit.stale for unit in verb.unfold(root, levels=1)] == [True, False]
    assert [unit.id for unit in verb.unfold(root, levels=2)] == ["a", "c"]
    assert verb.unit("c").parent_id is not None
    writer.asked.clear()
    after = verb.summarize_long_term_memory()
    # Two groups of one session each are one group now.
    assert len(writer.asked) == 1
    assert not after.stale
    assert {unit.group_id for unit in verb.unfold(after)} == {"a", "c"}


def test_r34_what_may_quote_a_removed_session_goes_with_it(opened: Open, verbs: Wrap) -> None:
    system = opened(size=2)
    for name in ("a", "b", "c"):
        say(system, 2, session=name)
    verb = verbs(system)
    root = verb.summarize_long_term_memory()
    verb.remove_session("b")
    with pytest.raises(UnitNotFoundError):
        verb.unit(root.id)
    # The summary above "c" was written after that above "a" and "b", and may quote it.
    assert [verb.unit(name).parent_id for name in ("a", "c")] == [None, None]
    again = verb.summarize_long_term_memory()
    assert {unit.group_id for unit in verb.unfold(again)} == {"a", "c"}


def test_removing_a_session_drops_what_was_kept_for_an_unfinished_run(opened: Open, writer: Writer) -> None:
    system = opened(size=2)
    for name in ("a", "b", "c"):
        say(system, 2, session=name)
        system.summarize_session(name)
    writer.fails = len(writer.asked) + 2
    assert system.summarize_long_term_memory() is None
    system.remove_session("a", cascade="stale")
    drafts = Statement.of(
        **dict.fromkeys(("sqlite", "postgresql"), "SELECT tree FROM threadmem_summary_draft")
    )
    mine = {
        tree
        for scope in ("", "a", "b", "c")
        if (
            tree := system.runtime.database.read(
                lambda c, s=scope: summary_queries.tree_of(c, system.owner, s)
            )
        )  # type: ignore[misc]
    }
    assert mine.isdisjoint(row[0] for row in system.runtime.database.read(lambda c: c.all(drafts)))


@pytest.mark.parametrize("title", ["a\0b", "\ud800", "🧵" * 500])
def test_hostile_titles_and_texts_are_stored(opened: Open, title: str) -> None:
    class Hostile:
        def summarize(self, message: Any) -> MessageSummary | None:
            return MessageSummary(title=title, summary=title)

    system = opened(summarizer=Hostile())
    say(system, 4)
    root = system.summarize_session("s")
    assert root is not None
    assert root.content == title


def test_no_owner_sees_the_summaries_of_another(opened: Open, url: str, owner: str) -> None:
    system = opened()
    say(system, 3)
    root = system.summarize_long_term_memory()
    assert root is not None
    with MemorySystem(url, owner=f"{owner}x", embeddings=False) as other:
        for unit in (root, root.id, "s", system.unfold(root)[0]):
            with pytest.raises(UnitNotFoundError):
                other.unfold(unit)
        assert other.summarize_long_term_memory() is None
        assert other.usage.total.calls == 0


def test_a_copied_thread_has_no_summaries_until_it_gets_its_own(opened: Open) -> None:
    system = opened()
    say(system, 4)
    system.summarize_session("s")
    ThreadMemSaver(system).copy_thread("s", "t")
    with pytest.raises(UnitNotFoundError):
        system.unit("t")
    root = system.summarize_session("t")
    assert root is not None
    assert contents(system.unfold(root)) == ["m0", "m1", "m2", "m3"]


def test_summaries_and_drafts_of_an_encrypted_session_are_encrypted(opened: Open, writer: Writer) -> None:
    secret = f"heron{uuid4().hex}"
    system = opened(size=2, cipher=StreamCipher())
    writer.says = f"{secret} {{}}"
    writer.fails = 2
    say(system, 4)
    assert system.summarize_session("s") is None
    assert secret not in everything(system)
    writer.fails = None
    root = system.summarize_long_term_memory()
    assert root is not None
    assert secret in root.content
    assert contents(system.unfold(root)) == ["m0", "m1", "m2", "m3"]
    assert secret not in everything(system)


def everything(system: MemorySystem) -> str:
    """Every row of every table, as text."""
    reads = [Statement.of(sqlite=sql, postgresql=sql) for sql in (f"SELECT * FROM {name}" for name in TABLES)]
    return repr(system.runtime.database.read(lambda conn: [conn.all(read) for read in reads]))


def test_summaries_that_were_replaced_leave_the_indexes(opened: Open, tmp_path: Path) -> None:
    system = opened(size=2, embeddings=WordEmbeddings(), vectors=tmp_path / "vectors")
    index = system.runtime.get(Indexes).index()
    assert index is not None
    for number in range(3):
        say(system, 2, first=2 * number)
        root = system.summarize_long_term_memory()
        assert root is not None
        run(catch_up_owner(system.runtime), system.runtime)
        units = 2 * number + 2 + len([unit for unit in all_units(system, root) if unit.rank])
        assert index.count() == units
        words = system.runtime.database.read(
            lambda c: watermarks.total(c, system.owner, system.runtime.get(Indexes).lexicon)
        )
        assert words.documents == units
    system.remove_session("s", cascade="delete")
    assert index.count() == 0


def test_a_summary_in_another_thread_keeps_nobody_waiting(opened: Open) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Writer):
        def summarize(self, message: Any) -> MessageSummary | None:
            begun.set()
            assert go_on.wait(120)
            return super().summarize(message)

    system = opened(summarizer=Slow())
    say(system, 2)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(system.summarize_session, "s")
        assert begun.wait(120)
        say(system, 1, first=2)
        assert not future.done()
        go_on.set()
        root = future.result(120)
    assert root is not None
    assert contents(system.unfold(root)) == ["m0", "m1"]
    whole = system.summarize_long_term_memory()
    assert whole is not None
    assert contents(system.unfold(whole)) == ["m0", "m1", "m2"]


@pytest.mark.parametrize(
    ("table", "problem"),
    [("summary", "belongs to a summary that does not exist"), ("node", "has no text")],
)
def test_verify_finds_links_that_lead_nowhere(opened: Open, owner: str, table: str, problem: str) -> None:
    system = opened(size=2)
    say(system, 4)
    system.summarize_long_term_memory()
    assert system.verify().problems == ()
    mine = "SELECT id FROM threadmem_tree WHERE scope = 'summaries' AND owner = '{owner}'"
    sql = f"DELETE FROM threadmem_{table} WHERE tree IN ({mine.format(owner=owner)})"
    system.runtime.database.write(lambda conn: conn.run(Statement.of(sqlite=sql, postgresql=sql)))
    assert any(problem in found for found in system.verify().problems)


def test_unfolding_says_what_is_wrong(opened: Open) -> None:
    system = opened()
    with pytest.raises(UnitNotFoundError, match="'nothing'"):
        system.unfold("nothing")
    with pytest.raises(InputError, match="levels=-1"):
        system.unfold("nothing", levels=-1)
    for name in ("a", "b"):
        system.conversation(name).append(HumanMessage("same id", id="m"))
    with pytest.raises(InputError, match="2 sessions"):
        system.unfold("m")
    assert system.unit("m", session="b").group_id == "b"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.text(max_size=30).filter(str.strip)),
        st.tuples(st.just("edit"), st.integers(0, 99)),
        st.tuples(st.just("summarise"), st.sampled_from(["session", "thread", None])),
        st.tuples(st.just("summarise a thread"), st.integers(0, 99)),
    ),
    max_size=15,
)


def starts_or_goes_on(tree: Any, message: Any) -> int | None:
    ends = [end.id for end in tree.turn_ends()]
    return ends[len(message.content) % len(ends)] if len(message.content) % 3 and ends else None


@settings(max_examples=60)
@given(steps, st.integers(2, 5), st.integers(1, 60), st.booleans())
def test_summarising_ends_and_covers_every_message_exactly_once(
    done: list[tuple[str, Any]], size: int, tokens: int, echo: bool
) -> None:
    class Echo(Writer):
        """Summaries as long as their sources: a level shrinks only in its number of units."""

        def summarize(self, message: Any) -> MessageSummary | None:
            return MessageSummary(title="T", summary=message.content)

    limits = {"max_group_size": size, "max_token_count": tokens}
    with MemorySystem(embeddings=False, summarizer=Echo() if echo else Writer(), settings=limits) as system:
        memory = system.conversation("s", node_selector=starts_or_goes_on)
        by: str | None = None
        for what, value in [*done, ("say", "last"), ("summarise", None)]:
            live = [node for node in memory.history if node.state == 0]
            if what == "say":
                memory.append(value, "answer")
            elif what == "edit" and live:
                chosen = live[value % len(live)]
                role = "user" if chosen.message.type == "human" else "ai"
                memory.edit(chosen.id, (role, "edited"))
            elif what == "summarise" and live:
                root = system.summarize_session("s", by=value)
                assert root is not None
                covered = [unit.node_id for unit in all_units(system, root) if not unit.rank]
                assert sorted(covered) == [node.id for node in live]  # type: ignore[type-var]
                assert root.metadata["messages"] == len(live)
                by = value or by or "session"
            elif what == "summarise a thread" and live and by != "session":
                by = "thread"
                chosen = live[value % len(live)]
                root = system.summarize_thread(chosen.id, session="s")
                assert root is not None
                covered = [unit.node_id for unit in all_units(system, root) if not unit.rank]
                assert chosen.id in covered
                assert len(covered) == len(set(covered)) == root.metadata["messages"]
                threads = own_threads([(n.id, n.parent_id, n.state == 0) for n in memory.history])
                if not any(step == "edit" for step, _ in done):  # An edit may join a thread to an older one.
                    assert {*covered} == {n.id for n in live if threads[n.id] == threads[chosen.id]}

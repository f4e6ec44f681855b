"""The list of conversations of an owner, and of threads of a conversation."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import StreamCipher
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import InputError, NodeNotFoundError, SessionNotFoundError, ThreadMemError

Wrap = Callable[[Any], Any]


@pytest.fixture
def listing(system: MemorySystem, verbs: Wrap) -> Any:
    for name, text in (("bread", "How do I bake bread?"), ("tea", "Which tea is green?")):
        system.conversation(name).append(text, f"More about {name}.")
    system.conversation("bread").append("And rye?", "Longer.")
    return verbs(system)


def ids(found: Any) -> list[str]:
    return [one.id for one in found]


def pages(listing: Any, limit: int, **options: Any) -> list[Any]:
    """All pages of a list of conversations."""
    page = listing.list_conversations(limit=limit, **options)
    found = list(page)
    while page.cursor is not None:
        page = listing.list_conversations(limit=limit, cursor=page.cursor, **options)
        found += page
    return found


def test_the_conversation_that_was_used_last_comes_first(listing: Any) -> None:
    first, second = listing.list_conversations()
    assert (first.id, first.preview, first.messages) == ("bread", "Longer.", 4)
    assert (second.id, second.preview, second.messages) == ("tea", "More about tea.", 2)
    assert first.started <= second.updated <= first.updated
    assert "bread" in first.title.lower()


def test_pages_follow_each_other_without_gap_or_repetition(system: MemorySystem, verbs: Wrap) -> None:
    for number in range(7):
        system.conversation(f"c{number}").append("Hello", "Hi!")
    assert ids(pages(verbs(system), 3)) == [f"c{number}" for number in reversed(range(7))]


@pytest.mark.parametrize("seed", range(3))
def test_pages_are_in_the_order_of_the_newest_messages_whatever_their_times(
    system: MemorySystem, verbs: Wrap, seed: int
) -> None:
    rng, listing, newest = random.Random(seed), verbs(system), {}
    names = [f"c{number}" for number in range(12)]
    for name in names + rng.choices(names, k=24):
        newest[name] = 1.2e9 + rng.choice([0, 0.5, 1, 1.5, -1, rng.randrange(-20, 20) / 4])
        system.conversation(name).extend(["Hello"], [datetime.fromtimestamp(newest[name], UTC)])
    seen = [(one.id, one.updated.timestamp()) for one in pages(listing, 5)]
    # Of conversations with the same time the newer one comes first.
    assert seen == sorted(newest.items(), key=lambda item: (item[1], names.index(item[0])), reverse=True)
    recent = listing.list_conversations(since=datetime.fromtimestamp(1.2e9, UTC))
    assert ids(recent) == [name for name, time in seen if time >= 1.2e9]


def test_many_conversations_of_one_second_are_listed_in_order(system: MemorySystem, verbs: Wrap) -> None:
    times = {f"c{number}": 1.2e9 + number * 7 % 1000 / 1000 for number in range(120)}
    for name, time in times.items():
        for before in (0.5, 0):
            at = datetime.fromtimestamp(time - before, UTC)
            system.conversation(name).extend(["Hello"], [at])
    expected = sorted(times, key=lambda name: times[name], reverse=True)
    assert ids(pages(verbs(system), 7)) == expected
    since = datetime.fromtimestamp(times[expected[80]], UTC)
    assert ids(pages(verbs(system), 7, since=since)) == expected[:81]


def test_an_emptied_conversation_is_not_listed_until_it_is_used_again(
    listing: Any, system: MemorySystem
) -> None:
    system.conversation("bread").reset()
    assert ids(listing.list_conversations()) == ["tea"]
    system.conversation("bread").append("Hello", "Hi!")
    assert ids(listing.list_conversations()) == ["bread", "tea"]


def test_a_read_only_memory_finds_words_that_are_in_no_index(
    listing: Any, system: MemorySystem, url: str, owner: str, verbs: Wrap
) -> None:
    assert ids(listing.list_conversations(query="green")) == ["tea"]
    system.conversation("bread").append("Is dough ever green?", "With spinach.")
    system.conversation("new").append("A green door", "Is open.")
    with MemorySystem(url, owner=owner, embeddings=False, read_only=True) as reader:
        for query in ("green", "GREEN", "spinach bread", "spinach open"):
            found = ids(verbs(reader).list_conversations(query=query))
            assert found == ids(listing.list_conversations(query=query))


def test_a_query_finds_words_of_messages_and_of_titles(listing: Any) -> None:
    assert ids(listing.list_conversations(query="green")) == ["tea"]
    listing.update_conversation("bread", title="Green things")
    assert ids(listing.list_conversations(query="green")) == ["bread", "tea"]
    assert ids(listing.list_conversations(query="zebra")) == []


def test_metadata_is_set_and_filtered(listing: Any) -> None:
    assert listing.update_conversation("tea", metadata={"stars": 3}).metadata == {"stars": 3}
    assert ids(listing.list_conversations(metadata={"stars": {"$gte": 3}})) == ["tea"]
    assert ids(listing.list_conversations(metadata={"stars": 4})) == []


def test_a_title_is_set_and_taken_back(listing: Any) -> None:
    assert listing.update_conversation("tea", title="My tea").title == "My tea"
    assert listing.update_conversation("tea", metadata={"a": 1}).title == "My tea"
    assert "tea" in listing.update_conversation("tea", title="").title.lower()


def test_an_archived_conversation_is_listed_on_demand(listing: Any) -> None:
    assert listing.update_conversation("tea", archived=True).archived is not None
    assert ids(listing.list_conversations()) == ["bread"]
    assert ids(listing.list_conversations(archived=True)) == ["tea"]
    assert ids(listing.list_conversations(archived="both")) == ["bread", "tea"]
    listing.update_conversation("tea", archived=False)
    assert ids(listing.list_conversations()) == ["bread", "tea"]


def test_only_conversations_since_a_time_are_listed(listing: Any) -> None:
    now = datetime.now(UTC)
    assert ids(listing.list_conversations(since=now - timedelta(hours=1))) == ["bread", "tea"]
    assert ids(listing.list_conversations(since=now + timedelta(hours=1))) == []


def test_a_summary_gives_its_title(listing: Any, system: MemorySystem) -> None:
    summary = system.summarize_session("bread")
    assert summary is not None
    first, second = listing.list_conversations()
    assert first.summary == summary.content
    assert second.summary is None


def test_nothing_of_another_owner_is_listed_or_changed(listing: Any, url: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner="somebody else", embeddings=False) as other:
        assert verbs(other).list_conversations() == []
        assert verbs(other).list_conversations(query="green") == []
        with pytest.raises(SessionNotFoundError, match="'tea'"):
            verbs(other).update_conversation("tea", title="Mine")


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": True},
        {"cursor": "nonsense"},
        {"cursor": b"1.0 1"},
        {"cursor": "nan 1"},
        {"cursor": "1.0 9223372036854775808"},
        {"archived": "no"},
        {"archived": None},
        {"since": "yesterday"},
        {"query": 7},
        {"metadata": {"stars": {"$near": 3}}},
    ],
)
def test_an_argument_that_cannot_be_used_is_named(listing: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        listing.list_conversations(**options)


@pytest.mark.parametrize("options", [{"archived": "no"}, {"title": 0}, {"title": ["Tea"]}], ids=str)
def test_a_setting_of_another_kind_is_refused_and_changes_nothing(listing: Any, options: Any) -> None:
    before = listing.update_conversation("tea", title="Green tea", archived=True)
    with pytest.raises(InputError, match=r"archived='no'|a title"):
        listing.update_conversation("tea", **options)
    assert listing.update_conversation("tea") == before


@pytest.mark.parametrize("metadata", [3, {"when": datetime.now(UTC)}, {1: "a"}])
def test_metadata_that_is_no_json_object_is_refused(listing: Any, metadata: Any) -> None:
    with pytest.raises(InputError, match="not a JSON object"):
        listing.update_conversation("tea", metadata=metadata)


def test_what_was_set_goes_with_the_conversation(listing: Any, system: MemorySystem) -> None:
    listing.update_conversation("tea", title="Secret", metadata={"word": "secret"})
    assert system.erase(conversation="tea").ok
    system.conversation("tea").append("Hello", "Hi!")
    [found] = [one for one in listing.list_conversations() if one.id == "tea"]
    assert (found.title, found.metadata) == ("Hello", {})


def test_titles_and_metadata_are_encrypted(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemorySystem(file, embeddings=False, cipher=StreamCipher()) as system:
        system.conversation("c").append("Hello", "Hi!")
        system.update_conversation("c", title="Gallbladder", metadata={"word": "surgery"})
        [found] = system.list_conversations(query="gallbladder")
        assert (found.title, found.metadata) == ("Gallbladder", {"word": "surgery"})
    with sqlite3.connect(file) as connection:
        assert "Gallbladder" not in str(connection.execute("SELECT * FROM threadmem_profile").fetchall())


def test_threads_are_listed_by_their_last_use(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("talk")
    _, answer = memory.append("How do I bake bread?", "With patience.")
    memory.append("And rye?", "Longer.")
    memory.checkout(answer.id)
    memory.append("And cake?", "Shorter.")
    first, second = verbs(memory).list_threads()
    assert (first.preview, first.messages, first.active) == ("Shorter.", 4, True)
    assert (second.preview, second.messages, second.active) == ("Longer.", 4, False)
    assert first.root_id == second.root_id == 1
    [last] = verbs(memory).list_threads(limit=1, cursor=verbs(memory).list_threads(limit=1).cursor)
    assert last == second


def test_a_thread_that_ends_with_a_system_message_stays_in_the_list(
    system: MemorySystem, verbs: Callable[[ChatMemory], Any]
) -> None:
    memory = verbs(system.conversation("rules"))
    memory.append("Hello", "Hi!")
    memory.append(SystemMessage("Be brief."))
    (thread,) = memory.list_threads()
    assert (thread.preview, thread.messages, thread.active) == ("Hi!", 2, True)


@pytest.mark.parametrize("seed", range(3))
def test_a_list_of_threads_that_follows_changes_equals_a_new_list(
    system: MemorySystem, url: str, seed: int
) -> None:
    chance, chosen = random.Random(seed), [None]
    memory = system.conversation("walk", node_selector=lambda tree, message: chosen[0])
    saver = ThreadMemSaver(system)
    config: Any = {"configurable": {"thread_id": "walk", "checkpoint_ns": ""}}
    memory.append("begin", "yes")
    for n in range(40):
        live = [node.id for node in memory.history]
        one, other = chance.choice(live), chance.choice([*live, None])
        chosen[0] = other  # type: ignore[call-overload]
        match chance.choice(["append", "append", "append", "system", "extend", "edit", "place", "graph"]):
            case "append":
                memory.append(f"question {n}", f"answer {n}")
            case "system":
                memory.append(SystemMessage(f"rule {n}"))
            case "extend":
                memory.extend([f"old {n}", ("ai", "so"), "on"], [at(chance.randrange(60))] * 3)
            case "edit":
                memory.edit(one, f"edited {n}")
            case "place":
                with suppress(ThreadMemError):
                    memory.place(one, other)
            case "graph":
                thread = [node.message for node in memory.thread(one)]
                values = {"messages": [HumanMessage("a notice"), *thread, HumanMessage(f"from a graph {n}")]}
                versions: Any = {"messages": n}
                checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
                saver.put(config, cast("Any", checkpoint), {}, versions)
        if n % 2:
            with MemorySystem(url, owner=system.owner, embeddings=False) as new:
                assert memory.list_threads() == new.conversation("walk").list_threads()


def test_a_page_of_threads_reads_the_nodes_alone_that_are_new(
    system: MemorySystem, counted_rows: Callable[[], list[int]]
) -> None:
    chosen: list[int | None] = [None]
    memory = system.conversation("long", node_selector=lambda tree, message: chosen[0])
    for n in range(40):
        memory.append(f"question {n}", f"answer {n}")
    first = memory.list_threads(limit=3)
    rows = counted_rows()
    assert memory.list_threads(limit=1, cursor=first.cursor)[0].preview == "answer 36"
    assert sum(rows) < 20
    chosen[0] = 2  # continued by the first message, and then by another one
    for n in (40, 41):
        memory.append(f"question {n}", f"answer {n}")
        rows.clear()
        found = memory.list_threads(limit=2)
        assert [thread.preview for thread in found] == [f"answer {n}", f"answer {39 if n == 40 else 40}"]
        assert found[0].messages == 4
        assert sum(rows) < 20


def test_an_empty_conversation_has_no_threads(verbs: Wrap) -> None:
    page = verbs(ChatMemory()).list_threads()
    assert (page, page.cursor) == ([], None)


def test_a_thread_is_renamed_and_the_title_stays_when_its_first_message_is_placed_and_edited(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = system.conversation("tea")
    memory.append(("system", "Be brief."))
    human, answer = memory.append("Which tea is green?", "Sencha.")
    renamed = verbs(memory)
    assert renamed.rename_thread(answer.message.id, "Tea time") == "Tea time"
    renamed.place(human.id, human.parent_id)
    assert [thread.title for thread in renamed.list_threads()] == ["Tea time"]
    edited = renamed.edit(human.id, "Which teas are green?")
    assert [thread.title for thread in renamed.list_threads()] == ["Tea time"]
    assert renamed.rename_thread(edited.id, "") == "Which teas are green?"
    assert [node.placement for node in renamed.history() if node.id == edited.id] == [None]
    with pytest.raises(NodeNotFoundError, match="no node 9"):
        renamed.rename_thread(9, "Tea")
    for title in (3, None, []):
        with pytest.raises(InputError, match="title"):
            renamed.rename_thread(human.id, title)


def test_a_thread_is_renamed_after_its_first_messages_are_erased(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("tea")
    memory.append("Which tea is green?", "Sencha.")
    between = datetime.now(UTC)
    memory.append("And black?", "Assam.")
    system.erase(before=between)
    renamed = verbs(memory)
    assert renamed.rename_thread(4, "Tea time") == "Tea time"
    assert [thread.title for thread in renamed.list_threads()] == ["Tea time"]


def test_a_renamed_thread_keeps_its_reason_and_is_still_sorted() -> None:
    memory = ChatMemory(embeddings=False)
    nodes = memory.extend(
        [
            "How do I read a CSV file?",
            ("ai", "Use pandas."),
            "Which wine goes with salmon?",
            ("ai", "A Riesling."),
        ]
    )
    memory.rename_thread(nodes[0].id, "Tables")
    memory.sort()
    assert sorted(thread.title for thread in memory.list_threads()) == [
        "Tables",
        "Which wine goes with salmon?",
    ]


def test_the_title_of_a_thread_is_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with MemorySystem(path, cipher=StreamCipher(), embeddings=False) as system:
        memory = system.conversation("c")
        human, _ = memory.append("Hello", "Hi!")
        memory.rename_thread(human.id, "Gallbladder")
        assert memory.list_threads()[0].title == "Gallbladder"
    assert b"Gallbladder" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def at(minute: int) -> datetime:
    return datetime(2026, 5, 1, 12, minute, tzinfo=UTC)


@pytest.mark.parametrize("whole_seconds", [True, False], ids=["imported", "live"])
@pytest.mark.parametrize("own_ids", [True, False], ids=["own ids", "new ids"])
def test_a_moved_message_changes_no_count_no_preview_and_no_time(
    system: MemorySystem, verbs: Wrap, whole_seconds: bool, own_ids: bool
) -> None:
    memory = system.conversation("moved")
    texts = ["Where do figs grow?", "In the south.", "And bread?", "With flour."]
    messages = [
        kind(text, id=f"m{n}" if own_ids else None)
        for n, (kind, text) in enumerate(zip([HumanMessage, AIMessage] * 2, texts, strict=True))
    ]
    memory.extend(messages, [at(n) for n in range(4)] if whole_seconds else None)
    [before] = system.list_conversations()
    system.conversation("other").extend(["Hello"], [at(2)] if whole_seconds else None)
    order = ids(system.list_conversations())
    for number in (3, 1):
        memory.place(number, None if number == 3 else 4)
        listed = verbs(system).list_conversations()
        [after] = [one for one in listed if one.id == "moved"]
        assert (after.messages, after.preview, after.updated) == (4, "With flour.", before.updated)
        assert after.title == before.title
        assert ids(listed) == order
    [thread] = verbs(memory).list_threads()
    assert (thread.messages, thread.preview) == (4, "With flour.")
    assert thread.updated == max(node.timestamp for node in memory.history)
    assert verbs(system).stats().messages == 5
    assert "4 messages in 1 thread" in memory.export("html")


def test_sorted_conversations_keep_their_place_in_the_list(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("sorted")
    chat = [("How do I bake rye bread?", "With yeast."), ("Which wine goes with salmon?", "A Riesling.")] * 3
    memory.extend(
        [(role, text) for turn in chat for role, text in zip(("user", "ai"), turn, strict=True)],
        [at(n) for n in range(12)],
    )
    system.conversation("later").extend(["Hello"], [at(20)])
    before = system.list_conversations()
    assert verbs(memory).sort()
    assert verbs(system).list_conversations() == before
    assert {one.messages for one in before} == {12, 1}


def test_tools_and_system_messages_are_no_messages_of_a_list(system: MemorySystem, verbs: Wrap) -> None:
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    memory = system.conversation("tools")
    memory.extend(
        [SystemMessage("Be brief."), HumanMessage("Look!"), call, ToolMessage("x", tool_call_id="c1")]
    )
    [listed] = verbs(system).list_conversations()
    [thread] = verbs(memory).list_threads()
    assert (listed.messages, listed.preview, thread.messages, thread.preview) == (2, "", 2, "")
    memory.append(AIMessage("I saw it."))
    [listed] = verbs(system).list_conversations()
    assert (listed.messages, listed.preview) == (3, "I saw it.")
    assert verbs(system).stats().messages == 3


def test_the_title_is_that_of_the_current_version_of_the_first_message(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = system.conversation("edited")
    memory.append("Where do figs grow?", "In the south.")
    memory.edit(1, "Where do olives grow?")
    [listed] = verbs(system).list_conversations()
    assert (listed.title, listed.messages) == ("Where do olives grow?", 1)

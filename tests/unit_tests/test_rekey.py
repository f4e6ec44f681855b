"""Change of the encryption key: everything stays readable, whenever the change is interrupted."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import StreamCipher, Verbs, WordEmbeddings
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    ExtractiveSummarizer,
    MemorySystem,
    MessageWindowChatMemory,
    ThreadMemSaver,
    ThreadMemStore,
)
from langchain_threadmem.errors import EncryptionError, InputError
from langchain_threadmem.maintenance import encrypted_rows
from langchain_threadmem.storage.statements import Conn, Statement
from torture.flips import everything

OLD, NEW = StreamCipher(b"old"), StreamCipher(b"new")


class KilledError(Exception):
    """The process ended."""


def opened(url: str, owner: str, cipher: StreamCipher) -> MemorySystem:
    return MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=cipher)


class Notes(MessagesState):
    secret: str


def graph(system: MemorySystem, serde: Any = None) -> Any:
    def answer(state: Notes) -> dict[str, Any]:
        about = state["messages"][-1].content
        return {"messages": [AIMessage(f"about {about}")], "secret": f"secret {about}"}

    builder = StateGraph(Notes).add_node("model", answer).add_edge(START, "model")
    return builder.compile(ThreadMemSaver(system, serde=serde))


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def fill(system: MemorySystem) -> None:
    """Every kind of encrypted data."""
    memory = system.conversation("c", summarizer=ExtractiveSummarizer())
    for n in range(4):
        memory.append(f"question {n} about a heron", f"answer {n}")
    memory.edit(3, "another question")
    memory.place(7, None)
    memory.summarize()
    system.summarize_session("c")
    memory.recall("heron")
    said = [SystemMessage("Be kind."), HumanMessage("a swan")]
    graph(system).invoke({"messages": said}, config("t"))
    store = ThreadMemStore(system, index={"embed": WordEmbeddings(), "dims": 64})
    store.put(("birds",), "grey", {"legs": "two"})
    MessageWindowChatMemory(9, id="w", store=system).add("Hello")
    system.update_conversation("c", title="Herons", metadata={"stars": 3})


def shown(system: MemorySystem) -> list[str]:
    """Everything that is read, without the rows."""
    window = MessageWindowChatMemory(9, id="w", store=system).messages
    state = graph(system).get_state(config("t")).values
    recalled = [(hit.node.id, round(hit.score, 6)) for hit in system.conversation("c").recall("heron")]
    store = ThreadMemStore(system, index={"embed": WordEmbeddings(), "dims": 64})
    found = [(item.key, item.score) for item in store.search(("birds",), query="two legs")]
    return [*everything_but_rows(system), repr(window), repr(state), repr(recalled), repr(found)]


def everything_but_rows(system: MemorySystem) -> list[str]:
    return everything(system)[:-1]


def sealed_values(system: MemorySystem) -> list[tuple[str, bytes]]:
    """All encrypted values of the database, with the names of their ciphers."""
    seen: list[tuple[str, bytes]] = []

    class Recorder:
        def renewed(self, kind: str, data: bytes) -> None:
            seen.append((kind, data))

        def renewed_text(self, sealed: str) -> None:
            found = json.loads(sealed)
            seen.append((found["sealed"], base64.b64decode(found["data"])))

        def renewed_vector(self, sealed: bytes) -> None:
            kind, _, data = sealed.partition(b"\n")
            seen.append((kind.decode(), data))

    def read(conn: Conn) -> None:
        recorder: Any = Recorder()
        for entry, under in encrypted_rows.parts(conn, system.owner):
            width = len(entry.table.primary_key.columns)
            for row in conn.all(encrypted_rows._FIRST[entry.table.name], under):
                values = dict(zip(encrypted_rows._columns(entry.table), row[width:], strict=True))
                dict(encrypted_rows._changes(entry.table, values, recorder))

    system.runtime.database.write(read)
    return seen


@pytest.fixture
def filled(url: str, owner: str) -> tuple[str, str, list[str]]:
    with opened(url, owner, OLD) as system:
        fill(system)
        known = shown(system)
    return url, owner, known


def call(verbs: Callable[[Any], Verbs], system: MemorySystem) -> int:
    count: int = verbs(system).rekey(NEW)  # type: ignore[arg-type]
    return count


def test_everything_has_the_new_key_and_reads_as_before(
    filled: tuple[str, str, list[str]], verbs: Callable[[Any], Verbs]
) -> None:
    url, owner, known = filled
    with opened(url, owner, OLD) as system:
        assert len({kind for kind, _ in sealed_values(system)}) == 1
        assert call(verbs, system) > 20
        assert shown(system) == known  # The system goes on with the new key.
        system.conversation("c").append("more", "yes")
        for kind, data in sealed_values(system):
            NEW.decrypt(kind, data)
        assert system.verify().problems == ()
    with opened(url, owner, NEW) as system:
        assert system.verify().problems == ()
        assert system.conversation("c").messages[-1].content == "yes"
        assert len(sealed_values(system)) > 30
    with pytest.raises(EncryptionError, match="written with another key"):
        opened(url, owner, OLD)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_of_the_key_that_was_killed_at_any_step_is_completed_by_another_call(
    url: str, owner: str, when: str, verbs: Callable[[Any], Verbs], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(url, owner, OLD) as system:
        fill(system)
        known = shown(system)
    real, left = Conn.many, [0]

    def many(self: Conn, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0 and when == "before":
            raise KilledError
        real(self, *arguments)
        if left[0] < 0:
            raise KilledError  # The transaction is rolled back, as if the process had ended in it.

    interruptions = 0
    for step in range(100):
        left[0] = step % 4
        with opened(url, owner, OLD) as system:
            monkeypatch.setattr(Conn, "many", many)
            try:
                call(verbs, system)
            except KilledError:
                interruptions += 1
            else:
                break
            finally:
                monkeypatch.setattr(Conn, "many", real)
            assert everything_but_rows(system) == known[: len(everything_but_rows(system))]
        with opened(url, owner, OLD) as system:
            for use in (
                lambda: system.conversation("c").messages,
                lambda: system.conversation("c").append("x"),
            ):
                with pytest.raises(EncryptionError, match=r"was interrupted.*call rekey\(new_cipher\) again"):
                    use()
            assert "was interrupted" in str(system.verify())
    assert interruptions > 6
    with opened(url, owner, NEW) as system:
        assert shown(system) == known
        assert system.verify().problems == ()


def test_each_owner_changes_their_own_key(url: str, owner: str) -> None:
    other = f"{owner} 2"
    with opened(url, owner, OLD) as system:
        for one in (system, system.for_owner(other)):
            one.conversation("c").append("a heron", "grey")
        system.rekey(NEW)
        del one
        for name in (owner, other):
            assert system.for_owner(name).conversation("c").append("a swan")[0].id == 3
        assert len(graph(system).invoke({"messages": "x"}, config("t"))["messages"]) == 2
    for name, cipher in ((owner, NEW), (other, OLD)):
        with opened(url, name, cipher) as system:
            assert len(system.conversation("c").messages) == 3
            assert system.verify().problems == ()


def test_a_saver_with_the_new_key_may_follow(url: str, owner: str) -> None:
    with opened(url, owner, OLD) as system:
        before = graph(system)
        before.invoke({"messages": "a heron"}, config("t"))
        system.rekey(NEW)
        assert len(before.invoke({"messages": "a swan"}, config("t"))["messages"]) == 4
        after = graph(system, EncryptedSerializer(NEW))
        assert len(after.invoke({"messages": "a crane"}, config("t"))["messages"]) == 6
    with opened(url, owner, NEW) as system:
        assert len(graph(system).get_state(config("t")).values["messages"]) == 6


def test_a_memory_without_a_key_has_none_to_change(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="is not encrypted, so it has no key to change"):
        system.rekey(NEW)


@pytest.mark.parametrize("cipher", [StreamCipher(b"old"), "key"], ids=["same", "no cipher"])
def test_a_cipher_that_cannot_replace_the_present_one_is_refused(url: str, owner: str, cipher: Any) -> None:
    with opened(url, owner, OLD) as system:
        system.conversation("c").append("a heron", "grey")
        with pytest.raises(InputError, match=r"the same key or no authentication|is not a cipher"):
            system.rekey(cipher)
        assert len(system.conversation("c").messages) == 2


def test_what_no_key_reads_stays_and_is_named(url: str, owner: str) -> None:
    with opened(url, owner, OLD) as system:
        system.conversation("c").append("a heron", "grey")
        form = "UPDATE threadmem_node SET body = replace(body, 'data', 'bata') WHERE seq = 1 AND tree IN ({})"
        trees = "SELECT id FROM threadmem_tree WHERE owner = "
        statement = Statement.of(sqlite=form.format(f"{trees}?"), postgresql=form.format(f"{trees}%s"))
        system.runtime.database.write(lambda conn: conn.run(statement, owner))
        assert system.rekey(NEW) >= 1
        assert "node 1 " in str(system.verify())
        assert system.conversation("c").messages[1].content == "grey"

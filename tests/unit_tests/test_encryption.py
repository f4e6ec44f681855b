"""Encryption: all content reaches the database encrypted, and unencrypted content is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import StreamCipher, WordEmbeddings, size_of
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    MessageSummary,
    MessageWindowChatMemory,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemSaver,
    ThreadMemStore,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import DriverError, EncryptionError, InputError
from langchain_threadmem.maintenance.removal.forget import forget_message
from langchain_threadmem.messages.codec import UNREADABLE
from langchain_threadmem.storage.schema import metadata
from langchain_threadmem.storage.statements import Statement

TABLES = [name for name in metadata.tables if name != "threadmem_migration"]


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"about {state['messages'][-1].content}")]}


def chat(saver: ThreadMemSaver, *before: Any) -> Any:
    builder = StateGraph(MessagesState)
    names = [START, *(f"node{n}" for n in range(len(before))), "model"]
    for name, node in zip(names[1:], [*before, answer], strict=True):
        builder.add_node(name, node)
    for above, below in pairwise(names):
        builder.add_edge(above, below)
    return builder.compile(checkpointer=saver)


def ask(graph: Any, text: str, thread: str = "t") -> Any:
    return graph.invoke({"messages": [HumanMessage(text)]}, config_of(thread))


def config_of(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def stored(system: MemorySystem) -> str:
    """Everything in the tables and in the index of words, as text."""
    statements = [
        Statement.of(sqlite=sql, postgresql=sql) for name in TABLES for sql in [f"SELECT * FROM {name}"]
    ]
    found = system.runtime.database.read(lambda conn: [conn.all(statement) for statement in statements])
    return repr(found)


def words(system: MemorySystem, word: str) -> int:
    """The number of rows of the lexicon that contain a word."""
    statement = Statement.of(
        sqlite="SELECT count(*) FROM threadmem_lexicon WHERE threadmem_lexicon MATCH ?",
        postgresql="SELECT count(*) FROM threadmem_lexicon WHERE words @@ %s::tsquery",
    )
    return int(system.runtime.database.read(lambda conn: conn.all(statement, word))[0][0])


def bodies(system: MemorySystem, thread: str = "t") -> list[str]:
    statement = Statement.of(
        sqlite="SELECT body FROM threadmem_node n JOIN threadmem_tree t ON t.id = n.tree "
        "WHERE t.owner = ? AND t.conversation = ?",
        postgresql="SELECT body FROM threadmem_node n JOIN threadmem_tree t ON t.id = n.tree "
        "WHERE t.owner = %s AND t.conversation = %s",
    )
    rows = system.runtime.database.read(lambda conn: conn.all(statement, system.owner, thread))
    return [row[0] for row in rows]


@pytest.fixture
def secret() -> str:
    """A new word, since all tests share one PostgreSQL server."""
    return f"heron{uuid4().hex}"


@pytest.fixture
def sealed(system: MemorySystem) -> MemorySystem:
    """A system with a saver that has an encrypting serializer."""
    ThreadMemSaver(system, serde=EncryptedSerializer(StreamCipher()))
    return system


def said(memory: ChatMemory) -> list[str]:
    return [str(message.content) for message in memory.messages]


def test_a_chat_on_an_encrypting_saver_is_a_conversation_of_which_nothing_is_stored_plain(
    system: MemorySystem, secret: str
) -> None:
    saver = ThreadMemSaver(system, serde=EncryptedSerializer(StreamCipher()))
    graph = chat(saver)
    ask(graph, f"a grey {secret}")
    state = ask(graph, f"a white {secret}")
    assert said(system.conversation("t")) == [message.content for message in state["messages"]]
    assert len(bodies(system)) == 4
    assert secret not in stored(system)
    assert system.verify().problems == ()


def answering(secret: str) -> Any:
    from langchain_core.language_models import FakeListChatModel

    return FakeListChatModel(responses=[f"that {secret}"])


def agent(system: MemorySystem, secret: str) -> Any:
    from langchain.agents import create_agent

    return create_agent(answering(secret), middleware=[ThreadMemMiddleware(system)])


@pytest.mark.parametrize(
    "write",
    [
        lambda system, secret: system.conversation("t").append(f"a {secret}", f"that {secret}"),
        lambda system, secret: ask(chat(ThreadMemSaver(system), select_thread_node(system)), f"a {secret}"),
        lambda system, secret: ask(create_threaded_chat(answering(secret), system), f"a {secret}"),
        lambda system, secret: ask(agent(system, secret), f"a {secret}"),
    ],
    ids=["memory", "node", "chat", "middleware"],
)
def test_whoever_writes_nothing_is_stored_plain(
    sealed: MemorySystem, write: Callable[[MemorySystem, str], Any], secret: str
) -> None:
    write(sealed, secret)
    sealed.conversation("t").recall(secret)
    assert f"a {secret}" in said(sealed.conversation("t"))
    assert secret not in stored(sealed)
    assert words(sealed, secret) == 0


def test_revisions_and_summaries_are_encrypted_too(sealed: MemorySystem, secret: str) -> None:
    class Summarizer:
        def summarize(self, message: Any) -> MessageSummary:
            return MessageSummary(title=secret, summary=f"About a {secret}.")

    memory = sealed.conversation("t", summarizer=Summarizer())
    memory.append(f"a {secret}", "one")
    memory.append("another", "two")
    memory.place(3, None)
    memory.edit(1, f"no {secret}")
    summaries = [node.summary and node.summary.title for node in memory.summarize()]
    assert summaries == [secret]
    assert [node.message.content for node in memory.thread(memory.roots()[-1].id)] == [f"no {secret}"]
    assert secret not in stored(sealed)


def test_a_chat_memory_is_encrypted_too(sealed: MemorySystem, secret: str, url: str) -> None:
    said = [HumanMessage(secret), AIMessage("noted", id="a1")]
    with MemorySystem(url, owner=sealed.owner, embeddings=False) as plain:
        MessageWindowChatMemory(9, id="b", store=plain).add("a heron")
    memory = MessageWindowChatMemory(9, id="a", store=sealed)
    memory.add(*said)
    assert secret not in stored(sealed)
    assert memory.messages == said
    with (
        MemorySystem(url, owner=sealed.owner, embeddings=False) as plain,
        pytest.raises(EncryptionError, match="chat memory 'a' is encrypted"),
    ):
        _ = MessageWindowChatMemory(9, id="a", store=plain).messages
    with pytest.raises(EncryptionError, match="not encrypted, but this memory is"):
        MessageWindowChatMemory(9, id="b", store=sealed).add("more")


def test_the_title_that_a_model_gives_a_thread_is_encrypted(sealed: MemorySystem, secret: str) -> None:
    def selector(tree: Any, message: Any) -> int | None:
        tree.reason, tree.title = "another topic", secret
        return None

    memory = sealed.conversation("talk", node_selector=selector)
    memory.append("Hello", "Hi")
    memory.append("Something else", "Yes?")
    placement = memory.history[2].placement
    assert placement is not None
    assert placement.title == secret
    assert secret not in stored(sealed)


def test_items_of_a_store_are_encrypted_too(sealed: MemorySystem, secret: str, url: str) -> None:
    with MemorySystem(url, owner=sealed.owner, embeddings=False) as plain:
        ThreadMemStore(plain).put(("fish",), "black", {})
    store = ThreadMemStore(sealed, index={"embed": WordEmbeddings(), "dims": 64})
    store.put(("birds",), "grey", {"text": secret})
    store.put(("birds",), "white", {"text": "a swan"})
    assert secret not in stored(sealed)
    found = store.get(("birds",), "grey")
    assert found is not None
    assert found.value == {"text": secret}
    assert [item.key for item in store.search(("birds",), filter={"text": secret})] == ["grey"]
    assert [item.key for item in store.search(("birds",), query="a swan")] == ["white", "grey"]
    with (
        MemorySystem(url, owner=sealed.owner, embeddings=False) as plain,
        pytest.raises(EncryptionError, match="is encrypted; open the memory with the cipher"),
    ):
        ThreadMemStore(plain).get(("birds",), "grey")
    with pytest.raises(EncryptionError, match="not encrypted, but this memory is"):
        store.get(("fish",), "black")


def test_an_item_with_the_value_of_another_is_refused(sealed: MemorySystem) -> None:
    store = ThreadMemStore(sealed)
    store.put(("birds",), "a", {"colour": "grey"})
    store.put(("birds",), "b", {"colour": "white"})
    spaces = "SELECT id FROM threadmem_namespace WHERE owner = %s"
    other = f"SELECT max(value) FROM threadmem_item WHERE key = %s AND namespace IN ({spaces})"
    sql = f"UPDATE threadmem_item SET value = ({other}) WHERE namespace IN ({spaces})"
    change(sealed, sql, b"a", sealed.owner, sealed.owner)
    with pytest.raises(EncryptionError, match="was written for"):
        store.get(("birds",), "b")


def test_recall_in_one_conversation_goes_by_words_and_by_meaning(sealed: MemorySystem, verbs: Any) -> None:
    memory = verbs(sealed.conversation("t"))
    memory.append("the heron stands in the water", "it waits")
    memory.append("bread needs salt", "and time")
    hit = memory.recall("where is the heron", n_results=1)[0]
    assert (hit.node.id, hit.why.terms) == (1, ("heron",))
    assert hit.why.similarity > 0.3


def test_new_messages_are_recalled_too(sealed: MemorySystem) -> None:
    memory = sealed.conversation("t")
    memory.append("the heron stands in the water")
    memory.recall("heron")
    memory.append("an egret flies", "white")
    assert memory.recall("egret", n_results=1)[0].node.id == 2


def test_recall_in_all_conversations_is_refused(sealed: MemorySystem) -> None:
    sealed.conversation("t").append("a heron")
    with pytest.raises(InputError, match="one conversation at a time"):
        sealed.conversation("t").recall("heron", scope="owner")


def test_without_the_key_an_encrypted_conversation_is_neither_read_nor_written(
    sealed: MemorySystem, url: str
) -> None:
    sealed.conversation("t").append("a heron", "grey")
    with MemorySystem(url, owner=sealed.owner, embeddings=WordEmbeddings()) as other:
        memory = other.conversation("t")
        for call in (lambda: memory.messages, lambda: memory.append("x"), lambda: memory.recall("heron")):
            with pytest.raises(EncryptionError, match="is encrypted"):
                call()
        with pytest.raises(EncryptionError, match="is encrypted"):
            ask(chat(ThreadMemSaver(other)), "x")
        assert "is encrypted" in other.verify().problems[0]
    assert said(sealed.conversation("t")) == ["a heron", "grey"]


@pytest.mark.parametrize(
    "search",
    [
        lambda system: system.conversation("new").recall("heron", scope="owner"),
        lambda system: system.query("heron"),
        lambda system: system.summarize_long_term_memory(),
    ],
    ids=["recall", "query", "summarize"],
)
def test_without_the_key_a_search_in_all_conversations_that_finds_nothing_names_the_encryption(
    sealed: MemorySystem, url: str, search: Callable[[MemorySystem], Any]
) -> None:
    sealed.conversation("t").append("a heron", "grey")
    sealed.summarize_session("t")
    with (
        MemorySystem(url, owner=sealed.owner, embeddings=False) as other,
        pytest.raises(EncryptionError, match=r"encrypted.*cipher="),
    ):
        search(other)


def test_without_the_key_a_conversation_is_listed_by_its_name(sealed: MemorySystem, url: str) -> None:
    sealed.conversation("t").append("a heron", "grey")
    with MemorySystem(url, owner=sealed.owner, embeddings=False) as other:
        assert [item.title for item in other.list_conversations()] == ["t"]


def encrypted(url: str, owner: str, key: bytes = b"key") -> MemorySystem:
    return MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher(key))


@pytest.fixture(params=["as ever", "before proofs were kept"])
def written(request: pytest.FixtureRequest, url: str, owner: str) -> str:
    """A database with content that was written with a key."""
    with encrypted(url, owner) as system:
        config = {**config_of(), "metadata": {"run_id": "run of t"}}
        chat(ThreadMemSaver(system)).invoke({"messages": [HumanMessage("a heron")]}, config)
        if request.param == "before proofs were kept":
            change(system, "DELETE FROM threadmem_key_proof WHERE owner = %s", owner)
    return url


def test_another_key_is_refused_when_it_is_given(written: str, owner: str) -> None:
    with pytest.raises(EncryptionError, match=f"memory of '{owner}' was written with another key"):
        encrypted(written, owner, b"other")
    with encrypted(written, owner) as system:
        assert said(system.conversation("t")) == ["a heron", "about a heron"]


def test_a_saver_with_another_key_than_was_written_with_is_refused(written: str, owner: str) -> None:
    with (
        MemorySystem(written, owner=owner, embeddings=False) as system,
        pytest.raises(EncryptionError, match="written with another key"),
    ):
        ThreadMemSaver(system, serde=EncryptedSerializer(StreamCipher(b"other")))


def test_a_saver_with_another_key_closes_the_database_that_it_opened(
    written: str, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    monkeypatch.setattr(MemorySystem, "close", lambda self: closed.append(self.resources.close()))
    with pytest.raises(EncryptionError, match="written with another key"):
        ThreadMemSaver.from_conn_string(
            written, owner=owner, serde=EncryptedSerializer(StreamCipher(b"other"))
        )
    assert len(closed) == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda system: ask(chat(ThreadMemSaver(system)), "a heron"),
        lambda system: ThreadMemStore(system).put(("birds",), "grey", {}),
        lambda system: MessageWindowChatMemory(9, id="w", store=system).add("a heron"),
    ],
    ids=["saver", "store", "window"],
)
@pytest.mark.parametrize("kept", [True, False], ids=["proof", "no proof"])
def test_whoever_wrote_first_another_key_is_refused(
    url: str, owner: str, write: Callable[[MemorySystem], Any], kept: bool
) -> None:
    with encrypted(url, owner) as system:
        write(system)
        if not kept:
            change(system, "DELETE FROM threadmem_key_proof WHERE owner = %s", owner)
    with pytest.raises(EncryptionError, match="written with another key"):
        encrypted(url, owner, b"other")


def proofs(system: MemorySystem) -> int:
    statement = Statement.of(
        sqlite="SELECT count(*) FROM threadmem_key_proof WHERE owner = ?",
        postgresql="SELECT count(*) FROM threadmem_key_proof WHERE owner = %s",
    )
    return int(system.runtime.database.read(lambda conn: conn.all(statement, system.owner))[0][0])


def test_a_memory_without_a_proof_of_its_key_gets_one_when_a_row_was_opened(written: str, owner: str) -> None:
    with encrypted(written, owner) as system:
        assert proofs(system) == 1


def test_a_key_that_nothing_was_written_with_binds_nobody(url: str, owner: str, verbs: Any) -> None:
    with encrypted(url, owner) as system:
        assert system.conversation("t").messages == []
        assert proofs(system) == 0
    with encrypted(url, owner, b"other") as system:
        assert len(verbs(system.conversation("t")).append("a heron")) == 1


def test_of_two_keys_that_were_given_at_once_the_second_writes_nothing(
    url: str, owner: str, verbs: Any
) -> None:
    with encrypted(url, owner) as first, encrypted(url, owner, b"other") as second:
        memories = [verbs(system.conversation("t")) for system in (first, second)]
        assert [memory.messages() for memory in memories] == [[], []]
        memories[0].append("a heron")
        with pytest.raises(EncryptionError, match="written with another key"):
            memories[1].append("a swan")
        assert len(memories[0].messages()) == 1


def test_each_owner_has_a_key_of_their_own(url: str, owner: str) -> None:
    for n in range(2):
        for key in (b"key", b"other"):
            with encrypted(url, f"{owner} {key!r}", key) as system:
                system.conversation("t").append("a heron")
                assert len(system.conversation("t").messages) == n + 1


REFUSED: dict[str, Callable[[MemorySystem], Any]] = {
    "append": lambda system: system.conversation("new").append("a stork"),
    "extend": lambda system: system.conversation("new").extend(["a stork"]),
    "add_memory": lambda system: system.add_memory("a stork"),
    "history": lambda system: ThreadMemChatMessageHistory("new", system).add_messages(
        [HumanMessage("a stork")]
    ),
    "saver": lambda system: ask(chat(ThreadMemSaver(system)), "a stork", "new"),
    "node": lambda system: create_threaded_chat(FakeListChatModel(responses=["x"]), system).invoke(
        {"messages": [("user", "a stork")]}, {"configurable": {"thread_id": "new"}}
    ),
    "store": lambda system: ThreadMemStore(system).put(("birds",), "stork", {"is": "white"}),
    "window": lambda system: MessageWindowChatMemory(9, id="new", store=system).add("a stork"),
    "forget": lambda system: system.forget(0.5),
    "forget a message": lambda system: run(
        forget_message(system.conversation("t")._conversation, 1, purge=False), system.runtime
    ),
    "summarize": lambda system: system.summarize_session("t"),
    "summarize all": lambda system: system.summarize_long_term_memory(),
    "title": lambda system: system.update_conversation("t", title="Stork"),
    "rename": lambda system: system.conversation("t").rename_thread(1, "Stork"),
    "edit": lambda system: system.conversation("t").edit(1, "a stork"),
    "place": lambda system: system.conversation("t").place(1, None),
    "copy": lambda system: ThreadMemSaver(system).copy_thread("t", "new"),
    "import": lambda system: system.import_file("chats.jsonl"),
    "delete a run": lambda system: ThreadMemSaver(system).delete_for_runs(["run of t"]),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_without_the_key_no_verb_writes_or_forgets_anything(
    written: str, owner: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chats.jsonl").write_text('{"role": "user", "content": "a stork"}\n')
    with MemorySystem(written, owner=owner, embeddings=False) as system:
        before = stored(system)
        with pytest.raises(EncryptionError, match=r"encrypted.*cipher"):
            REFUSED[verb](system)
        assert stored(system) == before


@pytest.mark.parametrize(
    "delete",
    [
        lambda system: system.conversation("t").reset(),
        lambda system: ThreadMemSaver(system).delete_thread("t"),
        lambda system: system.erase(conversation="t"),
        lambda system: system.erase(),
    ],
    ids=["reset", "thread", "conversation", "all"],
)
def test_without_the_key_data_can_be_deleted(
    url: str, owner: str, delete: Callable[[MemorySystem], Any]
) -> None:
    with encrypted(url, owner) as system:
        system.conversation("t").append("a heron", "grey")
        system.conversation("u").append("an egret", "white")
        system.summarize_session("t")
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        delete(system)
        assert bodies(system) == []


def test_who_erases_everything_may_begin_with_another_key(written: str, owner: str) -> None:
    with MemorySystem(written, owner=owner, embeddings=False) as system:
        assert system.erase().left == ()
    with encrypted(written, owner, b"other") as system:
        assert len(system.conversation("t").append("a swan")) == 1


def test_a_memory_with_the_key_reads_what_a_saver_has_written(sealed: MemorySystem, url: str) -> None:
    ask(chat(ThreadMemSaver(sealed)), "a heron")
    with MemorySystem(url, owner=sealed.owner, cipher=StreamCipher()) as other:
        assert said(other.conversation("t")) == ["a heron", "about a heron"]
        assert said_of(ThreadMemSaver(other)) == ["a heron", "about a heron"]


def said_of(saver: ThreadMemSaver) -> list[str]:
    found = saver.get_tuple(config_of())
    assert found is not None
    return [message.content for message in found.checkpoint["channel_values"]["messages"]]


def test_what_was_written_without_encryption_is_refused(system: MemorySystem, url: str) -> None:
    ask(chat(ThreadMemSaver(system)), "a heron")
    with MemorySystem(url, owner=system.owner, cipher=StreamCipher()) as other:
        with pytest.raises(EncryptionError, match="not encrypted"):
            ThreadMemSaver(other).get_tuple(config_of())
        with pytest.raises(EncryptionError, match="not encrypted"):
            other.conversation("t").append("x")
        assert "not encrypted" in other.verify().problems[0]


def test_a_conversation_that_is_still_empty_can_be_encrypted(system: MemorySystem, url: str) -> None:
    memory = system.conversation("t")
    assert memory.messages == []
    with MemorySystem(url, owner=system.owner, cipher=StreamCipher()) as other:
        other.conversation("t").append("a heron")
    with pytest.raises(EncryptionError, match="is encrypted"):
        memory.append("x")


def change(system: MemorySystem, sql: str, *values: Any) -> None:
    statement = Statement.of(sqlite=sql.replace("%s", "?"), postgresql=sql)
    system.runtime.database.write(lambda conn: conn.run(statement, *values))


@pytest.mark.parametrize(
    "sql",
    [
        """UPDATE threadmem_node SET body = '{"type":"human","data":{"content":"forged"}}' WHERE tree = %s""",
        """UPDATE threadmem_node SET body = (SELECT body FROM threadmem_node WHERE tree = %s AND seq = 2)
        WHERE seq = 1""",
        "UPDATE threadmem_node SET body = replace(body, '=', 'A') WHERE tree = %s",
    ],
    ids=["plain", "swapped", "changed"],
)
def test_rows_that_were_tampered_with_are_not_shown(sql: str) -> None:
    cipher = StreamCipher()
    with MemorySystem(embeddings=False, cipher=cipher) as system:
        system.conversation("t").append("a heron", "grey, with some white")
        change(system, sql, 1)
        system.runtime.seal.forget()  # nothing at hand
        shown = system.conversation("t").messages
        assert any(UNREADABLE in message.response_metadata for message in shown)
        assert "cannot be read" in str(system.verify())


def test_a_cipher_that_reads_the_memory_it_encrypts_is_told_so_and_does_not_hang() -> None:
    class Curious(StreamCipher):
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            assert not memory.history
            return super().encrypt(plaintext)

    with MemorySystem(embeddings=False, cipher=Curious()) as system:
        memory = system.conversation("t")
        with pytest.raises(DriverError, match="inside"):
            memory.append("a heron", "grey, with some white")
        assert system.conversations() == []


def test_equal_messages_do_not_look_equal(sealed: MemorySystem) -> None:
    sealed.conversation("t").extend([HumanMessage("yes"), HumanMessage("yes"), HumanMessage("yes")])
    assert len(set(bodies(sealed))) == 3


def test_a_message_appended_twice_is_once(sealed: MemorySystem) -> None:
    for _ in range(2):
        sealed.conversation("t").extend([SystemMessage("Be kind."), HumanMessage("yes", id="h1")])
    assert len(bodies(sealed)) == 2


def test_a_saver_with_another_key_is_refused(sealed: MemorySystem) -> None:
    ThreadMemSaver(sealed, serde=EncryptedSerializer(StreamCipher()))
    with pytest.raises(InputError, match="another key"):
        ThreadMemSaver(sealed, serde=EncryptedSerializer(StreamCipher(b"other")))


def test_a_saver_that_does_not_encrypt_is_refused_where_the_rest_is_encrypted(system: MemorySystem) -> None:
    plain = ThreadMemSaver(system)
    ThreadMemSaver(system, serde=EncryptedSerializer(StreamCipher()))
    with pytest.raises(InputError, match="the system is encrypted"):
        ask(chat(plain), "a heron")
    with pytest.raises(InputError, match="the system is encrypted"):
        ThreadMemSaver(system, serde=plain.serde)


def test_a_serializer_set_later_encrypts_all_the_same(system: MemorySystem, secret: str) -> None:
    saver = ThreadMemSaver(system)
    saver.serde = EncryptedSerializer(StreamCipher())
    ask(chat(saver), f"a {secret}")
    assert said(system.conversation("t")) == [f"a {secret}", f"about a {secret}"]
    assert secret not in stored(system)


def test_a_cipher_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="'key' is not a cipher"):
        MemorySystem(cipher="key")  # type: ignore[arg-type]


def test_copies_and_deletions_work_as_ever(sealed: MemorySystem) -> None:
    saver = ThreadMemSaver(sealed)
    ask(chat(saver), "a heron")
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    assert said(sealed.conversation("copy")) == ["a heron", "about a heron"]
    assert bodies(sealed) == []
    assert sealed.verify().problems == ()


def test_a_turn_costs_the_same_at_the_end_of_a_long_chat(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    text = "How do I read a CSV file with a header, and what if some of the columns hold dates? " * 2
    with MemorySystem(path, embeddings=False, cipher=StreamCipher()) as system:
        graph = chat(ThreadMemSaver(system))
        sizes = []
        for _ in range(4):
            for n in range(40):
                ask(graph, f"{text} {n}")
            sizes.append(size_of(path))
    costs = [(after - before) / 40 for before, after in pairwise(sizes)]
    assert max(costs) <= 4 * 1024
    assert costs[2] <= 1.3 * costs[0]  # 1.8 if each checkpoint held the whole list

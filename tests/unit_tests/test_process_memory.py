"""No object of the process holds a text that was removed, or any text of a memory that was closed."""

from __future__ import annotations

import gc
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from conftest import WordEmbeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_threadmem import (
    ChatMemory,
    ExtractiveSummarizer,
    LLMNodeSelector,
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemRetriever,
    ThreadMemSaver,
    ThreadMemStore,
)
from langchain_threadmem.engine.multilingual_embeddings import MultilingualEmbeddings
from langchain_threadmem.index import embed
from langchain_threadmem.index.embed import EmbeddingQueue

Wrap = Callable[[Any], Any]
ANY = (None, None)
SELECTION = '{"selected_node_id": null, "reasoning": "so"}'
EXPORTS = ("json", "jsonl", "mermaid", "text", "html", "svg")

AT_ONCE = 10_000
"""The number of objects whose referents are searched together."""
PAUSES = (0.0, 0.1, 0.5, 2.0, 5.0)
"""The seconds before each search of the process; a search takes seconds itself after thousands of tests."""


class Mark:
    """A word that nothing else in the process contains. It is kept spelled backwards."""

    def __init__(self) -> None:
        letters = uuid.uuid4().hex.translate(str.maketrans("0123456789", "ghijklmnop"))
        self._backwards = f"ggauq{letters[:12]}"

    def __str__(self) -> str:
        return self._backwards[::-1]

    def holders(self) -> list[str]:
        """The objects that hold the word, by their types; a thread in the background may need a moment."""
        found: list[str] = []
        for pause in PAUSES:
            time.sleep(pause)
            found = self.holders_now()
            if not found:
                break
        return found

    def holders_now(self) -> list[str]:
        """The objects that hold the word at this moment, by their types."""
        gc.unfreeze()  # `conftest.py` has hidden what existed before the tests.
        gc.collect()
        objects, word, found = gc.get_objects(), str(self), []
        for start in range(0, len(objects), AT_ONCE):
            several = objects[start : start + AT_ONCE]
            if _contain(gc.get_referents(*several), word):
                for holder in several:
                    if _contain(gc.get_referents(holder), word):
                        found.append(holder)  # noqa: PERF401 - a comprehension would hold the word itself
        return [f"{type(one)} in {[type(other) for other in gc.get_referrers(one)]}" for one in found[:9]]


def _contain(items: list[object], word: str) -> bool:
    """Whether any of some objects is a text with a word, whose first letter may be a capital."""
    part, encoded = word[1:], word[1:].encode()
    # The garbage collector does not list a tuple or a dict of strings and numbers alone.
    plain = [item for item in items if isinstance(item, tuple | dict) and not gc.is_tracked(item)]
    return (
        any(isinstance(item, str) and part in item for item in items)
        or any(isinstance(item, bytes | bytearray) and encoded in item for item in items)
        or any(
            isinstance(item, np.ndarray) and item.dtype.kind in "US" and part in str(item.tolist())
            for item in items
        )
        or (bool(plain) and _contain(gc.get_referents(*plain), word))
    )


class Noted(MessagesState):
    note: str


def graph(saver: ThreadMemSaver) -> Any:
    def answer(state: Noted) -> dict[str, Any]:
        last = state["messages"][-1].content
        return {"messages": [AIMessage(f"I know {last}")], "note": f"about {last}"}

    builder = StateGraph(Noted).add_node("answer", answer)
    return builder.add_edge(START, "answer").add_edge("answer", END).compile(checkpointer=saver)


class World:
    """One owner's memory with all objects through which a process uses it."""

    def __init__(self, system: MemorySystem, verbs: Wrap, mark: Mark) -> None:
        self.system, self.verbs, self.mark = system, verbs, mark
        self.memory = system.conversation(
            "private", node_selector=SemanticNodeSelector(), summarizer=ExtractiveSummarizer()
        )
        self.model = ChatMemory(
            system=system,
            conversation_id="private",
            node_selector=LLMNodeSelector(
                FakeListChatModel(responses=['{"selected_node_id": null, "reasoning": "so"}'])
            ),
        )
        self.saver = ThreadMemSaver(system)
        self.app = graph(self.saver)
        self.store = ThreadMemStore(system, index=True)
        self.retriever = ThreadMemRetriever(memory=system, k=3)

    def talk(self) -> None:
        """Messages of all roles, with metadata, in two threads, and one that was edited."""
        word, memory = str(self.mark), self.verbs(self.memory)
        call = AIMessage("", tool_calls=[{"name": "look", "args": {"at": word}, "id": "c1"}])
        memory.append("How do I bake bread?", "With flour and time.")
        memory.append(
            HumanMessage(f"Where does the {word} sleep?", additional_kwargs={"tag": word}),
            call,
            ToolMessage(f"The {word} sleeps in the kettle.", tool_call_id="c1", artifact={"seen": word}),
            AIMessage(f"The {word} sleeps in the kettle.", response_metadata={"source": word}),
        )
        memory.append(f"And when does the {word} wake?", f"The {word} wakes at noon.")
        memory.edit(1, f"How do I bake {word} bread?")
        self.verbs(self.model).append(f"What does the {word} eat?", f"The {word} eats rye.")

    def read(self) -> None:
        """Whatever is read from a conversation."""
        word, memory = str(self.mark), self.verbs(self.memory)
        memory.recall(f"where does the {word} sleep")
        memory.recall(word, scope="owner")
        memory.retrieve(word)
        memory.messages()
        memory.history()
        memory.threads()
        for format in EXPORTS:
            memory.export(format)
        assert self.memory.graph.nodes
        self.system.enable_stm(20)
        self.verbs(self.system).query(word, search_range=ANY)
        self.verbs(self.system).query(word, search_range=ANY)
        self.verbs(self.system).get_context()
        self.retriever.invoke(word)

    def summarize(self) -> None:
        self.verbs(self.memory).summarize()
        self.verbs(self.system).summarize_session("private")
        self.verbs(self.memory).recall(str(self.mark), rank=(0, 1))

    def summarize_all(self) -> None:
        self.verbs(self.system).summarize_long_term_memory()
        self.verbs(self.system).query(
            str(self.mark), search_range=ANY, filters={"content": {"$contains": str(self.mark)}}
        )

    def run_graph(self) -> None:
        config = {"configurable": {"thread_id": "private"}}
        for text in ("Hello", f"Tell me of the {self.mark}."):
            self.app.invoke({"messages": [("user", text)]}, config)
        assert self.app.get_state(config).values["note"]
        assert list(self.app.get_state_history(config))
        assert list(self.saver.list(config))

    def keep(self) -> None:
        self.store.put(("facts", str(self.mark)), "code", {"text": f"The {self.mark} sleeps."})
        assert self.store.search(("facts",), query=f"who sleeps? the {self.mark}")
        assert self.store.list_namespaces()


def everything(world: World) -> None:
    world.run_graph()
    world.talk()
    world.summarize()
    world.summarize_all()
    world.keep()
    world.read()


def conversation(world: World) -> None:
    world.run_graph()
    world.talk()
    world.summarize()
    world.read()


def messages(world: World) -> None:
    text = f"The {world.mark} sleeps"
    memory = world.verbs(world.memory)
    memory.append(text, f"{text} too")
    world.summarize()
    world.read()
    memory.append(f"{text} again", "Indeed.")


REMOVALS: dict[str, tuple[Callable[[World], None], Callable[[World], Any]]] = {
    "erase": (everything, lambda world: world.verbs(world.system).erase()),
    "reset": (conversation, lambda world: world.verbs(world.memory).reset()),
    "purge": (messages, lambda world: world.system.forget(1, purge=True)),
    "delete_thread": (conversation, lambda world: world.saver.delete_thread("private")),
    "close": (everything, lambda world: world.verbs(world.system).close()),
}


@pytest.fixture
def mark() -> Mark:
    return Mark()


@pytest.fixture
def world(url: str, owner: str, verbs: Wrap, mark: Mark) -> Iterator[World]:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        yield World(system, verbs, mark)


def test_the_search_finds_a_text_in_a_cache(mark: Mark) -> None:
    upper = lru_cache(str.upper)
    upper(str(mark))
    assert mark.holders_now()
    upper.cache_clear()
    assert mark.holders() == []


def test_the_search_finds_a_text_in_a_key_of_several_values(mark: Mark) -> None:
    caches = [{(str(mark), False): 1.0}]
    assert mark.holders_now()
    caches.clear()
    assert mark.holders() == []


@pytest.mark.parametrize("name", REMOVALS)
def test_no_object_of_the_process_holds_a_removed_text(world: World, mark: Mark, name: str) -> None:
    fill, remove = REMOVALS[name]
    fill(world)
    remove(world)
    assert mark.holders() == []


@pytest.mark.skipif(not MultilingualEmbeddings.available(), reason="needs the extra multilingual")
def test_no_cache_of_the_multilingual_model_holds_a_text_of_an_erased_sorted_conversation(
    url: str, owner: str, mark: Mark
) -> None:
    with MemorySystem(url, owner=owner) as system:
        memory = system.conversation("privat")
        memory.append("Wie backe ich ein Brot aus Roggenmehl?", "Mit Sauerteig und viel Geduld.")
        memory.append(f"Wo schläft der Hund {mark} in der Nacht?", f"Der Hund {mark} schläft in der Küche.")
        memory.append("Und wie lange muss der Teig für das Brot ruhen?", "Etwa zwölf Stunden.")
        memory.sort()
        system.erase()
        assert mark.holders() == []


class Failing(WordEmbeddings):
    """Fails at texts that hold a word."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if any(str(self._mark) in text for text in texts):
            raise ValueError(f"no vectors of {texts}")
        return super().embed_documents(texts)


def test_no_error_of_background_work_holds_a_removed_text(url: str, owner: str, mark: Mark) -> None:
    logging.disable()
    try:
        with MemorySystem(url, owner=owner, embeddings=Failing(mark)) as system:
            memory = system.conversation("private")
            memory.append("one", "two")
            memory.recall("one")
            memory.append(f"The {mark} sleeps.", "So it does.")
            while system.runtime.ahead.busy(system.runtime.get(EmbeddingQueue).job):
                time.sleep(0.01)
            assert mark.holders_now()
            memory.reset()
            assert mark.holders() == []
    finally:
        logging.disable(logging.NOTSET)


def test_a_text_that_is_purged_while_it_is_read_for_embedding_stays_in_no_cache(
    world: World, mark: Mark, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = embed._bare_texts
    purged: list[Any] = []

    def purging(*arguments: Any) -> Any:
        monkeypatch.setattr(embed, "_bare_texts", read)
        thread = threading.Thread(target=lambda: purged.append(world.system.forget(1, purge=True)))
        thread.start()
        thread.join()
        return read(*arguments)

    monkeypatch.setattr(embed, "_bare_texts", purging)
    memory = world.verbs(world.system.conversation("other"))
    memory.append(f"The {mark} sleeps", "Indeed.")
    memory.flush()
    assert purged
    assert mark.holders() == []

"""Every public call with every option, for type checkers; the calls are never run.

`tests/unit_tests/test_typing.py` runs `mypy --strict` and `pyright` on this file. A comment that ignores an
error is itself an error where there is none: the last functions hold calls that type checkers must refuse.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

import networkx as nx
from chromadb.api.models.Collection import Collection
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import Op, Result

from langchain_threadmem import (
    ChatMemory,
    ChatMemoryStore,
    ConversationNode,
    ExtractiveSummarizer,
    Language,
    LinearNodeSelector,
    LLMNodeSelector,
    LLMSummarizer,
    LocalEmbeddings,
    MemorySettings,
    MemorySystem,
    MemoryUnit,
    MessageSummary,
    MessageWindow,
    MessageWindowChatMemory,
    NodeSelector,
    Recollection,
    Reranker,
    SemanticNodeSelector,
    Summarizer,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemRetriever,
    ThreadMemSaver,
    ThreadMemStore,
    TokenWindow,
    TokenWindowChatMemory,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.common.usage import Usage
from langchain_threadmem.engine.owners import ContextField, Run
from langchain_threadmem.formats.importers.verbs import ImportReport
from langchain_threadmem.index.vector_index import VectorIndex
from langchain_threadmem.langchain.langchain4j import ChatMemoryProvider
from langchain_threadmem.langchain.tools import (
    forget_tool,
    list_threads_tool,
    read_thread_tool,
    recall_tool,
    remember_tool,
)
from langchain_threadmem.langgraph.node import recall_node, store_turn_node
from langchain_threadmem.long_term.lists.verbs import ConversationInfo, Page, ThreadInfo
from langchain_threadmem.maintenance.removal.erase import Receipt, Scrubbed
from langchain_threadmem.maintenance.removal.forget import Forgotten
from langchain_threadmem.maintenance.removal.scores import decay
from langchain_threadmem.maintenance.statistics import Statistics
from langchain_threadmem.maintenance.verify import Verification
from langchain_threadmem.recall.instructions.standing import Instruction
from langchain_threadmem.selection.moves.corrections import Doubt
from langchain_threadmem.selection.moves.sort import Move
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.storage.partitioning.partition import PartitionedTable, partition
from langchain_threadmem.storage.row_security import secure


class ByLength:
    """A reranker."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(len(text)) for text in texts]


class Newest:
    """A selector."""

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        ends = tree.turn_ends()
        return ends[-1].id if ends else None


class Short:
    """A summarizer."""

    def summarize(self, message: BaseMessage) -> MessageSummary | None:
        return MessageSummary(title="A title", summary=str(message.content)[:80])


def selects_root(tree: TreeView, message: BaseMessage) -> int | None:
    return None


def shows_last(messages: list[BaseMessage]) -> list[BaseMessage]:
    return messages[-1:]


def reports(done: int, total: int) -> None: ...


def user_of(run: Run) -> str:
    return str(run.field(name="user_id") or run.user or run.context or run.configurable["user_id"])


def names(configurable: Mapping[str, Any]) -> str:
    return str(configurable["thread_id"])


selector: NodeSelector = Newest()
summarizer: Summarizer = Short()
reranker: Reranker = ByLength()


def make_memories(model: BaseChatModel, system: MemorySystem, embeddings: Embeddings, path: Path) -> None:
    assert_type(
        ChatMemory(
            node_selector=selector,
            summarizer=summarizer,
            context_depth=3,
            window=MessageWindow(10),
            system=system,
            conversation_id="first",
            embeddings=embeddings,
            single_tree=True,
            on_selection_failure="root",
            cover=0.9,
            cover_tokens=1000,
            heal=False,
        ),
        ChatMemory,
    )
    ChatMemory(selects_root, None, 3, window=shows_last, embeddings=False)
    assert_type(
        ChatMemory.semantic(
            node_selector=SemanticNodeSelector(embeddings=embeddings, text_of=lambda message: message.text),
            summarizer=ExtractiveSummarizer(sentences=3),
            context_depth=3,
            window=TokenWindow(1000, token_counter=len),
            system=None,
            conversation_id="first",
            embeddings=False,
            single_tree=False,
            on_selection_failure="latest",
            cover=0.9,
            cover_tokens=1000,
            heal=False,
        ),
        ChatMemory,
    )
    assert_type(
        ChatMemory.threaded(
            model=model,
            node_selector=LLMNodeSelector(
                model=model, attempts=2, shortlist=10, ask=0.5, reliability=0.9, on_selection_failure="raise"
            ),
            summarizer=LLMSummarizer(model=model),
            context_depth=3,
            window=None,
            system=system,
            conversation_id="first",
            embeddings=None,
            single_tree=True,
            on_selection_failure="raise",
            cover=0.9,
            cover_tokens=1000,
            heal=False,
        ),
        ChatMemory,
    )
    assert_type(
        ChatMemory.load(
            path=path,
            node_selector=LinearNodeSelector(),
            summarizer=None,
            context_depth=3,
            window=None,
            system=system,
            conversation_id="first",
            embeddings=None,
            single_tree=True,
            on_selection_failure="raise",
            cover=0.9,
            cover_tokens=1000,
            heal=False,
        ),
        ChatMemory,
    )
    assert_type(
        system.conversation(
            conversation_id="first",
            node_selector=selects_root,
            summarizer=summarizer,
            context_depth=3,
            window=shows_last,
            single_tree=True,
            on_selection_failure="latest",
            cover=0.9,
            cover_tokens=1000,
            heal=False,
        ),
        ChatMemory,
    )


def use_memory(memory: ChatMemory, message: BaseMessage, when: datetime, path: Path) -> None:
    assert_type(memory.conversation_id, str)
    assert_type(memory.context_depth, int)
    memory.node_selector  # noqa: B018
    assert_type(memory.summarizer, Summarizer | None)
    assert_type(memory.append(human="Hello", ai=message), list[ConversationNode])
    memory.append("Hello", ("ai", "Hi!"), {"role": "assistant", "content": "How are you?"}, [message])
    assert_type(
        memory.extend(messages=["one", message], timestamps=[when, when], select=True),
        list[ConversationNode],
    )
    assert_type(memory.edit(node_id=1, message="Hello"), ConversationNode)
    assert_type(memory.regenerate(node_id=1, message=message), list[ConversationNode])
    assert_type(memory.place(node_id=1, parent_id=None), ConversationNode)
    assert_type(memory.sort(dry_run=True, progress=lambda done, total: None), list[Move])
    assert_type(memory.unsort(), list[Move])
    assert_type(memory.checkout(node_id=1), ConversationNode)
    assert_type(memory.summarize(node_id=1), list[ConversationNode])
    memory.forget(message_id="h1", purge=False)
    memory.reset()
    assert_type(memory.messages, list[BaseMessage])
    assert_type(memory.tip, ConversationNode | None)
    assert_type(memory.history, list[ConversationNode])
    graph: nx.DiGraph[int] = memory.graph
    graph.clear()
    assert_type(memory.threads(), list[list[ConversationNode]])
    assert_type(memory.thread(node_id=1), list[ConversationNode])
    assert_type(memory.siblings(message_id="m1"), list[ConversationNode])
    assert_type(memory.versions(message_id=1), list[ConversationNode])
    assert_type(memory.fork_point(message_id=1), ConversationNode | None)
    assert_type(memory.thread_of(message_id="m1"), list[ConversationNode])
    assert_type(memory.switch(message_id="m1", revive=True), ConversationNode)
    assert_type(memory.list_threads(limit=3, cursor=None), Page[ThreadInfo])
    assert_type(memory.rename_thread(message_id=1, title="Baking"), str)
    assert_type(memory.doubtful(limit=3), list[Doubt])
    assert_type(memory.instructions(scope="owner"), list[Instruction])
    assert_type(memory.revoke_instruction(message_id="m1"), None)
    assert_type(memory.roots(), list[ConversationNode])
    assert_type(
        memory.retrieve(query="bread", n_results=3, context_depth=2, order="relevance", fallback="recent"),
        list[BaseMessage],
    )
    assert_type(
        memory.recall(
            query="bread",
            n_results=3,
            context_depth=2,
            scope="owner",
            include_superseded=True,
            speaker="Ada",
            role="human",
            rank=(0, 1),
            since=when,
            until=when,
            half_life=timedelta(days=1),
            max_tokens=100,
            reranker=reranker,
            filters={"metadata.topic": "bread"},
            wait=True,
        ),
        list[Recollection],
    )
    assert_type(memory.flush(), int)
    assert_type(
        memory.to_mermaid(
            show_summaries=True, max_content_length=20, role="user", max_text_size=None, max_edges=None
        ),
        str,
    )
    assert_type(memory.export(format="html"), str)
    memory.save(path=path)
    assert_type(memory.verify(), Verification)
    memory.close()


async def use_memory_async(memory: ChatMemory, message: BaseMessage, when: datetime, path: Path) -> None:
    assert_type(await memory.aappend(human="Hello", ai=message), list[ConversationNode])
    assert_type(
        await memory.aextend(messages=["one", message], timestamps=[when, when], select=True),
        list[ConversationNode],
    )
    assert_type(await memory.aedit(node_id=1, message="Hello"), ConversationNode)
    assert_type(await memory.aregenerate(node_id=1, message=message), list[ConversationNode])
    assert_type(await memory.aplace(node_id=1, parent_id=None), ConversationNode)
    assert_type(await memory.asort(dry_run=True, progress=lambda done, total: None), list[Move])
    assert_type(await memory.aunsort(), list[Move])
    assert_type(await memory.acheckout(node_id=1), ConversationNode)
    assert_type(await memory.asummarize(node_id=1), list[ConversationNode])
    await memory.aforget(message_id=1, purge=True)
    await memory.areset()
    assert_type(await memory.amessages(), list[BaseMessage])
    assert_type(await memory.atip(), ConversationNode | None)
    assert_type(await memory.ahistory(), list[ConversationNode])
    graph: nx.DiGraph[int] = await memory.agraph()
    graph.clear()
    assert_type(await memory.athreads(), list[list[ConversationNode]])
    assert_type(await memory.athread(node_id=1), list[ConversationNode])
    assert_type(await memory.asiblings(message_id="m1"), list[ConversationNode])
    assert_type(await memory.aversions(message_id=1), list[ConversationNode])
    assert_type(await memory.afork_point(message_id=1), ConversationNode | None)
    assert_type(await memory.athread_of(message_id="m1"), list[ConversationNode])
    assert_type(await memory.aswitch(message_id="m1", revive=True), ConversationNode)
    assert_type(await memory.alist_threads(limit=3, cursor=None), Page[ThreadInfo])
    assert_type(await memory.arename_thread(message_id="m1", title=""), str)
    assert_type(await memory.adoubtful(limit=3), list[Doubt])
    assert_type(await memory.ainstructions(scope="conversation"), list[Instruction])
    assert_type(await memory.arevoke_instruction(message_id=1), None)
    assert_type(await memory.aroots(), list[ConversationNode])
    assert_type(
        await memory.aretrieve(
            query="bread", n_results=3, context_depth=2, order="chronological", fallback="nothing"
        ),
        list[BaseMessage],
    )
    assert_type(
        await memory.arecall(
            query="bread",
            n_results=3,
            context_depth=2,
            scope="thread",
            include_superseded=True,
            speaker="Ada",
            role="ai",
            rank=0,
            since=when,
            until=when,
            half_life=timedelta(days=1),
            max_tokens=100,
            reranker=reranker,
            filters=[("role", "==", "ai")],
            wait=False,
        ),
        list[Recollection],
    )
    assert_type(await memory.aflush(), int)
    assert_type(
        await memory.ato_mermaid(
            show_summaries=True, max_content_length=20, role="user", max_text_size=None, max_edges=None
        ),
        str,
    )
    assert_type(await memory.aexport(format="html"), str)
    await memory.asave(path=path)
    loaded = await ChatMemory.aload(
        path=path,
        node_selector=LinearNodeSelector(),
        summarizer=None,
        context_depth=3,
        window=None,
        system=None,
        conversation_id="first",
        embeddings=False,
        single_tree=True,
        on_selection_failure="raise",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    assert_type(loaded, ChatMemory)
    assert_type(await memory.averify(), Verification)
    await memory.aclose()


async def make_systems(
    embeddings: Embeddings, index: VectorIndex, cipher: CipherProtocol, model: BaseChatModel, path: Path
) -> None:
    settings = MemorySettings(
        context_depth=5,
        max_context_length=10,
        saving_interval=20,
        visit_update_interval=20,
        max_units=0,
        forget_percentage=0.1,
        max_group_size=60,
        max_token_count=2000,
        stm_capacity=200,
        stm_threshold=0.8,
        embedding_history_length=1,
        k_limit=5,
        search_range=(0.75, None),
        recall_context=True,
        add_ltm_to_stm=True,
        query_external_first=True,
    )
    assert_type(MemorySettings.from_file(path=path), MemorySettings)
    assert_type(MemorySettings.of(given={"k_limit": 3}), MemorySettings)
    language = Language(
        name="none",
        stem=str.lower,
        stop_words=frozenset({"the"}),
        asking_words=frozenset({"mention"}),
        self_words=frozenset({"I"}),
        other_words=frozenset({"you"}),
        number_words=frozenset({"one"}),
        months={"may": 5},
        time_expression=re.compile("last week"),
        asks_when=re.compile("when"),
        asks_amount=re.compile("how many"),
        asks_back=re.compile("did i"),
        change_expression=re.compile("moved"),
        determiners=frozenset({"my"}),
    )
    assert_type(language.term(word="bread"), str)
    assert_type(language.terms(text="some bread"), list[str])
    local = LocalEmbeddings(directory=path, threads=1, download=False)
    assert_type(LocalEmbeddings.available(), bool)
    local.embed_array(texts=["bread"])
    assert_type(local.embed_documents(texts=["bread"]), list[list[float]])
    assert_type(local.embed_query(text="bread"), list[float])
    with MemorySystem(
        url="sqlite:///memory.db",
        owner="ada",
        embeddings=local,
        vectors="http://localhost:8000",
        settings=settings,
        cipher=cipher,
        language=language,
        model=model,
        summarizer=summarizer,
        token_counter=len,
        pool_size=5,
        max_overflow=10,
        read_only=False,
    ) as system:
        assert_type(system, MemorySystem)
        assert_type(system.rekey(cipher=cipher), int)
        assert_type(await system.arekey(cipher=cipher), int)
    async with await MemorySystem.aopen(
        url=path,
        owner="ada",
        embeddings=embeddings,
        vectors=index,
        settings="settings.toml",
        cipher=cipher,
        language=None,
        model="gpt-4o-mini",
        summarizer=None,
        token_counter=len,
        pool_size=None,
        max_overflow=None,
        read_only=True,
    ) as system:
        assert_type(system, MemorySystem)
    with MemorySystem(owner=user_of) as system:
        assert_type(system.for_owner(owner="ada"), MemorySystem)
        assert_type(system.of_run(config={"configurable": {"user_id": "ada"}}), MemorySystem)


def use_system(
    system: MemorySystem, message: BaseMessage, when: datetime, collection: Collection, hit: Recollection
) -> None:
    assert_type(system.owner, str)
    assert_type(system.session_id, str | None)
    assert_type(system.usage, Usage)
    assert_type(system.conversations(), list[str])
    page = system.list_conversations(
        query="bread", metadata={"stars": {"$gte": 3}}, since=when, limit=3, cursor=None, archived="both"
    )
    assert_type(page, Page[ConversationInfo])
    assert_type(
        system.update_conversation(
            conversation_id="monday", title="Bread", metadata={"stars": 3}, archived=True
        ),
        ConversationInfo,
    )
    assert_type(system.start_session(id="LATEST"), str)
    assert_type(system.switch_session(id="monday"), str)
    system.remove_session(id="monday", cascade="delete")
    assert_type(system.sessions(), list[str])
    unit = system.add_memory(
        content=message, source="user", creation_time=when, metadata={"topic": 1}, never_delete=True
    )
    assert_type(unit, MemoryUnit)
    assert_type(unit.to_message(), BaseMessage)
    assert_type(system.get_context(length=3), list[MemoryUnit])
    chains = system.query(
        text="bread",
        query_vector=[0.5, 0.5],
        filters={"source": {"$eq": "ai"}},
        k_limit=3,
        search_range=(0.75, None),
        recall_context=True,
        add_ltm_to_stm=False,
        query_external_first=False,
        short_term_only=False,
        long_term_only=True,
        external_only=False,
        threshold_for_stm_before_ltm=0.8,
        compat_k=True,
    )
    assert_type(chains, list[list[MemoryUnit]])
    system.enable_stm(capacity=50, restore_session_id="LATEST")
    system.disable_stm()
    system.connect_external(collection=collection)
    system.disconnect_external()
    assert_type(system.summarize_session(id="monday", by="thread", progress=reports), MemoryUnit | None)
    assert_type(system.summarize_thread(node_id=1, session="monday", progress=reports), MemoryUnit | None)
    assert_type(system.summarize_long_term_memory(progress=reports), MemoryUnit | None)
    assert_type(system.unit(id="monday", session=None), MemoryUnit)
    assert_type(system.unfold(unit=hit, levels=1), list[MemoryUnit])
    assert_type(
        system.forget(
            percentage=0.5, max_units=10, until_below=True, purge=True, scorer=decay(half_life=20.0)
        ),
        Forgotten,
    )
    receipt = system.erase(conversation="monday", before=when)
    assert_type(receipt, Receipt)
    assert_type(system.check_erased(receipt=receipt), Receipt)
    assert_type(system.scrub(), Scrubbed)
    assert_type(system.flush(progress=reports), int)
    assert_type(system.reindex(), int)
    assert_type(system.verify(), Verification)
    assert_type(system.stats(), Statistics)
    system.reset_corrections()
    assert_type(
        system.import_file(path="chat.json", format="chatgpt", on_progress=print, skip_bad=True), ImportReport
    )
    assert_type(system.import_file("chat.json", sort=True, on_sort=print), ImportReport)
    assert_type(system.import_file(["chat.json", Path("folder")]), ImportReport)
    system.close()


async def use_system_async(system: MemorySystem, message: BaseMessage, when: datetime) -> None:
    assert_type(await system.aconversations(), list[str])
    page = await system.alist_conversations(
        query="bread", metadata={"stars": {"$gte": 3}}, since=when, limit=3, cursor=None, archived="both"
    )
    assert_type(page, Page[ConversationInfo])
    assert_type(
        await system.aupdate_conversation(
            conversation_id="monday", title="Bread", metadata={"stars": 3}, archived=True
        ),
        ConversationInfo,
    )
    assert_type(await system.astart_session(id=None), str)
    assert_type(await system.aswitch_session(id="monday"), str)
    await system.aremove_session(id="monday", cascade="stale")
    assert_type(await system.asessions(), list[str])
    unit = await system.aadd_memory(
        content="bread", source="user", creation_time=when, metadata={"topic": 1}, never_delete=True
    )
    assert_type(unit, MemoryUnit)
    assert_type(await system.aget_context(length=None), list[MemoryUnit])
    chains = await system.aquery(
        text="bread",
        query_vector=None,
        filters=[("source", "==", "ai")],
        k_limit=3,
        search_range=(None, 0.9),
        recall_context=True,
        add_ltm_to_stm=False,
        query_external_first=False,
        short_term_only=False,
        long_term_only=False,
        external_only=True,
        threshold_for_stm_before_ltm=0.8,
        compat_k=True,
    )
    assert_type(chains, list[list[MemoryUnit]])
    await system.aenable_stm(capacity=50, restore_session_id="monday")
    await system.adisable_stm()
    assert_type(
        await system.asummarize_session(id="monday", by="session", progress=reports), MemoryUnit | None
    )
    assert_type(
        await system.asummarize_thread(node_id=1, session="monday", progress=reports), MemoryUnit | None
    )
    assert_type(await system.asummarize_long_term_memory(progress=reports), MemoryUnit | None)
    assert_type(await system.aunit(id="monday", session="monday"), MemoryUnit)
    assert_type(await system.aunfold(unit=unit, levels=None), list[MemoryUnit])
    assert_type(
        await system.aforget(percentage=None, max_units=10, until_below=True, purge=True, scorer=None),
        Forgotten,
    )
    receipt = await system.aerase(conversation="monday", before=when)
    assert_type(await system.acheck_erased(receipt=receipt), Receipt)
    assert_type(await system.ascrub(), Scrubbed)
    assert_type(await system.aflush(progress=reports), int)
    assert_type(await system.areindex(), int)
    assert_type(await system.averify(), Verification)
    assert_type(await system.astats(), Statistics)
    await system.areset_corrections()
    assert_type(
        await system.aimport_file(path="chat.json", format=None, on_progress=None, skip_bad=False),
        ImportReport,
    )
    assert_type(await system.aimport_file("chat.json", sort=True, on_sort=None), ImportReport)
    await system.aclose()


def integrate(system: MemorySystem, memory: ChatMemory, model: BaseChatModel) -> None:
    select_thread_node(
        system=system,
        selector=selector,
        messages_key="messages",
        conversation_id=names,
        owner="user_id",
        window=shows_last,
        on_select="suggest",
        suggest_at=0.9,
        single_tree=True,
        on_selection_failure="root",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    store_turn_node(
        system=system, messages_key="messages", conversation_id="first", owner=ContextField(name="user_id")
    )
    recall_node(
        system=system,
        n_results=3,
        scope="owner",
        min_similarity=0.5,
        messages_key="messages",
        conversation_id=None,
        owner=user_of,
    )
    create_threaded_chat(
        model=model,
        system=system,
        selector=selects_root,
        ask=0.0,
        window=MessageWindow(
            max_messages=10,
            keep_system_first=True,
            count_system=False,
            strict_tool_pairs=True,
            compat="langchain4j",
        ),
        recall=3,
        scope="conversation",
        min_similarity=0.5,
        system_prompt="Be brief.",
        conversation_id=names,
        checkpointer=ThreadMemSaver(system=system),
        store=ThreadMemStore(system=system),
        owner=user_of,
        on_select="suggest",
        suggest_at=1,
        single_tree=False,
        on_selection_failure="latest",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    ThreadMemMiddleware(
        system=system,
        selector=selector,
        model=model,
        ask=0.0,
        window=TokenWindow(
            max_tokens=1000,
            token_counter=len,
            keep_system_first=True,
            count_system=False,
            strict_tool_pairs=True,
            compat=None,
        ),
        owner="user_id",
        recall=3,
        scope="owner",
        min_similarity=0.5,
        rewrite=True,
        conversation_id="first",
        on_select="apply",
        suggest_at=0.85,
        single_tree=True,
        on_selection_failure="raise",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    middleware = ThreadMemMiddleware.from_conn_string(
        url="sqlite://",
        owner="ada",
        selector=selector,
        model=model,
        ask=0.0,
        window=shows_last,
        recall=3,
        scope="owner",
        min_similarity=0.5,
        rewrite=True,
        conversation_id=names,
        on_select="suggest",
        suggest_at=0.9,
        single_tree=True,
        on_selection_failure="raise",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    assert_type(middleware, ThreadMemMiddleware)
    retriever = ThreadMemRetriever(
        memory=memory,
        conversation_id="first",
        scope="owner",
        k=3,
        context_depth=2,
        rank=(0, 1),
        include_superseded=True,
        owner=None,
    )
    assert_type(retriever.invoke(input="bread", config={}, k=2), list[Document])
    retriever = ThreadMemRetriever.from_conn_string(
        url="sqlite://",
        owner="ada",
        conversation_id="first",
        scope="conversation",
        k=3,
        context_depth=2,
        rank=0,
        include_superseded=True,
        name="memory",
        tags=["memory"],
        metadata={"of": "ada"},
    )
    assert_type(retriever, ThreadMemRetriever)
    recall_tool(
        memory=system,
        conversation_id="first",
        scope="owner",
        k=3,
        owner=user_of,
        name="recall",
        description="Recalls.",
    )
    list_threads_tool(
        memory=system, conversation_id="first", limit=5, owner=user_of, name="list", description="Lists."
    )
    read_thread_tool(
        memory=system,
        conversation_id="first",
        max_tokens=99,
        owner=user_of,
        name="read",
        description="Reads.",
    )
    remember_tool(
        system=system, conversation_id="facts", owner=user_of, name="remember", description="Remembers."
    )
    forget_tool(
        memory=system,
        conversation_id="facts",
        confirm=False,
        purge=False,
        owner=user_of,
        name="forget",
        description="Forgets.",
    )


async def use_history(system: MemorySystem, message: BaseMessage) -> None:
    ThreadMemChatMessageHistory(
        session_id="first",
        system=system,
        owner=user_of,
        node_selector=selector,
        summarizer=summarizer,
        context_depth=3,
        window=shows_last,
        single_tree=True,
        on_selection_failure="root",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    history = ThreadMemChatMessageHistory.from_conn_string(
        url="sqlite://",
        session_id="first",
        owner="ada",
        node_selector=selector,
        summarizer=summarizer,
        context_depth=3,
        window=shows_last,
        single_tree=True,
        on_selection_failure="root",
        cover=0.9,
        cover_tokens=1000,
        heal=False,
    )
    assert_type(history, ThreadMemChatMessageHistory)
    assert_type(history.messages, list[BaseMessage])
    assert_type(await history.aget_messages(), list[BaseMessage])
    history.add_messages(messages=[message])
    await history.aadd_messages(messages=[message])
    history.clear()
    await history.aclear()


async def use_retriever(retriever: ThreadMemRetriever) -> None:
    assert_type(await retriever.ainvoke(input="bread", config={}, k=2), list[Document])


def use_saver(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, system: MemorySystem
) -> None:
    ThreadMemSaver(system=system, serde=JsonPlusSerializer(), owner="user_id")
    with ThreadMemSaver.from_conn_string(url="sqlite://", owner="ada", serde=None) as saver:
        assert_type(saver, ThreadMemSaver)
        saver.setup()
        assert_type(saver.with_allowlist(extra_allowlist=[("fractions", "Fraction")]), ThreadMemSaver)
        assert_type(saver.get_tuple(config=config), CheckpointTuple | None)
        assert_type(
            saver.list(config=config, filter={"source": "loop"}, before=config, limit=3),
            Iterator[CheckpointTuple],
        )
        assert_type(
            saver.put(config=config, checkpoint=checkpoint, metadata=metadata, new_versions={"messages": 1}),
            RunnableConfig,
        )
        saver.put_writes(config=config, writes=[("messages", [])], task_id="1", task_path="")
        saver.delete_thread(thread_id="first")
        saver.delete_for_runs(run_ids=["1"])
        saver.copy_thread(source_thread_id="first", target_thread_id="second")
        saver.prune(thread_ids=["first"], strategy="delete")
        saver.get_delta_channel_history(config=config, channels=["messages"])
        assert_type(saver.config_of(message_id="m1", config=config), RunnableConfig)
        assert_type(saver.fork(config=config, message_id="m1"), RunnableConfig)
        saver.get_next_version(current=1, channel=None)


async def use_saver_async(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
) -> None:
    async with ThreadMemSaver.from_conn_string(url=None) as saver:
        await saver.asetup()
        assert_type(await saver.aget_tuple(config=config), CheckpointTuple | None)
        assert_type(
            saver.alist(config=config, filter={"source": "loop"}, before=config, limit=3),
            AsyncIterator[CheckpointTuple],
        )
        assert_type(
            await saver.aput(
                config=config, checkpoint=checkpoint, metadata=metadata, new_versions={"messages": 1}
            ),
            RunnableConfig,
        )
        await saver.aput_writes(config=config, writes=[("messages", [])], task_id="1", task_path="")
        await saver.adelete_thread(thread_id="first")
        await saver.adelete_for_runs(run_ids=["1"])
        await saver.acopy_thread(source_thread_id="first", target_thread_id="second")
        await saver.aprune(thread_ids=["first"], strategy="delete")
        assert_type(await saver.aconfig_of(message_id="m1", config=None), RunnableConfig)
        assert_type(await saver.afork(config=config, message_id="m1"), RunnableConfig)
        await saver.aget_delta_channel_history(config=config, channels=["messages"])


async def use_store(system: MemorySystem, ops: list[Op]) -> None:
    ThreadMemStore(system=system, index=True, ttl=None, owner=user_of, clock=lambda: 0.0)
    with ThreadMemStore.from_conn_string(
        url="sqlite://",
        owner="ada",
        index={"dims": 64, "embed": LocalEmbeddings(), "fields": ["text"]},
        ttl={"default_ttl": 5, "refresh_on_read": True, "sweep_interval_minutes": 1},
    ) as store:
        store.setup()
        assert_type(store.batch(ops=ops), list[Result])
        assert_type(store.sweep_ttl(), int)
        assert_type(store.start_ttl_sweeper(sweep_interval_minutes=1.0), Future[None])
        assert_type(store.stop_ttl_sweeper(timeout=1.0), bool)
    async with ThreadMemStore.from_conn_string(url="sqlite://") as store:
        await store.asetup()
        assert_type(await store.abatch(ops=ops), list[Result])
        assert_type(await store.asweep_ttl(), int)


async def use_windows(system: MemorySystem, message: BaseMessage) -> None:
    store = ChatMemoryStore()
    assert_type(store.get_messages(memory_id="ada"), list[BaseMessage])
    store.update_messages(memory_id="ada", messages=[message])
    store.delete_messages(memory_id="ada")
    memory = MessageWindowChatMemory(
        max_messages=10,
        id="ada",
        store=store,
        keep_system_first=True,
        compat="langchain4j",
        count_system=False,
        strict_tool_pairs=True,
    )
    TokenWindowChatMemory(
        max_tokens=1000,
        token_counter=len,
        id="ada",
        store=system,
        keep_system_first=True,
        compat=None,
        count_system=False,
        strict_tool_pairs=True,
    )
    memory.add("Hello", message, None)
    assert_type(memory.messages, list[BaseMessage])
    memory.set(messages=["Hello"])
    memory.clear()
    await memory.aadd("Hello", message)
    assert_type(await memory.amessages(), list[BaseMessage])
    await memory.aset(messages=["Hello"])
    await memory.aclear()
    memories = ChatMemoryProvider(create=lambda name: MessageWindowChatMemory(10, id=name))
    assert_type(memories.get(memory_id="ada"), MessageWindowChatMemory)
    assert_type(memories.evict(memory_id="ada"), MessageWindowChatMemory | None)


async def extend(message: BaseMessage, model: BaseChatModel, tree: TreeView) -> None:
    assert_type(selector.select_parent(tree=tree, message=message), int | None)
    assert_type(reranker.rerank(query="bread", texts=["bread"]), Sequence[float])
    assert_type(ExtractiveSummarizer().summarize(message=message), MessageSummary | None)
    assert_type(LLMSummarizer(model).summarize(message=message), MessageSummary | None)
    assert_type(await LLMSummarizer(model).asummarize(message=message), MessageSummary | None)
    assert_type(LLMNodeSelector(model).share_asked, float)
    assert_type(LLMNodeSelector(model).reliability, float)


class Loud(ChatMemory):
    """A subclass that overrides a verb and its async form."""

    def checkout(self, node_id: int) -> ConversationNode:
        return super().checkout(node_id)

    async def acheckout(self, node_id: int) -> ConversationNode:
        return await super().acheckout(node_id)


assert_type(Loud.semantic(), Loud)


def administration(url: str) -> None:
    assert_type(secure(url, "app", off=False, run=True), list[str])
    assert_type(partition(url, 8), list[PartitionedTable])


# A misspelt option, a value of another type and a forgotten `await` are errors.


def refused(memory: ChatMemory, system: MemorySystem, model: BaseChatModel) -> None:
    ChatMemory.semantic(contxt_depth=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ChatMemory.threaded(model, context_depth="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    system.conversation("first", on_selection_failure="rot")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    system.conversation("first", embeddings=False)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    memory.append(humn="Hello")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    memory.edit("1", "Hello")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    memory.recall("bread", scop="owner")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    memory.recall("bread", scope="galaxy")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    memory.to_mermaid(max_edge=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    system.query("bread", k_limt=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    system.query("bread", k_limit="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    select_thread_node(system, single_tre=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    create_threaded_chat(model, system, single_tre=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ThreadMemMiddleware(system, on_select="ask")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ThreadMemMiddleware(system, single_tre=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ThreadMemMiddleware.from_conn_string("sqlite://", recal=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ThreadMemRetriever.from_conn_string("sqlite://", kk=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ThreadMemChatMessageHistory("first", system, windw=None)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def refused_async(memory: ChatMemory, system: MemorySystem) -> None:
    nodes: list[ConversationNode] = memory.aappend("Hello")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    nodes.clear()
    await memory.arecall("bread", scop="owner")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await system.aquery("bread", k_limt=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

"""Chat memory for LangChain and LangGraph in which a conversation is a tree.

Start with `ChatMemory` (one conversation) or `MemorySystem` (all of an owner's). The names below are imported
when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "ChatMemory": "chat_memory",
    "MemorySettings": "settings",
    "MemorySystem": "memory_system",
    "ConversationNode": "tree.node",
    "MemoryUnit": "units.unit",
    "MessageSummary": "tree.node",
    "Recollection": "recall.results",
    "Language": "index.language",
    "Reranker": "recall.options",
    "MessageWindow": "messages.windows",
    "TokenWindow": "messages.windows",
    "NodeSelector": "threads.selectors",
    "LinearNodeSelector": "threads.selectors",
    "SemanticNodeSelector": "threads.selectors",
    "LLMNodeSelector": "threads.llm_selector",
    "ExtractiveSummarizer": "summaries.summarizers",
    "Summarizer": "summaries.summarizers",
    "LLMSummarizer": "summaries.summarizers",
    "LocalEmbeddings": "engine.local_embeddings",
    "ChatMemoryStore": "integrations.langchain4j",
    "MessageWindowChatMemory": "integrations.langchain4j",
    "TokenWindowChatMemory": "integrations.langchain4j",
    "ThreadMemChatMessageHistory": "integrations.history",
    "ThreadMemSaver": "integrations.checkpointer",
    "ThreadMemStore": "integrations.store",
    "ThreadMemMiddleware": "integrations.middleware",
    "ThreadMemRetriever": "integrations.retriever",
    "create_threaded_chat": "integrations.graph",
    "select_thread_node": "integrations.graph",
}

__all__ = [
    "ChatMemory",
    "ChatMemoryStore",
    "ConversationNode",
    "ExtractiveSummarizer",
    "LLMNodeSelector",
    "LLMSummarizer",
    "Language",
    "LinearNodeSelector",
    "LocalEmbeddings",
    "MemorySettings",
    "MemorySystem",
    "MemoryUnit",
    "MessageSummary",
    "MessageWindow",
    "MessageWindowChatMemory",
    "NodeSelector",
    "Recollection",
    "Reranker",
    "SemanticNodeSelector",
    "Summarizer",
    "ThreadMemChatMessageHistory",
    "ThreadMemMiddleware",
    "ThreadMemRetriever",
    "ThreadMemSaver",
    "ThreadMemStore",
    "TokenWindow",
    "TokenWindowChatMemory",
    "create_threaded_chat",
    "select_thread_node",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

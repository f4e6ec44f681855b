"""Chat memory for LangChain and LangGraph in which a conversation is a tree.

Start with `ChatMemory` (one conversation) or `MemorySystem` (all of an owner's). The names below are imported
when they are first used, so importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_threadmem.core.language import Language
    from langchain_threadmem.core.nodes import (
        ConversationNode,
        MessageSummary,
        Recollection,
    )
    from langchain_threadmem.core.units import MemoryUnit
    from langchain_threadmem.core.wanted import Reranker
    from langchain_threadmem.core.windows import MessageWindow, TokenWindow
    from langchain_threadmem.embeddings import LocalEmbeddings
    from langchain_threadmem.flows.extractive import ExtractiveSummarizer
    from langchain_threadmem.flows.llm_selector import LLMNodeSelector
    from langchain_threadmem.flows.selectors import (
        LinearNodeSelector,
        NodeSelector,
        SemanticNodeSelector,
    )
    from langchain_threadmem.flows.summarize import LLMSummarizer, Summarizer
    from langchain_threadmem.integrations.checkpointer import ThreadMemSaver
    from langchain_threadmem.integrations.graph import create_threaded_chat, select_thread_node
    from langchain_threadmem.integrations.history import ThreadMemChatMessageHistory
    from langchain_threadmem.integrations.langchain4j import (
        ChatMemoryStore,
        MessageWindowChatMemory,
        TokenWindowChatMemory,
    )
    from langchain_threadmem.integrations.middleware import ThreadMemMiddleware
    from langchain_threadmem.integrations.retriever import ThreadMemRetriever
    from langchain_threadmem.integrations.store import ThreadMemStore
    from langchain_threadmem.memory import ChatMemory
    from langchain_threadmem.settings import MemorySettings
    from langchain_threadmem.system import MemorySystem

__version__ = "0.1.0"

_HOMES = {
    "ChatMemory": "memory",
    "MemorySettings": "settings",
    "MemorySystem": "system",
    "ConversationNode": "core.nodes",
    "MemoryUnit": "core.units",
    "MessageSummary": "core.nodes",
    "Recollection": "core.nodes",
    "Language": "core.language",
    "Reranker": "core.wanted",
    "MessageWindow": "core.windows",
    "TokenWindow": "core.windows",
    "NodeSelector": "flows.selectors",
    "LinearNodeSelector": "flows.selectors",
    "SemanticNodeSelector": "flows.selectors",
    "LLMNodeSelector": "flows.llm_selector",
    "ExtractiveSummarizer": "flows.extractive",
    "Summarizer": "flows.summarize",
    "LLMSummarizer": "flows.summarize",
    "LocalEmbeddings": "embeddings",
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

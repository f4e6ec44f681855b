"""The public names, each imported at its first use.

Start with `ChatMemory` (one conversation) or `MemorySystem` (all conversations of an owner).
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.engine.local_embeddings import LocalEmbeddings
    from langchain_threadmem.engine.multilingual_embeddings import MultilingualEmbeddings
    from langchain_threadmem.index.language import Language
    from langchain_threadmem.index.units.unit import MemoryUnit
    from langchain_threadmem.langchain.history import ThreadMemChatMessageHistory
    from langchain_threadmem.langchain.langchain4j import (
        ChatMemoryStore,
        MessageWindowChatMemory,
        TokenWindowChatMemory,
    )
    from langchain_threadmem.langchain.retriever import ThreadMemRetriever
    from langchain_threadmem.langgraph.middleware import ThreadMemMiddleware
    from langchain_threadmem.langgraph.node import create_threaded_chat, select_thread_node
    from langchain_threadmem.langgraph.saver import ThreadMemSaver
    from langchain_threadmem.langgraph.store import ThreadMemStore
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.messages.windows import MessageWindow, TokenWindow
    from langchain_threadmem.recall.options import Reranker
    from langchain_threadmem.recall.results import Recollection
    from langchain_threadmem.selection.llm_selector import LLMNodeSelector
    from langchain_threadmem.selection.selectors import LinearNodeSelector, NodeSelector, SemanticNodeSelector
    from langchain_threadmem.settings import MemorySettings
    from langchain_threadmem.summaries.summarizers import ExtractiveSummarizer, LLMSummarizer, Summarizer
    from langchain_threadmem.tree.node import ConversationNode, MessageSummary

__version__ = "0.1.0"

# From version 1.31 on, onnxruntime, which computes local embeddings here and in Chroma, sends telemetry on
# Linux too, and keeps a device id in the home folder. It reads this setting when it is imported; its own
# `disable_telemetry_events()` comes too late. A value that the user has set stays.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

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
    "MultilingualEmbeddings",
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


_MODULES = {
    "chat_memory": ("ChatMemory",),
    "engine.local_embeddings": ("LocalEmbeddings",),
    "engine.multilingual_embeddings": ("MultilingualEmbeddings",),
    "index.language": ("Language",),
    "langgraph.saver": ("ThreadMemSaver",),
    "langgraph.node": ("create_threaded_chat", "select_thread_node"),
    "langchain.history": ("ThreadMemChatMessageHistory",),
    "langchain.langchain4j": ("ChatMemoryStore", "MessageWindowChatMemory", "TokenWindowChatMemory"),
    "langgraph.middleware": ("ThreadMemMiddleware",),
    "langchain.retriever": ("ThreadMemRetriever",),
    "langgraph.store": ("ThreadMemStore",),
    "memory_system": ("MemorySystem",),
    "messages.windows": ("MessageWindow", "TokenWindow"),
    "recall.options": ("Reranker",),
    "recall.results": ("Recollection",),
    "settings": ("MemorySettings",),
    "summaries.summarizers": ("ExtractiveSummarizer", "LLMSummarizer", "Summarizer"),
    "selection.llm_selector": ("LLMNodeSelector",),
    "selection.selectors": ("LinearNodeSelector", "NodeSelector", "SemanticNodeSelector"),
    "tree.node": ("ConversationNode", "MessageSummary"),
    "index.units.unit": ("MemoryUnit",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # Type checkers read the imports above.
    if find_spec("langchain") is None:  # `from langchain_threadmem import *` would fail.
        __all__.remove("ThreadMemMiddleware")

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

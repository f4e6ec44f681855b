"""LangGraph checkpoints over the tree; each module is imported at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_threadmem.langgraph.checkpoints import find, load, maintenance, queries, save

    __all__ = ["find", "load", "maintenance", "queries", "save"]
else:

    def __getattr__(name: str) -> Any:
        if name not in ("find", "load", "maintenance", "queries", "save"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

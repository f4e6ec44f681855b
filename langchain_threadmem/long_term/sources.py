"""Sources of long-term queries beside the database: short-term memory and external collections."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.long_term.external import ExternalCollection
from langchain_threadmem.long_term.short_term import ShortTermMemory
from langchain_threadmem.units.unit import MemoryUnit


class Sources(Component):
    """The short-term memory and the external collections of one owner."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.short_term: ShortTermMemory[Hashable, MemoryUnit] | None = None
        self.external: list[ExternalCollection] = []

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        if self.short_term is not None:
            for keys in removed.values():
                for key in keys:
                    self.short_term.drop(key)
            self.short_term.forget_words()

    def close(self) -> None:
        if self.short_term is not None:
            self.short_term.clear()
            self.short_term.forget_words()

    def survives_fork(self) -> bool:
        """Both are values that a child may keep."""
        return True

"""A thread-safe least-recently-used cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import K, V

F = TypeVar("F", bound=Callable[..., Any])
_text_caches: list[Callable[[], None]] = []


def cache_of_texts(size: int) -> Callable[[F], F]:
    """Decorate a function of texts with `functools.lru_cache`; `forget_texts` empties the cache.

    Example:
        >>> @cache_of_texts(8)
        ... def length(text: str) -> int:
        ...     return len(text)
        >>> length("abc")
        3
        >>> forget_texts()
        >>> length.cache_info().currsize
        0
    """

    def decorate(function: F) -> F:
        cached: Any = lru_cache(size)(function)
        _text_caches.append(cached.cache_clear)
        return cast("F", cached)

    return decorate


def forget_texts() -> None:
    """Empty all caches of `cache_of_texts` after texts were removed from a memory."""
    for clear in _text_caches:
        clear()


class LruCache(Generic[K, V]):
    """A cache of the `capacity` most recently used values.

    Example:
        >>> cache = LruCache[str, int](2)
        >>> for name, value in [("a", 1), ("b", 2), ("c", 3)]:
        ...     cache.put(name, value)
        >>> cache.get("a"), cache.get("c")
        (None, 3)
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = forking.rlock()

    def __reduce__(self) -> tuple[type[LruCache[K, V]], tuple[int]]:
        return type(self), (self._capacity,)  # A copy in another process is empty.

    def get(self, key: K) -> V | None:
        """The value, which becomes the most recently used; `None` if it is not cached."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def get_each(self, keys: Sequence[K]) -> list[V | None]:
        """The result of `get` for several keys."""
        with self._lock:
            values = list(map(self._values.get, keys))
            for key, value in zip(keys, values, strict=True):
                if value is not None:
                    self._values.move_to_end(key)
            return values

    def put(self, key: K, value: V) -> None:
        """Cache a value; the least recently used value may be dropped."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._trim()

    def resize(self, capacity: int) -> None:
        """Change the capacity; the least recently used values may be dropped."""
        with self._lock:
            self._capacity = capacity
            self._trim()

    def __iter__(self) -> Iterator[K]:
        """The keys, the least recently used first."""
        with self._lock:
            return iter(list(self._values))

    def _trim(self) -> None:
        while len(self._values) > self._capacity:
            self._dropped(*self._values.popitem(last=False))

    def _dropped(self, key: K, value: V) -> None:
        """Called with each dropped value; subclasses override it to drop related data."""

    def setdefault(self, key: K, make: Callable[[], V]) -> V:
        """The cached value; if there is none, the result of `make`, which is cached."""
        with self._lock:
            if (value := self._values.get(key)) is not None:
                self._values.move_to_end(key)
                return value
        self.put(key, value := make())
        return value

    def drop(self, key: K) -> None:
        """Drop a value, if it is cached."""
        with self._lock:
            if key in self._values:
                self._dropped(key, self._values.pop(key))

    def clear(self) -> None:
        """Drop all values."""
        for key in self:
            self.drop(key)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

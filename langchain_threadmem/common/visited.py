"""Values on a path along stored links, each of which is visited once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain

from langchain_threadmem.errors import InvalidGraphStateError


class Visited(set[Hashable]):
    """The values of a path along links between stored rows.

    Damaged links may form a circle. So each loop that follows stored links adds the values that it visits.

    Example:
        >>> visited = Visited()
        >>> visited.add(1)
        >>> visited.add(1)
        Traceback (most recent call last):
            ...
        langchain_threadmem.errors.InvalidGraphStateError: stored links form a circle at 1, so the ...
    """

    def add(self, value: Hashable) -> None:
        """Add a value.

        Raises:
            InvalidGraphStateError: The path has reached the value before.
        """
        if value in self:
            raise circle(value)
        super().add(value)

    def update(self, *several: Iterable[Hashable]) -> None:
        """Add values; see `add`."""
        for value in chain(*several):
            self.add(value)


def circle(value: Hashable) -> InvalidGraphStateError:
    """The error of a path along stored links that reaches a value again."""
    return InvalidGraphStateError(
        f"stored links form a circle at {value!r}, so the database is damaged; call verify(), which names "
        "the damage, and restore a copy, or erase() the conversation"
    )

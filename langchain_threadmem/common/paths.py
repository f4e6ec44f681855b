"""Paths of files that callers pass."""

from __future__ import annotations

from pathlib import Path

from langchain_threadmem.errors import InputError


def path_of(path: str | Path) -> Path:
    """The path of a file.

    Raises:
        InputError: The value is neither text nor a path.

    Example:
        >>> str(path_of("chat.json"))
        'chat.json'
    """
    try:
        return Path(path)
    except TypeError as error:
        raise InputError(f"{path!r:.200} is not the path of a file; pass text or a Path") from error

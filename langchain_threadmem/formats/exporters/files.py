"""Atomic writing, and reading, of UTF-8 text files, and names of files."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from langchain_threadmem.common.inputs import path_of
from langchain_threadmem.errors import PersistenceError, ThreadMemError

_UNSAFE = re.compile(r"[^\w.-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
"""The beginning of a name that Windows reserves for a device."""
_LONGEST_NAME = 150
"""The longest name in bytes; file systems allow 255 with the suffix and the name of the draft."""


def write_text(path: str | Path, text: str) -> None:
    """Write a file atomically: after a crash the file has its old content or the new content.

    Raises:
        PersistenceError: The file cannot be written.
    """
    write_texts(path, [text])


def write_texts(path: str | Path, texts: Iterable[str]) -> None:
    """Write texts to one file, as `write_text` does, one by one.

    Raises:
        PersistenceError: The file cannot be written.
        ThreadMemError: A text cannot be made.
    """
    target = path_of(path)
    try:
        draft = target.with_name(f".{target.name}.{uuid4().hex}")
        try:
            with draft.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(texts)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                # The new file keeps the permissions of the old file.
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except ThreadMemError:
        raise
    except (OSError, ValueError) as error:
        raise _file_error("save to", target, error) from error


def make_folder(path: str | Path) -> None:
    """Make a folder and the folders above it, unless they exist.

    Raises:
        PersistenceError: The folder cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _file_error("make the folder", Path(path), error) from error


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file.

    Raises:
        PersistenceError: The file cannot be read.
    """
    source = path_of(path)
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _file_error("read", source, error) from error


def _file_error(action: str, path: Path, error: Exception) -> PersistenceError:
    if isinstance(error, FileNotFoundError):
        return PersistenceError(f"Cannot {action} {str(path)!r}: there is no such file or folder.")
    if isinstance(error, PermissionError):
        return PersistenceError(
            f"Cannot {action} {str(path)!r}. Check file permissions or choose a different location."
        )
    if isinstance(error, UnicodeDecodeError):
        return PersistenceError(f"Cannot {action} {str(path)!r}: it is not UTF-8 text ({error.reason}).")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return PersistenceError("Disk is full. Free up space or choose a different location.")
    return PersistenceError(f"Cannot {action} {str(path)!r}: {error}. Choose a different location.")


def file_names(names: Sequence[str], suffix: str) -> Iterator[str]:
    """A file name for each conversation, safe on every system; equal names are numbered."""
    used: set[str] = set()
    for name in names:
        short = _UNSAFE.sub("_", name).strip("._").encode()[:_LONGEST_NAME].decode(errors="ignore")
        stem = short or "conversation"
        stem = f"_{stem}" if _RESERVED.match(stem) else stem
        unique, number = stem, 1
        while unique.casefold() in used:
            number += 1
            unique = f"{stem}-{number}"
        used.add(unique.casefold())
        yield unique + suffix

"""Writing a file whole or not at all, and reading one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from uuid import uuid4

from langchain_threadmem.errors import PersistenceError


def write_text(path: str | Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of it.

    Raises:
        PersistenceError: It cannot be written.
    """
    target = Path(path)
    try:
        draft = target.with_name(f".{target.name}.{uuid4().hex}")
        try:
            with draft.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))  # What was private stays so.
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise _failed("save to", target, error) from error


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file.

    Raises:
        PersistenceError: It cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _failed("read", Path(path), error) from error


def _failed(what: str, path: Path, error: Exception) -> PersistenceError:
    if isinstance(error, FileNotFoundError):
        return PersistenceError(f"Cannot {what} {str(path)!r}: there is no such file or folder.")
    if isinstance(error, PermissionError):
        return PersistenceError(
            f"Cannot {what} {str(path)!r}. Check file permissions or choose a different location."
        )
    if isinstance(error, UnicodeDecodeError):
        return PersistenceError(f"Cannot {what} {str(path)!r}: it is not UTF-8 text ({error.reason}).")
    if isinstance(error, OSError) and error.errno == 28:
        return PersistenceError("Disk is full. Free up space or choose a different location.")
    return PersistenceError(f"Cannot {what} {str(path)!r}: {error}. Choose a different location.")

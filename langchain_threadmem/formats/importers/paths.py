"""The files of an import: files, folders, and archives with files, folders and archives.

Each file is an `InputFile`, which is opened when it is read. An archive inside an archive, and a database
inside an archive, are copied to a temporary file that is deleted when the import ends.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from langchain_threadmem.common.inputs import path_of
from langchain_threadmem.errors import InputError, PersistenceError

UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, ValueError)
"""The errors of reading damaged, encrypted and unusually compressed files."""
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_SUFFIXES = {
    "",
    *[".json", ".jsonl", ".ndjson", ".md", ".txt", ".db", ".sqlite", ".sqlite3", ".zip", ".gz", ".html"],
}
"""The suffixes of the files in folders and archives that are looked at."""
_SKIPPED = {".git", ".svn", "node_modules", "__pycache__", "__MACOSX", ".venv"}
"""The names of folders that have no chats."""
_DEEPEST = 3
"""The number of archives inside each other that are opened."""
_DIGITS = re.compile(r"(\d+)")
_PIECE = re.compile(r"(.+\.zip)\.(\d{3})", re.IGNORECASE)
"""The name of a piece of an archive that was split: `export.zip.001`."""


ImportPaths = str | Path | Sequence[str | Path]
"""The path of a file, folder or archive, or a list of such paths."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of an import.

    Attributes:
        label: Its path for people; a file of an archive follows the path of the archive.
        path: Its path in its folder or archive.
        size: Its size in bytes, without compression.
        time: The time of its last change, in seconds since 1970.
        is_given: Whether the caller named the file, and not a folder or archive with it.
        on_disk: Its path, if it is no file of an archive.
    """

    label: str
    path: PurePosixPath
    size: int
    time: float
    is_given: bool
    on_disk: Path | None
    _open: Callable[[], IO[bytes]]
    _folder: Path | zipfile.Path

    def open(self) -> BinaryIO:
        """Open the file at its beginning.

        Raises:
            PersistenceError: The file cannot be read.
        """
        try:
            return cast("BinaryIO", self._open())
        except UNREADABLE as error:
            raise unreadable(self.label, error) from error

    def beside(self, name: str) -> bytes | None:
        """The contents of another file of the folder or archive, by its path from the folder of this file.

        Example: `file.beside("../users.json")`.
        """
        parts: list[str] = []
        for part in (*self.path.parent.parts, *PurePosixPath(name).parts):
            if part != "..":
                parts.append(part)
            elif parts:
                parts.pop()
            else:
                return None
        target = self._folder.joinpath(*parts)
        try:
            return target.read_bytes() if target.is_file() else None
        except (KeyError, *UNREADABLE):
            return None


def unreadable(label: str, error: Exception) -> PersistenceError:
    """The error of a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return PersistenceError(f"Cannot read {label!r}: there is no such file or folder")
    reason = (
        "it is encrypted; extract it first"
        if "encrypted" in str(error)
        else str(error) or type(error).__name__
    )
    return PersistenceError(f"Cannot read {label!r}: {reason}")


class Inputs:
    """The files of an import, in the order of their paths.

    Args:
        paths: Files, folders and archives.

    Raises:
        InputError: A path is no path.
        PersistenceError: A given file or archive cannot be read.

    Attributes:
        files: The files.
        unreadable: The paths of archives in folders and archives that cannot be read.
    """

    def __init__(self, paths: ImportPaths) -> None:
        given: list[Any] = list(paths) if isinstance(paths, list | tuple | set) else [paths]
        if not given:
            raise InputError("there is no file to import; pass the path of an export")
        self._stack = ExitStack()
        self._temporary: Path | None = None
        self.unreadable: list[str] = []
        try:
            self.files = [file for path in given for file in self._files_at(path_of(path))]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Delete the temporary files."""
        self._stack.close()

    def copied(self, file: InputFile) -> Path:
        """The path of a copy of a file of an archive."""
        target = self._folder() / f"{len(os.listdir(self._folder()))}-{file.path.name}"
        with file.open() as stream, target.open("wb") as copy:
            try:
                shutil.copyfileobj(stream, copy)
            except UNREADABLE as error:
                raise unreadable(file.label, error) from error
        return target

    def _folder(self) -> Path:
        if self._temporary is None:
            self._temporary = Path(self._stack.enter_context(tempfile.TemporaryDirectory("-threadmem")))
        return self._temporary

    def _files_at(self, path: Path) -> Iterator[InputFile]:
        try:
            if path.is_dir():
                yield from self._files_in(path)
                return
            state = path.stat()
            file = _on_disk(path, path.parent, state, is_given=True)
            if piece := _PIECE.fullmatch(path.name):
                if int(piece[2]) == 1:
                    yield from self._members(self._joined(path, piece[1], file), 0)
                return
            with path.open("rb") as stream:
                beginning = stream.read(4)
        except UNREADABLE as error:
            if isinstance(error, InputError | PersistenceError):
                raise
            raise unreadable(str(path), error) from error
        yield from self._opened(file, beginning)

    def _joined(self, first: Path, name: str, file: InputFile) -> InputFile:
        """The archive of which `first` is the first piece."""
        target = self._folder() / name
        with target.open("wb") as archive:
            number = 1
            while (piece := first.with_name(f"{name}.{number:03}")).is_file():
                with piece.open("rb") as stream:
                    shutil.copyfileobj(stream, archive)
                number += 1
        return replace(file, size=target.stat().st_size, on_disk=target, _open=lambda: target.open("rb"))

    def _files_in(self, folder: Path) -> Iterator[InputFile]:
        for at, folders, names in os.walk(folder):
            folders[:] = sorted((name for name in folders if name not in _SKIPPED), key=_natural)
            for name in sorted(names, key=_natural):
                path = Path(at, name)
                if not path.is_file() or not (_suffix(path) in _SUFFIXES or _PIECE.fullmatch(name)):
                    continue
                if _PIECE.fullmatch(name):
                    yield from self._files_at(path)
                    continue
                with path.open("rb") as stream:
                    beginning = stream.read(4)
                yield from self._opened(_on_disk(path, folder, path.stat(), is_given=False), beginning)

    def _opened(self, file: InputFile, beginning: bytes, depth: int = 0) -> Iterator[InputFile]:
        """The file itself, or the files of the archive."""
        if beginning.startswith(_GZIP):
            yield _extracted(file)
        elif not beginning.startswith(_ZIP):
            yield file
        elif depth == _DEEPEST:
            raise PersistenceError(f"{file.label!r} is an archive in {depth} archives; extract it first")
        else:
            try:
                yield from self._members(file, depth)
            except PersistenceError:
                if file.is_given:
                    raise
                self.unreadable.append(file.label)

    def _members(self, file: InputFile, depth: int) -> Iterator[InputFile]:
        stream: IO[bytes] = file.open()
        if file.on_disk is None:
            stream.close()
            stream = self.copied(file).open("rb")
        self._stack.enter_context(stream)
        try:
            archive = self._stack.enter_context(zipfile.ZipFile(stream))
            folder = zipfile.Path(archive)
            members = sorted(archive.infolist(), key=lambda member: _natural(member.filename))
            for member in members:
                path = PurePosixPath(member.filename)
                if member.is_dir() or _suffix(path) not in _SUFFIXES or _SKIPPED & {*path.parts}:
                    continue
                inner = InputFile(
                    f"{file.label}/{member.filename}",
                    path,
                    member.file_size,
                    file.time,
                    False,
                    None,
                    lambda member=member: archive.open(member),  # type: ignore[misc]
                    folder,
                )
                with archive.open(member) as opened:
                    beginning = opened.read(4)
                yield from self._opened(inner, beginning, depth + 1)
        except UNREADABLE as error:
            if isinstance(error, InputError | PersistenceError):
                raise
            raise unreadable(file.label, error) from error


class _Gzip(gzip.GzipFile):
    """The contents of a compressed file, which is closed with them."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(fileobj=stream)
        self._compressed = stream

    def close(self) -> None:
        super().close()
        self._compressed.close()


def _on_disk(path: Path, folder: Path, state: os.stat_result, *, is_given: bool) -> InputFile:
    return InputFile(
        str(path),
        PurePosixPath(path.relative_to(folder).as_posix()),
        state.st_size,
        state.st_mtime,
        is_given,
        path,
        lambda: path.open("rb"),
        folder,
    )


def _extracted(file: InputFile) -> InputFile:
    """A file that gzip has compressed."""
    path = file.path.with_suffix("") if file.path.suffix == ".gz" else file.path
    return replace(file, path=path, on_disk=None, _open=lambda: cast("IO[bytes]", _Gzip(file.open())))


def _suffix(path: Path | PurePosixPath) -> str:
    return path.suffix.lower()


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which `part-2` precedes `part-10`."""
    return [
        (int(part), "") if part.isdecimal() and part.isascii() else (-1, part) for part in _DIGITS.split(name)
    ]

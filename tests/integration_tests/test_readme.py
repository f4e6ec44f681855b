"""Every Python block of the README runs, in order, and prints the block that stands below it."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.compile(
    r"^```python\n(?P<source>.*?)^```\n(?:\n```(?:text|mermaid)\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


# Threads are found by meaning, so what is said about a topic has to be about that topic.
ANSWERS = {
    "How do I read a CSV file in Python?": "Use the csv module, or pandas.read_csv for tables.",
    "My sourdough bread comes out flat. Why?": "The dough probably did not ferment long enough.",
    "And how do I skip the header row of the file?": "Call next(reader) once before the loop.",
}


# What it fills in where it is asked for a value of that name.
VALUES = {
    "selected_node_id": None,
    "reasoning": "It is about something else.",
    "title": "Bread",
    "summary": "It needs time.",
}


class FakeOpenAI(BaseChatModel):
    """Answers a question, or calls the tool or fills the form that it is given, as models of that name do."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        return self.bind(form=convert_to_openai_tool(tools[0])["function"])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        asked = str(messages[-1].content)
        answer = AIMessage(ANSWERS.get(asked, "Hello from the model."))
        form = options.get("form")
        if form and messages[-1].type != "tool":
            values = {**VALUES, "query": asked}
            args = {name: values[name] for name in form["parameters"]["properties"]}
            answer = AIMessage("", tool_calls=[{"name": form["name"], "args": args, "id": "call"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def blocks() -> Iterator[tuple[str, str | None]]:
    """Each Python block, with the output that is shown right after it."""
    for block in PYTHON.finditer(README):
        yield block["source"], block["shown"]


@pytest.mark.slow
def test_the_blocks_run_in_order_and_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("langchain_openai.ChatOpenAI", FakeOpenAI)
    names: dict[str, Any] = {"__name__": "readme"}
    compared = 0
    for source, shown in blocks():
        with warnings.catch_warnings(
            record=True
        ):  # LangChain announces what it deprecates, as the README says.
            exec(compile(source, "README.md", "exec"), names)
        printed = capsys.readouterr().out
        if shown is not None:
            assert printed == shown, source
            compared += 1
    names["system"].close()
    assert compared >= 10
    looked_up = [message.content for message in names["state"]["messages"] if message.type == "tool"]
    assert ["My sourdough bread comes out flat. Why?" in text for text in looked_up] == [True]


def test_a_block_that_prints_is_followed_by_its_output() -> None:
    silent = [source for source, shown in blocks() if "print(" in source and shown is None]
    assert silent == []


def test_each_block_is_short() -> None:
    assert max(len(source.splitlines()) for source, _ in blocks()) <= 12


def test_what_the_page_links_to_exists() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []


def test_the_picture_is_one_that_a_browser_can_read_and_shows_the_sample() -> None:
    picture = ET.parse(ROOT / "docs" / "tree.svg").getroot()
    words = "".join(picture.itertext())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "sourdough" in words
    assert "Lisbon" in words

"""Every Python block of the README runs, in order, and prints the block that stands below it."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.compile(
    r"^```python\n(?P<source>.*?)^```\n(?:\n```(?:text|mermaid)\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


class FakeOpenAI(BaseChatModel):
    """Answers each request in the form it asks for, as the model of that name would."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        asked = str(messages[-1].content)
        answer = "Hello from the model."
        if "selected_node_id" in asked:
            answer = '{"selected_node_id": null, "reasoning": "It is about something else."}'
        elif '"title"' in asked:
            answer = '{"title": "Bread", "summary": "It needs time."}'
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


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
    assert compared >= 7


def test_a_block_that_prints_is_followed_by_its_output_unless_a_model_wrote_it() -> None:
    silent = [source for source, shown in blocks() if "print(" in source and shown is None]
    assert ["gpt-4o-mini" in source for source in silent] == [True]


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

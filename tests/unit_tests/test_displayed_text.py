"""Displayed text: control characters are escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage
from rich.console import Console

from langchain_threadmem.apps.cli import rich_output
from langchain_threadmem.formats.exporters.mermaid import to_mermaid
from langchain_threadmem.formats.exporters.page import to_html, to_svg
from langchain_threadmem.formats.exporters.text import to_outline, to_text
from langchain_threadmem.messages.text import one_line, visible
from langchain_threadmem.recall.results import Recollection, Why
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, Placement

C0 = [chr(code) for code in range(32) if chr(code) not in "\t\n\r"]
C1 = [chr(code) for code in range(0x7F, 0xA0)]
BIDI = list("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
Nodes = Sequence[ConversationNode]


def printed(what: Any) -> str:
    file = StringIO()
    Console(width=300, file=file).print(what)
    return file.getvalue()


def recalled(nodes: Nodes) -> str:
    hits = [Recollection(nodes[0], 1.0, nodes[:1], Why(person=str(nodes[0].message.content)))]
    return printed(rich_output.show_recall(str(nodes[0].message.content), hits))


SHOWN: dict[str, Callable[[Nodes], str]] = {
    "html": lambda nodes: to_html(nodes, title=str(nodes[0].message.content)),
    "svg": to_svg,
    "text": to_text,
    "mermaid": to_mermaid,
    "mermaid summaries": lambda nodes: to_mermaid(nodes, show_summaries=True),
    "outline": to_outline,
    "notebook": lambda nodes: "".join(node._repr_html_() for node in nodes),
    "tree": lambda nodes: printed(rich_output.draw_tree(nodes, reasons=True)),
    "threads": lambda nodes: printed(rich_output.list_threads(nodes)),
    "conversations": lambda nodes: printed(rich_output.list_conversations([(nodes[0].message.text, nodes)])),
    "recall": recalled,
}


@pytest.mark.parametrize("form", SHOWN)
@pytest.mark.parametrize("signs", [C0, C1, BIDI, ["\ud800"]], ids=["C0", "C1", "bidi", "half"])
def test_what_would_act_is_shown_as_an_escape(form: str, signs: list[str]) -> None:
    for sign in signs:
        text = f"a{sign}b"
        call = {"name": text, "args": {text: text}, "id": "c1"}
        nodes = [
            ConversationNode(1, HumanMessage(text), placement=Placement(text)),
            ConversationNode(2, ChatMessage(text, role=text), 1, MessageSummary(title=text, summary=text)),
            ConversationNode(3, AIMessage("", tool_calls=[call]), 2),
        ]
        found = SHOWN[form](nodes)
        assert sign not in found
        assert (ascii(sign)[1:-1] if form[:7] != "mermaid" else ascii(sign)[2:-1]) in found


@given(st.text())
def test_visible_text_is_shown_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert visible(text) == text or "\\" in visible(text)


@given(st.text(), st.integers(1, 20))
def test_one_line_is_one_line_for_every_reader(text: str, width: int) -> None:
    assert len(one_line(text, width).splitlines()) <= 1
    assert len(one_line(text, width)) <= width


@given(st.text("אבג مرحبا 你好 é 😀\u200d\t\n"))
def test_letters_of_every_script_stay(text: str) -> None:
    assert visible(text) == text

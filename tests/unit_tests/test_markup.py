"""Answers as rendered Markdown: elements of a short list, no markup of messages, and bounded time."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_threadmem.messages.display import body_of, preview_of
from langchain_threadmem.messages.rendering import LONGEST, parts_of, plain, to_html

ALLOWED = {
    *("p", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "span", "em", "strong", "s"),
    *("table", "thead", "tbody", "tr", "th", "td", "a", "br", "hr"),
}
ATTRIBUTES = {"class", "href", "title", "target", "rel", "referrerpolicy", "start", "style"}
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1) 'x')",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](vbscript:x)",
    "[a](//evil.example)",
    "![a](https://evil.example/pixel.png)",
    "![a](javascript:alert(1))",
    "<javascript:alert(1)>",
    "<https://example.org/\"onmouseover='alert(1)'>",
    '[a](https://example.org/"onclick="alert(1))',
    "```py\" onclick=alert(1)\nx = '<b>'\n```",
    "`<b>`",
    "| <b> |\n|---|\n| <script> |",
    "[x]: javascript:alert(1)\n\n[x]",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
)


class Elements(HTMLParser):
    """The elements of a fragment; checks that every tag is closed."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(fragment)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(text: str) -> None:
    """Check that only listed elements and attributes result, and that links are of the web or of mail."""
    for styled in (False, True):
        for tag, attributes in Elements(to_html(parts_of(text), styled=styled)).found:
            assert tag in ALLOWED
            assert set(attributes) <= ATTRIBUTES
            assert (
                (attributes.get("href") or "https://").lower().startswith(("http://", "https://", "mailto:"))
            )


@pytest.mark.parametrize("text", HOSTILE)
def test_markup_in_a_message_is_text(text: str) -> None:
    check(text)
    check(f"# {text}\n\n- {text}\n\n> {text}")


@settings(max_examples=60)
@given(st.lists(st.sampled_from(HOSTILE) | st.text(alphabet="*_`#[]()<>|!~\\$- \n1.&;:ahref", max_size=30)))
def test_any_text_gives_listed_elements(texts: list[str]) -> None:
    check("".join(texts))


def test_tables_lists_and_code_become_elements() -> None:
    table = to_html(parts_of("| fruit | price |\n|---|--:|\n| figs | 3 |"))
    assert "<th>fruit</th>" in table
    assert '<td class="right">3</td>' in table
    code = to_html(parts_of("```python\ndef feed():  # often\n    return 'rye'\n```"))
    assert '<span class="keyword">def</span>' in code
    assert '<span class="comment"># often</span>' in code
    assert '<span class="string">&#x27;rye&#x27;</span>' in code
    assert to_html(parts_of("3. three\n4. four")).startswith('<ol start="3">')
    assert to_html(parts_of("```no-such-language\n<b>\n```")) == (
        '<pre class="code"><code>&lt;b&gt;</code></pre>'
    )


def test_code_keeps_its_text() -> None:
    code = "\n\nfor x in y:\n\tprint('<&>')\n\n    # end"
    [pre] = parts_of(f"```python\n{code}\n```")

    def text(part: Any) -> str:
        return part if isinstance(part, str) else "".join(map(text, part[2:]))

    assert text(pre) == code


def test_an_image_is_a_link_that_loads_nothing() -> None:
    shown = to_html(parts_of("![a fig](https://example.org/fig.png)"))
    assert "<img" not in shown
    assert ">[image: a fig]</a>" in shown
    assert 'rel="noopener noreferrer nofollow"' in shown


def test_formulas_are_no_markdown() -> None:
    assert to_html(parts_of(r"So \(a_1 * b_1 * c\) holds")) == (
        r'<p>So <code class="formula">\(a_1 * b_1 * c\)</code> holds</p>'
    )


def test_very_long_and_very_deep_texts_are_plain() -> None:
    for text in ("x " * LONGEST, "> " * 500 + "deep", "- " * 500 + "deep"):
        [part] = parts_of(text)
        assert part[:2] == ["p", {"class": "plain"}]
    for text in ("[" * 19_000, "*a " * 6_000, "**" * 9_000, "![" * 9_000, "\\(" * 9_000, "`" * 19_000):
        check(text)


def test_code_for_which_lexers_take_long_has_no_colours() -> None:
    assert "<span" in to_html(parts_of("```python\n" + "x = 1  # one\n" * 300 + "```"))
    for code in ("x = 1  # one\n" * 500, "x = 1 " * 100, "x = 1" + "\n" * 200 + "x = 1", "a " * 300):
        shown = to_html(parts_of(f"```python\n{code}\n```"))
        assert "<span" not in shown
        assert code.strip() in shown


def test_an_answer_is_rendered_and_other_messages_are_not() -> None:
    call = {"name": "weather", "args": {"city": "Rome"}, "id": "1"}
    assert to_html(body_of(AIMessage("**yes**", tool_calls=[call]))) == (
        '<p><strong>yes</strong></p>\n<p class="plain">[calls weather(city=&#x27;Rome&#x27;)]</p>'
    )
    for message in (HumanMessage("**yes**"), ToolMessage("**yes**", tool_call_id="1")):
        assert to_html(body_of(message)) == '<p class="plain">**yes**</p>'
    assert body_of(AIMessage("")) == []


def test_a_preview_has_no_marks() -> None:
    assert plain("|  | b |\n|---|---|\n| 1 | 2 |") == "b · 1 · 2"
    assert preview_of(AIMessage("**Bold** and [a link](https://example.org)"), 60) == "Bold and a link"
    assert preview_of(HumanMessage("**Bold**"), 60) == "**Bold**"

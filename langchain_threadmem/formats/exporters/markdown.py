"""Conversations as Markdown: a heading for each thread, a block quote for each message.

Messages are untrusted. A block quote ends where its message ends, so a message cannot imitate a heading or
another speaker, and HTML outside of code is shown as text. Code in fences and backticks is not changed.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, ToolMessage

from langchain_threadmem.formats.exporters.layout import Layout, Strand
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.display import label_of
from langchain_threadmem.messages.text import one_line, visible
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import EPOCH, ConversationNode

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_MAYBE_HTML = re.compile(r"<[A-Za-z/!?]")
_ROUNDS = 8
"""The maximum number of passes that escape HTML; an escaped tag may move the end of a block."""


def to_markdown(nodes: Sequence[ConversationNode], *, title: str = "Conversation") -> str:
    r"""Write a conversation as a Markdown document.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        title: The first heading.

    Returns:
        For each thread, the oldest first, a heading with its title, and its messages with number, role and
        time. Messages that several threads share are written once; a thread that branches off names the
        message that it continues. Results of tools and arguments of tool calls are written as code. The text
        ends with a line end.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> asked, answer = HumanMessage("Where do figs grow?"), AIMessage("In `the south`.")
        >>> nodes = [ConversationNode(1, asked), ConversationNode(2, answer, 1)]
        >>> print(to_markdown(nodes, title="Fruit"))
        # Fruit
        <BLANKLINE>
        2 messages in 1 thread
        <BLANKLINE>
        ## Where do figs grow?
        <BLANKLINE>
        **1 User**
        <BLANKLINE>
        > Where do figs grow?
        <BLANKLINE>
        **2 Assistant**
        <BLANKLINE>
        > In `the south`.
        <BLANKLINE>
    """
    layout = Layout(nodes)
    nodes_of: dict[int, list[ConversationNode]] = defaultdict(list)
    for node in layout.order:
        nodes_of[layout.strand_of[node.id]].append(node)
    blocks = [f"# {_without_markup(title)}", layout.counts]
    for number, strand in sorted(enumerate(layout.strands), key=lambda each: each[1].first.timestamp):
        blocks += _strand(layout, strand, nodes_of[number])
    return "\n\n".join(blocks) + "\n"


def _strand(layout: Layout, strand: Strand, nodes: Sequence[ConversationNode]) -> Iterator[str]:
    yield f"## {_without_markup(layout.title(strand.first))}"
    parent = layout.parent(strand.first)
    if parent is not None:
        yield f"*Continues message {parent.id}.*"
    for node in nodes:
        state = "" if node.state == State.LIVE else f" ({node.state.label})"
        time = "" if node.timestamp == EPOCH else f", {node.timestamp.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        yield f"**{node.id} {_without_markup(label_of(node.message))}**{state}{time}"
        yield from _quotes(node.message)


def _quotes(message: BaseMessage) -> Iterator[str]:
    """The parts of a message, each in its own block quote, which ends any markup that it leaves open."""
    text = visible(text_of(message)).replace("\r\n", "\n").replace("\r", "\n")
    if isinstance(message, ToolMessage | FunctionMessage):
        yield _quote(_fenced(text))
    elif text.strip():
        yield _without_html(_quote(text))
    if isinstance(message.content, list):
        for block in message.content:
            kind = block.get("type", "block") if isinstance(block, dict) else "text"
            if kind not in ("text", "tool_use", "tool_call"):
                yield _quote(f"*{_without_markup(str(kind))}*")
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            arguments = json.dumps(call["args"], ensure_ascii=False, indent=2, default=str)
            yield _quote(f"Calls {_without_markup(call['name'])}:\n" + _fenced(visible(arguments), "json"))


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _fenced(code: str, language: str = "") -> str:
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    return f"{fence}{language}\n{code}\n{fence}"


def _without_markup(text: str) -> str:
    """The text on one line, with escaped markup."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", one_line(text)).strip()


def _without_html(text: str) -> str:
    """The Markdown text with escaped HTML tags; code is not changed."""
    if not _MAYBE_HTML.search(text):
        return text
    # Imported here, so that the import of the package is fast.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    for _ in range(_ROUNDS):
        lines, has_html = text.split("\n"), False
        for token in parser.parse(text):
            is_block = token.type == "html_block"
            if token.map and (is_block or any(c.type == "html_inline" for c in token.children or ())):
                has_html = True
                first, last = token.map
                block = "\n".join(lines[first:last])
                lines[first:last] = (_escaped(block) if is_block else _outside_code(block)).split("\n")
        if not has_html:
            return text
        text = "\n".join(lines)
    return _escaped(text)


def _outside_code(text: str) -> str:
    pieces, end = [], 0
    for code in _CODE_SPAN.finditer(text):
        pieces += [_escaped(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*pieces, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")

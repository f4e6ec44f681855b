"""A chat in the terminal: threads, recalled messages, and the answer or the prompt of a model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from rich.console import Console
from rich.text import Text

from langchain_threadmem.apps.cli.arguments import print_error
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.langgraph.node import create_threaded_chat
from langchain_threadmem.long_term.lists.verbs import title_of_conversation
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.display import content_of, label_of, preview_of
from langchain_threadmem.messages.text import one_line, plural, visible
from langchain_threadmem.messages.tokens import count_tokens
from langchain_threadmem.recall.quoting import Recalled

WIDTH = 100
"""The length of a recalled message, in characters."""
LONGEST = 2_000
"""The length of a message of a shown prompt, in characters."""


class MissingModelError(Exception):
    """The call of a model that does not exist.

    Attributes:
        messages: The prompt.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        super().__init__("there is no model")
        self.messages = messages


class NoModel(BaseChatModel):
    """A chat model that raises `MissingModelError` instead of answering."""

    @property
    def _llm_type(self) -> str:
        return "none"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise MissingModelError(messages)


class ChatSession:
    """A chat in a conversation.

    Args:
        model: The chat model; `None` to show prompts.
        conversation: The conversation; `None` for a new one.
        recall: The number of recalled messages.
    """

    def __init__(
        self, system: MemorySystem, model: BaseChatModel | None, conversation: str | None, recall: int
    ) -> None:
        self._system = system
        self._has_model = model is not None
        self._name = conversation or f"chat-{time.strftime('%Y%m%d-%H%M%S')}"
        self._chat = create_threaded_chat(
            model or NoModel(), system, recall=recall, scope="owner", conversation_id=self._name
        )
        self._console = Console(highlight=False)
        self._is_terminal = False

    def run(self, source: TextIO) -> None:
        """Answer each line of a text file; in a terminal, after a prompt."""
        self._is_terminal = source.isatty()
        if self._is_terminal:
            how = "" if self._has_model else "There is no model, so prompts are shown and nothing is stored. "
            self._note(f"{how}Ctrl-D ends the chat.")
        for line in self._lines(source):
            if line.strip():
                self._turn(line.strip())

    def _lines(self, source: TextIO) -> Iterator[str]:
        if not self._is_terminal:
            yield from source
            return
        while True:
            try:
                yield self._console.input("[bold]> [/bold]")
            except EOFError:
                return

    def _turn(self, text: str) -> None:
        state = {"messages": [HumanMessage(text)]}
        streamed = False
        try:
            event: Any
            for mode, event in self._chat.stream(state, stream_mode=["updates", "messages"]):
                if mode == "messages":
                    streamed = self._token(event) or streamed
                else:
                    self._update(event, streamed)
        except MissingModelError as shown:
            self._prompt(shown.messages)
        except ThreadMemError:
            raise
        except Exception as error:  # Each provider has its own errors.
            failure = f"the model failed: {error}; the message is stored without an answer"
            if not self._is_terminal:
                raise InputError(failure) from error
            print_error(failure)

    def _token(self, event: tuple[BaseMessage, Mapping[str, Any]]) -> bool:
        chunk, metadata = event
        if metadata.get("langgraph_node") != "model" or not isinstance(chunk, AIMessageChunk):
            return False
        self._console.print(Text(visible(chunk.text)), end="")
        return bool(chunk.text)

    def _update(self, event: Mapping[str, Any], streamed: bool) -> None:
        if active := (event.get("select_thread") or {}).get("active_thread"):
            self._place(active)
        for hit in (event.get("recall") or {}).get("recalled", ()):
            self._recalled(hit)
        if answer := (event.get("model") or {}).get("messages"):
            self._console.print("" if streamed else Text(content_of(answer[-1])))

    def _place(self, active: Mapping[str, Any]) -> None:
        parent, reason = active["parent_id"], active["reason"]
        if parent is None:
            self._note(reason or "begins a thread")
            return
        begin = self._system.conversation(self._name).thread(parent)[0]
        where = f"continues “{preview_of(begin.message, WIDTH // 2)}” after message {parent}"
        self._note(f"{where} ({reason})" if reason else where)

    def _recalled(self, hit: Recalled) -> None:
        name = hit["conversation_id"]
        title = run(
            title_of_conversation(self._system.conversation(name)._conversation), self._system.runtime
        )
        self._note(f"recalls message {hit['node_id']} of “{one_line(title, WIDTH // 2)}” ({hit['why']})")
        self._note(f"  {hit['text']}")
        if answer := hit.get("answer"):
            self._note(f"  → {answer['text']}")

    def _prompt(self, messages: Sequence[BaseMessage]) -> None:
        tokens = count_tokens(messages)
        self._console.print(
            Text(f"\nThe prompt: {plural(len(messages), 'message')}, about {tokens:,} tokens", style="bold")
        )
        for message in messages:
            content = content_of(message)
            rest = len(content) - LONGEST
            self._console.print(Text(f"{label_of(message)}:", style="bold cyan"), end=" ")
            self._console.print(Text(content[:LONGEST] + (f" … (+ {rest:,} characters)" if rest > 0 else "")))
        self._console.print()

    def _note(self, text: str) -> None:
        self._console.print(Text(one_line(text), style="dim"), no_wrap=True, overflow="ellipsis")

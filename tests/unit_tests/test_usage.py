"""Usage: calls and tokens by purpose and conversation, sync and async, from any thread."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_threadmem import ChatMemory, LLMSummarizer, MemorySystem, create_threaded_chat
from langchain_threadmem.common.usage import Usage, Used

Wrap = Callable[[Any], Any]


class Metered(BaseChatModel):
    """Answers with fixed text and its token counts; fails without text."""

    answer: str | None
    tokens: bool = True

    @property
    def _llm_type(self) -> str:
        return "metered"

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        if self.answer is None:
            raise ConnectionError("no route")
        used = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12} if self.tokens else None
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answer, usage_metadata=used))])


SUMMARY = json.dumps({"title": "T", "summary": "S."})


def test_summaries_are_counted_by_conversation(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, model=Metered(answer=SUMMARY)) as system:
        for name in ("a", "b"):
            system.conversation(name).append("question", "answer")
        verb = verbs(system)
        verb.summarize_session("a")
        assert system.usage.total == Used(1, 10, 2)
        verb.summarize_long_term_memory()
        assert system.usage.by_purpose() == {"summary": Used(3, 30, 6)}
        assert system.usage.by_conversation() == {name: Used(1, 10, 2) for name in ("a", "b", "")}


def test_selections_and_summaries_of_messages_are_counted(system: MemorySystem, verbs: Wrap) -> None:
    model = Metered(
        answer=json.dumps({"selected_node_id": 2, "reasoning": "r", "title": "T", "summary": "S."})
    )
    options = ChatMemory.threaded(model)
    memory = system.conversation("c", node_selector=options.node_selector, summarizer=options.summarizer)
    verb = verbs(memory)
    for number in range(3):
        verb.append(f"q{number}", f"a{number}")
    verb.summarize()
    assert system.usage.of("selection", "c").calls == 2  # The first message has nothing to continue.
    assert system.usage.of("summary", "c") == Used(3, 30, 6)


def test_a_call_that_fails_or_names_no_tokens_is_a_call(system: MemorySystem, verbs: Wrap) -> None:
    for model in (Metered(answer=None), Metered(answer="nonsense", tokens=False)):
        memory = system.conversation("c", summarizer=LLMSummarizer(model))
        memory.append("question", "answer")
        verbs(memory).summarize(2)
    assert system.usage.total == Used(2, 0, 0)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_answers_of_a_ready_made_chat_are_counted(system: MemorySystem, asynchronous: bool) -> None:
    import asyncio

    chat = create_threaded_chat(Metered(answer="Hi!"), system, conversation_id="c")
    said = {"messages": [("user", "Hello")]}
    if asynchronous:
        asyncio.run(chat.ainvoke(said))
    else:
        chat.invoke(said)
    assert system.usage.of("answer", "c") == Used(1, 10, 2)


def test_counting_is_safe_in_threads() -> None:
    usage = Usage()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: usage.add("answer", f"c{n % 3}", {"input_tokens": 1}), range(3000)))
    assert usage.total == Used(3000, 3000, 0)
    assert usage.of(conversation="c1").calls == 1000
    assert repr(usage) == "Usage({'answer': Used(calls=3000, input_tokens=3000, output_tokens=0)})"

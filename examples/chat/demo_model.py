"""A scripted chat model, so that the app runs without a key."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

ANSWERS = {
    r"\b(csv|header|rows?|column|pandas|python)\b": (
        "Open the file and pass it to `csv.DictReader`: **the first row becomes the names** of the columns."
        '\n\n```python\nwith open("sales.csv", newline="") as file:\n'
        "    rows = list(csv.DictReader(file))\n```\n\n"
        "For large tables, `pandas.read_csv` does the same in one call."
    ),
    r"\b(bread|dough|sourdough|bake|loaf|flour|oven)\b": (
        "A flat loaf usually comes from dough that has fermented too briefly or too cold. Keep it at about "
        "25 degrees until it has grown by half, then bake it in a hot pot."
    ),
    r"\b(lisbon|train|travel|trip|tram|hotel|flight)\b": (
        "Take the morning train and sit on the left, where the river is. In Lisbon, tram 28 passes most of "
        "the places that people visit."
    ),
    r"\b(figs?|tree|plant|garden|leaves)\b": (
        "Brown leaves on a fig tree are mostly a sign of too much water. Let the soil dry to the depth of a "
        "finger before you water it again."
    ),
}
OTHERWISE = "The demo model has four answers, and none of them matches this message."
OPENINGS = ("", "In other words: ", "Once more, and shorter: ")


class DemoModel(BaseChatModel):
    """A chat model that answers by keywords, token by token, with the number of messages that it was shown.

    Args:
        delay: Seconds between two tokens.
    """

    delay: float = 0.02
    _asked: Counter[str] = PrivateAttr(default_factory=Counter)

    @property
    def _llm_type(self) -> str:
        return "demo"

    def _tokens(self, messages: list[BaseMessage]) -> list[AIMessageChunk]:
        question = messages[-1].text
        found = next((text for words, text in ANSWERS.items() if re.search(words, question, re.I)), OTHERWISE)
        answer = OPENINGS[self._asked[question] % len(OPENINGS)] + found
        self._asked[question] += 1
        shown = sum(message.type in ("human", "ai") for message in messages)
        text = f"{answer}\n\n(The demo model was shown {shown} message{'s' * (shown > 1)}.)"
        return [AIMessageChunk(content=part) for part in re.findall(r"\s*\S+", text)]

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        tokens = self._tokens(messages)
        whole = AIMessage("".join(str(token.content) for token in tokens))
        return ChatResult(generations=[ChatGeneration(message=whole)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for token in self._tokens(messages):
            await asyncio.sleep(self.delay)
            yield ChatGenerationChunk(message=token)

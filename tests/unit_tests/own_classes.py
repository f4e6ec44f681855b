"""Custom classes whose values JSON cannot represent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from pydantic import BaseModel


class Note(BaseModel):
    text: str = "note"
    n: int = 1


@dataclass
class Point:
    x: int = 1
    y: float = 2.5


class Colour(Enum):
    RED = "red"


class Pair(NamedTuple):
    first: int
    second: str


class Letter(HumanMessage):
    """A message of a custom class."""

    stamp: str = "none"


class Handle:
    """A value that no serializer accepts."""

    def __repr__(self) -> str:
        return "<Handle 7>"


OWN: list[Any] = [Note(), Point(), Colour.RED, Pair(1, "b")]
DOCUMENT = Document("text", metadata={"page": 1})
"""What LangGraph's serializer gives back in its strict mode too."""
ODD: list[Any] = [*OWN, DOCUMENT, {"deep": [(Note(n=2), {3: Point()})]}]
"""Values that LangGraph's serializer keeps; the last holds some among plain ones."""

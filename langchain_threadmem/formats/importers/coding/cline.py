"""Tasks of Cline.

The fields follow cline/cline.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import Program, itself, standard_parts
from langchain_threadmem.formats.importers.said import Other, Part


def _is_cline(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "ts" in value
        and "role" in value
        and isinstance(value.get("content"), list | str)
    )


def _parts_of_cline(message: Record) -> Iterator[Part]:
    for part in standard_parts(message):
        if isinstance(part, str) and part.lstrip().startswith("<environment_details>"):
            yield Other({"type": "environment_details", "text": part})
        elif isinstance(part, str):
            yield part.strip().removeprefix("<task>").removesuffix("</task>").strip()
        else:
            yield part


PROGRAM = Program(
    "cline", "api_conversation_history.json of Cline", _is_cline, itself, _parts_of_cline, _is_cline
)

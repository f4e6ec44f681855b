"""LangGraph's conformance suite for checkpointers, whole: all eight capabilities, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from langchain_threadmem import ThreadMemSaver


def test_every_capability_passes(url: str, owner: str) -> None:
    @checkpointer_test(name="ThreadMemSaver")
    async def made() -> AsyncIterator[ThreadMemSaver]:
        async with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
            yield saver

    report = asyncio.run(validate(made))
    results = report.results
    assert set(results) == {capability.value for capability in Capability}
    failures = {name: result.failures for name, result in results.items() if result.passed is not True}
    assert failures == {}
    assert sum(result.tests_passed for result in results.values()) >= 60

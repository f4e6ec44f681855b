"""LangGraph's conformance suite for checkpointers: all eight capabilities, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from conftest import StreamCipher
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langchain_threadmem import ThreadMemSaver


@pytest.mark.parametrize("serde", [None, EncryptedSerializer(StreamCipher())], ids=["plain", "encrypted"])
def test_every_capability_passes(url: str, owner: str, serde: EncryptedSerializer | None) -> None:
    @checkpointer_test(name="ThreadMemSaver")
    async def made() -> AsyncIterator[ThreadMemSaver]:
        async with ThreadMemSaver.from_conn_string(url, owner=owner, serde=serde) as saver:
            yield saver

    report = asyncio.run(validate(made))
    results = report.results
    assert set(results) == {capability.value for capability in Capability}
    failures = {name: result.failures for name, result in results.items() if result.passed is not True}
    assert failures == {}
    assert sum(result.tests_passed for result in results.values()) >= 60

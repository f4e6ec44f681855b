"""The benchmark of recall reads LongMemEval in its published format."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recall(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.recall")


@pytest.fixture
def published(tmp_path: Path) -> Path:
    def turn(role: str, content: str, **marks: bool) -> dict[str, Any]:
        return {"role": role, "content": content, **marks}

    row = {
        "question_id": "a1b2c3",
        "question_type": "single-session-user",
        "question": "Which instrument did I buy?",
        "answer": "a viola",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 18:05"],
        "haystack_sessions": [
            [turn("user", "What grows in the shade?"), turn("assistant", "Ferns and hostas do.")],
            [
                turn("user", "I bought a viola, an instrument I always wanted.", has_answer=True),
                turn("assistant", "Enjoy playing it!", has_answer=False),
            ],
        ],
        "answer_session_ids": ["s2"],
    }
    nothing = row | {"question_id": "a1b2c3_abs", "haystack_sessions": [[], []], "answer_session_ids": []}
    path = tmp_path / "longmemeval_s_cleaned.json"
    path.write_text(json.dumps([row, nothing]), encoding="utf-8")
    return path


def test_sessions_become_messages_with_their_times_and_evidence(recall: ModuleType, published: Path) -> None:
    read, nothing = recall.conversations(published)
    assert [(row["id"], row["role"]) for row in read["messages"]] == [
        ("0:0", "human"),
        ("0:1", "assistant"),
        ("1:0", "human"),
        ("1:1", "assistant"),
    ]
    assert read["messages"][2]["time"] == "2023/05/22 (Mon) 18:05"
    assert read["questions"][0]["evidence"] == ["1:0"]
    assert (nothing["messages"], nothing["questions"][0]["evidence"]) == ([], [])


def test_its_questions_are_put_to_recall(recall: ModuleType, published: Path) -> None:
    one = recall.Set("LongMemEval", published.name, by_pair=False, aims={})
    read = next(recall.conversations(published))
    find, memory = recall.ours(read["messages"], False)
    results = {recall.OURS: recall.Result()}
    recall.judge(read, one, {recall.OURS: find}, results)
    memory.close()
    assert [figures["R@5"] for figures in results[recall.OURS].figures] == [1.0]

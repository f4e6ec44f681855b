"""threadbench plays conversations by its protocol, takes selectors and LangGraph nodes, and counts right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from benchmarks.threads import Oracle
from langchain_threadmem import LinearNodeSelector, MemorySystem
from langchain_threadmem.errors import SelectionError
from langchain_threadmem.langgraph.node import select_thread_node
from threadbench.__main__ import main
from threadbench.contestants import ContestantError, always_last, language_model, named
from threadbench.data import SPLITS, Conversation, Message, conversations, export, fingerprint, read
from threadbench.figures import Result, tables
from threadbench.protocol import Contestant, Counts, run

LONG = 40
"""Characters from which a text in two splits would be more than a common phrase."""


def turn(name: str, parent: str | None) -> list[Message]:
    """A human message of two characters and an answer of eight."""
    return [
        Message(id=name, parent=parent, role="user", content=f"{name}?"),
        Message(id=f"{name}=", parent=name, role="assistant", content="answered"),
    ]


TINY = Conversation(
    id="tiny",
    group="calm",
    unit="tiny",
    language="en",
    split="test",
    messages=[
        *turn("a", None),
        *turn("b", "a="),
        *turn("c", None),
        *turn("d", "b="),  # A return.
        *turn("e", "a="),  # A branch.
    ],
)
LAST = Counts(
    messages=5,
    right=2,
    continued=1,
    continued_right=1,
    returns=1,
    branches=1,
    roots=1,
    follow_ups=3,
    covered=3,
    shown=100,
    history=100,
    conversations=1,
)


def oracle(one: Conversation) -> Callable[[Any, BaseMessage], int | None]:
    """A selector that knows the true parents."""
    answers = {"a=": "a?", "b=": "b?"}
    true = {row["content"]: answers.get(row["parent"] or "") for row in one["messages"]}

    def select_parent(tree: Any, message: BaseMessage) -> int | None:
        return {end.human: end.id for end in tree.turn_ends()}.get(true[message.text])

    return select_parent


def whole_list(state: Any) -> dict[str, Any]:
    """A LangGraph node that changes nothing."""
    return {}


def refuse(tree: Any, message: BaseMessage) -> int | None:
    raise RuntimeError("no choice")


def test_an_oracle_gets_everything_right_and_shows_the_thread_alone() -> None:
    [counts] = run(Contestant("oracle", oracle), [TINY])
    assert counts == Counts(
        5, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, shown=40, history=100, conversations=1, whole=1
    )


def test_always_last_is_right_where_a_message_continues_the_turn_before() -> None:
    assert run(Contestant("last", lambda one: always_last), [TINY]) == [LAST]


def test_a_langgraph_node_is_played_as_its_selector_is() -> None:
    with MemorySystem(embeddings=False) as system:
        node = select_thread_node(system, oracle(TINY))
        counts = run(Contestant("node", lambda one: node, is_node=True), [TINY])
    assert counts == run(Contestant("oracle", oracle), [TINY])


@pytest.mark.parametrize("node", [whole_list, RunnableLambda(whole_list)])
def test_the_parent_by_another_node_is_the_message_before_in_its_list(node: Any) -> None:
    assert run(Contestant("list", lambda one: node, is_node=True), [TINY]) == [LAST]


def test_a_node_that_removes_the_newest_message_ends_the_run() -> None:
    node = RunnableLambda(lambda state: {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    with pytest.raises(ValueError, match="removed the newest message"):
        run(Contestant("list", lambda one: node, is_node=True), [TINY])


def test_a_selector_that_raises_ends_the_run() -> None:
    with pytest.raises(SelectionError, match="no choice"):
        run(Contestant("refuses", lambda one: refuse), [TINY])


def test_a_chat_model_is_asked_about_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **options: Oracle(right=None))
    model = replace(language_model("provider:name"), embeddings=False)
    [counts] = run(model, [TINY])
    assert (counts.right, counts.roots_right, counts.opened) == (2, 1, 4)


def test_a_name_is_of_a_function_an_object_a_class_or_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("selector", LinearNodeSelector()), ("node", RunnableLambda(whole_list))):
        monkeypatch.setattr("threadbench.contestants." + name, value, raising=False)
    monkeypatch.setattr("threadbench.contestants.plain_node", whole_list, raising=False)
    assert not named("threadbench.contestants:always_last").is_node
    assert not named("threadbench.contestants:selector").is_node
    assert named("threadbench.contestants:node").is_node
    assert named("threadbench.contestants:plain_node").is_node
    made = named("langchain_threadmem:LinearNodeSelector")
    assert made.make(TINY) is not made.make(TINY)


@pytest.mark.parametrize(
    "name", ["no_such_module:select", "threadbench:select", "threadbench.data", "pathlib:Path", "sys:path"]
)
def test_a_name_of_no_selector_is_refused_by_name(name: str) -> None:
    with pytest.raises(ContestantError, match=name.partition(":")[0]):
        named(name)


def test_no_text_is_in_two_splits() -> None:
    texts = [{row["content"] for one in conversations(split) for row in one["messages"]} for split in SPLITS]
    for one, other in combinations(texts, 2):
        assert {text for text in one & other if len(text) > LONG} == set()


def test_exported_files_are_read_as_the_same_conversations(tmp_path: Path) -> None:
    [path] = export(tmp_path, ["test"])
    assert fingerprint(read(path)) == fingerprint(conversations("test"))


@pytest.mark.parametrize("change", [{"parent": "z"}, {"id": "a"}])
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, change: dict[str, str]) -> None:
    bad = {**TINY, "messages": [*TINY["messages"][:2], {**TINY["messages"][2], **change}]}
    path = tmp_path / "mine.jsonl"
    path.write_text(f"{json.dumps(TINY)}\n{json.dumps(bad)}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        read(path)


def test_a_conversation_and_its_translations_are_drawn_together() -> None:
    several = [Conversation(**{**TINY, "id": f"{n}", "unit": f"{n // 2}"}) for n in range(4)]
    right = [Counts(messages=5, right=n, conversations=1) for n in (0, 5, 5, 0)]
    apart = [Conversation(**{**one, "unit": one["id"]}) for one in several]
    assert Result(several, right).figure("parent", ["calm"]) == (50.0, 50.0, 50.0, 20)
    assert Result(apart, right).figure("parent", ["calm"]).low == 0.0


def test_the_command_prints_tables_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(TINY), encoding="utf-8")
    chosen = ["--data", str(path), "--rows", "always-last"]
    assert main(chosen) == 0
    assert "| 40.0 (40-40) |" in capsys.readouterr().out
    assert main([*chosen, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]["always-last"]["calm"]
    assert figures["covered"] == {"value": 100.0, "low": 100.0, "high": 100.0, "of": 3}
    assert figures["roots, precision"]["value"] is None


def test_the_examples_of_the_readme_run() -> None:
    page = (Path(__file__).parents[2] / "threadbench" / "README.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(block, names)
    contestants = [Contestant("words", lambda one: names["select_parent"])]
    contestants.append(Contestant("node", lambda one: names["node"], is_node=True))
    [example] = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for contestant in contestants:
        [counts] = run(contestant, [json.loads(example)])
        assert counts.messages == 2


def test_single_dialogs_and_languages_have_tables_of_their_own() -> None:
    several = [one for one in conversations("test") if one["group"] in ("single", "languages")]
    counts = [Counts(messages=1, right=1, conversations=1, whole=1) for _ in several]
    found = tables({"all right": Result(several, counts)})
    assert "| all right      | 100.0 (100-100) | 100.0 (100-100) |" in found
    assert found.count("| ar ") == 1


def test_an_unknown_selector_ends_the_command_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--selector", "no_such_module:select"])
    assert "no_such_module" in capsys.readouterr().err

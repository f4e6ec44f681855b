"""Import of a file of each program: the tree that its format describes, written by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langchain_threadmem import LinearNodeSelector, MemorySystem
from langchain_threadmem.messages.prompt import as_prompt
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode
from tests.providers import refusals

NAME, ID = re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[A-Za-z0-9_-]{1,40}")
DATA = Path(__file__).parents[1] / "data" / "imports"

RIVER = """
1    human Name a river.
2 <1 ai Danube.
3 <1 ai Rhine.
4 <2 human How long?
5 <4 ai 2850 km.
active 5
"""
TURN = """
1    human Name a river.
2 <1 ai Danube.
active 2
"""
LOOKED_UP = """
1    human Name a river.
2 <1 ai calls look(q='river')
3 <2 tool Danube
4 <3 ai Danube.
active 4
"""
HELLO = """
1    human Hi
2 <1 ai Hello
active 2
"""
THOUGHT = """
1    ~system
2    human Is 91 a prime?
3 <2 ~ai Thought for 4 seconds
4 <2 ai (91 = 7 * 13) No, it is 7 times 13.
active 4
"""
TREES: dict[str, tuple[str, dict[str, str]]] = {
    "chatgpt/one-c-tree.json": (
        "chatgpt",
        {
            "c-tree": """
1    ~system
2    human Name a river.
3 <2 ai The Danube.
4 <2 ai The Rhine.
5 <3 human How long?
6 <5 ai 2850 km.
7 <3 human How deep?
8 <7 ai 8 m.
active 6
"""
        },
    ),
    "chatgpt/branch-in-new-chat.json": (
        "chatgpt",
        {
            "c-tree": """
1    ~system
2    human Name a river.
3 <2 ai The Danube.
4 <2 ai The Rhine.
5 <3 human How long?
6 <5 ai 2850 km.
7 <3 human How deep?
8 <7 ai 8 m.
9 <6 human And its source?
active 9
"""
        },
    ),
    "chatgpt/one-c-thoughts.json": ("chatgpt", {"c-thoughts": THOUGHT}),
    "chatgpt/single-object.json": ("chatgpt", {"c-thoughts": THOUGHT}),
    "chatgpt/one-c-usercontext.json": (
        "chatgpt",
        {
            "c-usercontext": """
1    ~system
2    ~human The user profile: keeps bees. / Answer in one line.
3    ~ai 1. [2026-05-01] Keeps three hives.
4    human When do I feed them?
5 <4 ai In autumn.
active 5
"""
        },
    ),
    "chatgpt/one-c-browse.json": (
        "chatgpt",
        {
            "c-browse": """
1    ~system
2    human What is new in Graz?
3 <2 ai calls browser(input='search("Graz news")')
4 <3 tool # 【0†Tram opens†graz.example】 / Tram opens / The tram opens on Monday. / https://graz.example/tram
5 <4 ~tool Tram opens / The tram opens on Monday. / https://graz.example/tram
6 <4 ai A tram opens [Tram opens](https://graz.example/tram).
active 6
"""
        },
    ),
    "chatgpt/one-c-canvas.json": (
        "chatgpt",
        {
            "c-canvas": """
1    ~system
2    human Write a haiku in a canvas.
3 <2 ai [canvas: haiku] / Old pond calls canmore_create_textdoc(name='haiku', type='document', content='Old pond')
4 <3 tool Successfully created text document.
5 <4 ai Done.
active 5
"""  # noqa: E501
        },
    ),
    "chatgpt/one-c-dalle.json": (
        "chatgpt",
        {
            "c-dalle": """
1    ~system
2    human Draw a fox.
3 <2 ai calls dalle_text2im(prompt='a fox', size='1024x1024')
4 <3 tool [image: file-Fox1] / DALL-E returned some images. They are already displayed.
5 <4 ~tool DALL-E returned some images. They are already displayed.
6 <4 ai Here is a fox.
active 6
"""
        },
    ),
    "chatgpt/one-c-image-in.json": (
        "chatgpt",
        {
            "c-image-in": """
1    ~system
2    human [image: flower.jpg] / What flower is this?
3 <2 ai A daisy.
active 3
"""
        },
    ),
    "chatgpt/one-c-error.json": (
        "chatgpt",
        {
            "c-error": """
1    ~system
2    human Open the page.
3 <2 ai calls browser(input='open_url("https://x.example")')
4 <3 tool Error: robots.txt
5 <4 ai The page cannot be read.
active 5
"""
        },
    ),
    "chatgpt/one-c-gpt.json": (
        "chatgpt",
        {
            "c-gpt": """
1    ~system
2    ~system You are a bread expert.
3    human Rye?
4 <3 ai Yes.
active 4
"""
        },
    ),
    "chatgpt/one-c-nocur.json": (
        "chatgpt",
        {
            "c-nocur": """
1    ~system
2    human Q
3 <2 ai R
active 3
"""
        },
    ),
    "chatgpt/one-c-archived.json": (
        "chatgpt",
        {
            "c-archived": """
1    ~system
2    human Old?
3 <2 ai Old.
active 3
"""
        },
    ),
    "chatgpt/one-c-file-in.json": (
        "chatgpt",
        {
            "c-file-in": """
1    ~system
2    human Sum the column.
3 <2 ai It is 42.
active 3
"""
        },
    ),
    "chatgpt/one-c-memory.json": (
        "chatgpt",
        {
            "c-memory": """
1    ~system
2    human Remember my cat is Momo.
3 <2 ai calls bio(input="User's cat is called Momo.")
4 <3 tool Model set context updated.
5 <4 ai I will remember.
active 5
"""
        },
    ),
    "chatgpt/one-c-partial.json": (
        "chatgpt",
        {
            "c-partial": """
1    ~system
2    human Tell a long story
3 <2 ai Once upon
active 3
"""
        },
    ),
    "chatgpt/one-c-python.json": (
        "chatgpt",
        {
            "c-python": """
1    ~system
2    human Compute 2**10.
3 <2 ai calls python(input='print(2**10)')
4 <3 tool 1024 /
5 <4 ai It is 1024.
active 5
"""
        },
    ),
    "chatgpt/one-c-root0.json": (
        "chatgpt",
        {
            "c-root0": """
1    ~system
2    human Shared root id
3 <2 ai Yes
active 3
"""
        },
    ),
    "chatgpt/one-c-empty.json": ("chatgpt", {}),
    "chatgpt/one-c-rootonly.json": ("chatgpt", {}),
    "claude/one-k-tree.json": (
        "claude",
        {
            "k-tree": """
1    human A river?
2 <1 ai Danube
3 <1 ai Rhine
4 <2 human Longer?
5 <4 ai 2850 km
6    human Another start?
7 <6 ai Sure
active 7
"""
        },
    ),
    "claude/one-k-leaf.json": (
        "claude",
        {
            "k-leaf": """
1    human Hi
2 <1 ai old
3 <1 ai new
active 2
"""
        },
    ),
    "claude/one-k-tool.json": (
        "claude",
        {
            "k-tool": """
1    human News?
2 <1 ai I search. calls web_search(query='news')
3 <2 tool Tram / https://x.example / A tram opens
4 <3 ai A tram opens.
active 4
"""
        },
    ),
    "claude/one-k-attach.json": (
        "claude",
        {
            "k-attach": """
1    human Summarise / [file: notes.txt] / Bees sleep in winter.
2 <1 ai Bees sleep.
active 2
"""
        },
    ),
    "claude/one-k-think.json": (
        "claude",
        {
            "k-think": """
1    human 91 prime?
2 <1 ai (91 = 7*13) No.
active 2
"""
        },
    ),
    "claude/one-k-budget.json": (
        "claude",
        {
            "k-budget": """
1    human x
2 <1 ai y
active 2
"""
        },
    ),
    "claude/one-k-artifact.json": (
        "claude",
        {
            "k-artifact": """
1    human Write code
2 <1 ai Here: calls artifacts(id='hello', type='application/vnd.ant.code', language='python', title='Hello', command='create', content="print('hi')", version_uuid='v1')
3 <2 tool OK
4 <3 ai Run it.
active 4
"""  # noqa: E501
        },
    ),
    "claude/one-k-parent.json": ("claude", {"k-parent": HELLO}),
    "claude/one-k-plain.json": ("claude", {"k-plain": HELLO}),
    "claude/one-k-empty.json": ("claude", {}),
    "deepseek": (
        "deepseek",
        {
            "ds-1": """
1    human Name a river.
2 <1 ai (Rivers...) Danube.
3 <1 ai Rhine.
4 <2 human How long?
5 <4 ai 2850 km [citation:1].
active 5
""",
            "ds-2": """
1    human Hello
2 <1 ai Hi
active 2
""",
        },
    ),
    "claude_code": (
        "claude_code",
        {
            "cc-1": """
1    human Count the hives.
2 <1 ai (ls first) I look. calls Bash(command='ls')
3 <2 tool a.txt
4 <3 ai One hive.
5 <4 ~human <local-command-stdout>ok</local-command-stdout>
6 <4 human And bees?
7 <6 ai Many.
8 <4 human And wasps?
9 <8 ai None.
10    ~human Sub task: find wax
11    ~ai wax found
12 <9 ~human This session continues an earlier one: they counted one hive.
13 <9 human Done?
14 <13 ai Yes.
active 14
"""
        },
    ),
    "openwebui": (
        "openwebui",
        {"ow-1": RIVER.replace("ai Danube.", "ai (rivers) Danube.")},
    ),
    "grok": ("grok", {"gk-1": RIVER.replace("2850", "(length...) 2850")}),
    "openai_items": ("openai_items", {"response_items": LOOKED_UP}),
    "openai_agents": ("agents_sdk", {"as-1": LOOKED_UP}),
    "librechat": (
        "librechat",
        {
            "lc-1": """
1    human Name a river.
2 <1 ai Danube.
3 <1 ai (rivers) calls search(q='river')
4 <3 tool Rhine
5 <4 ai Rhine.
6 <2 human How long?
7 <6 ai 2850 km.
active 7
"""
        },
    ),
    "codex": (
        "codex",
        {
            "0190": """
1    ~human <environment_context> / <cwd>/home/ada</cwd> / </environment_context>
2    human Count files.
3 <2 ai (Use ls) calls exec_command(cmd='ls')
4 <3 tool a.txt
5 <4 ai One file.
6 <5 human Delete it.
7 <6 ai Deleted.
8 <5 human Rename it.
9 <8 ai Renamed.
active 9
"""
        },
    ),
    "llm": (
        "llm",
        {
            "th1": """
1    human Name a river.
2 <1 ai (rivers) Danube.
3 <2 human How long?
4 <3 ai 2850 km.
5 <1 ai Rhine.
active 5
"""
        },
    ),
    "aistudio": (
        "ai_studio",
        {
            "River": """
1    ~system Be brief.
2    human Name a river. / [file: drv1]
3 <2 ai (rivers) Danube.
active 3
"""
        },
    ),
    "gemini_takeout": (
        "takeout",
        {
            "gemini-a660ee9a3c49a8f9": """
1    ~system Used an Assistant feature
2    human Name a river.
3 <2 ai The Danube.
4 <3 human How long is it?
5 <4 ai 2850 km.
active 5
"""
        },
    ),
    "sillytavern": (
        "sillytavern",
        {
            "Bea - 2026-05-28@10h00m00s": """
1    ai Hello!
2    ai Good day!
3 <1 human Name a river.
4 <3 ai Rhine.
5 <3 ai (rivers) Danube.
6 <5 ~ai hidden note
active 5
"""
        },
    ),
    "lmstudio": (
        "lm_studio",
        {
            "1780000000000": """
1    human Name a river.
2 <1 ai Rhine.
3 <1 ai (rivers) Danube.
4 <3 human How deep?
5 <3 human How long?
6 <5 ai 2850 km.
active 6
"""
        },
    ),
    "chatbox": (
        "chatbox",
        {
            "cb-1": """
1    ~system Be brief.
2    human Name a river.
3 <2 ai Danube.
4 <3 human How long?
5 <4 ai 2850 km.
6 <2 ai Rhine.
active 5
""",
            "cb-1-old": """
1    human Hello
2 <1 ai Hi
active 2
""",
        },
    ),
    "oasst": (
        "oasst",
        {
            "o1": """
1    human Name a river.
2 <1 ai Danube.
3 <2 human How long?
4 <3 ai 2850 km.
5 <1 ai Rhine.
active 4
"""
        },
    ),
    "sharegpt": (
        "sharegpt",
        {
            "sg-1": """
1    ~system Be brief.
2    human Name a river.
3 <2 ai Danube.
active 3
"""
        },
    ),
    "hf_messages": ("messages", {"ultrachat-1": TURN}),
    "huggingchat": (
        "huggingchat",
        {
            "66aa": """
1    ~system
2    human Name a river.
3 <2 ai (rivers) Danube.
4 <2 ai Rhine.
active 4
"""
        },
    ),
    "gemini_cli": (
        "gemini_cli",
        {
            "gm-1": """
1    human Name a river.
2 <1 ai (Rivers / Danube) calls web_search(query='river')
3 <2 tool Danube
4 <3 ai Danube.
5 <4 ~system Model switched.
6 <4 human How deep?
7 <6 ai 8 m.
8 <4 human How long?
9 <8 ai 2850 km.
active 9
"""
        },
    ),
    "vscode_chat": (
        "vscode",
        {
            "vs-1": """
1    human Name a river.
2 <1 ai Danube.
3 <2 human How long?
4 <3 ai 2850 km.
active 4
"""
        },
    ),
    "langgraph_history": ("langgraph", {"t": TURN}),
    "discord": (
        "discord",
        {
            "discord-2": """
1    Ann: Who feeds?
2    Bo: Lunch?
3 <1 Cy: I do.
active 3
"""
        },
    ),
    "slack": (
        "slack",
        {
            "slack-C1": """
1    Ann: Who feeds?
2 <1 U13: I do, @Ann.
3    ~U14: @U14 has joined
active 2
"""
        },
    ),
    "whatsapp": (
        "whatsapp_chat",
        {
            "whatsapp-chat": """
1    Ann: Who feeds?
2 <1 Cy: I do. / and tomorrow too
active 2
"""
        },
    ),
    "aider": (
        "aider",
        {
            "aider-2026-05-28 10:00:00": """
1    ~system aider --model gpt-5
2    human Name a river.
3 <2 ai Danube.
4 <3 ~system Tokens: 1k sent, 2 received.
5 <3 human How long?
6 <5 ai 2850 km.
active 6
"""
        },
    ),
    "nextchat": ("nextchat", {"nc-1": TURN}),
    "typingmind": ("typingmind", {"tm-1": TURN}),
    "continue": ("continue", {"ct-1": TURN}),
    "ai_sdk": (
        "ai_sdk",
        {
            "uimessages": """
1    human Name a river.
2 <1 ai (rivers) calls look(q='river')
3 <2 tool {"r": "Danube"}
4 <3 ai Danube.
active 4
"""
        },
    ),
    "llamaindex": ("llamaindex", {"user1": TURN}),
    "autogen": ("autogen", {"state": TURN}),
    "cline": (
        "cline",
        {
            "api_conversation_history": """
1    human Name a river.
2 <1 ai I look. calls read_file(path='a')
3 <2 tool Danube
active 3
"""
        },
    ),
}
"""For each file or folder: its format, and the tree of each of its conversations.

A line has the number of a node, the number of its parent, `~` for an aside, the role or the name of a person,
a thought in parentheses, the text, and tool calls.
"""


def line_of(node: ConversationNode) -> str:
    """A node as a line of an expected tree."""
    message: Any = node.message
    parent = "" if node.parent_id is None else f"<{node.parent_id}"
    mark = "~" if node.state is State.ASIDE else ""
    speaker = f"{message.name}:" if message.name and message.type == "human" else message.type
    thought = message.additional_kwargs.get("reasoning_content")
    calls = [
        f"calls {call['name']}({', '.join(f'{name}={value!r}' for name, value in call['args'].items())})"
        for call in getattr(message, "tool_calls", ())
    ]
    texts = [f"({thought})" if thought else "", message.text, *calls]
    text = " ".join(" / ".join(" ".join(filter(None, texts)).split("\n")).split()).replace("/ /", "/")
    return f"{node.id}{f' {parent}' if parent else '   '} {mark}{speaker} {text}".rstrip()


def tree_of(system: MemorySystem, name: str) -> str:
    """The tree of a conversation in the notation of the expected trees."""
    memory = system.conversation(name)
    history = memory.history
    last = memory.messages[-1].id
    [active] = [node.id for node in history if node.message.id == last and node.state is State.LIVE]
    return "\n".join(["", *map(line_of, history), f"active {active}", ""])


@pytest.mark.parametrize("file", TREES)
def test_a_file_becomes_the_tree_that_its_format_describes(file: str) -> None:
    format, trees = TREES[file]
    with MemorySystem(embeddings=False) as system:
        report = system.import_file(DATA / file)
        assert (report.format, report.skipped) == (format, 0)
        assert {name: tree_of(system, name) for name in system.conversations()} == trees
        again = system.import_file(DATA / file)
        assert (again.new_conversations, again.new_messages) == (0, 0)
        assert {name: tree_of(system, name) for name in system.conversations()} == trees
        assert system.verify().ok


@pytest.mark.parametrize("file", ["chatgpt/export-split.zip", "chatgpt/folder", "claude/export.zip"])
def test_an_archive_and_a_folder_have_the_trees_of_their_files(file: str) -> None:
    program = file.partition("/")[0]
    single = {
        name: tree
        for other, (_, trees) in TREES.items()
        if other.startswith((f"{program}/one-c-", f"{program}/one-k-"))
        for name, tree in trees.items()
    }
    with MemorySystem(embeddings=False) as system:
        system.import_file(DATA / file)
        assert {name: tree_of(system, name) for name in system.conversations()} == single


def test_a_folder_with_files_of_all_programs_is_one_import(system: MemorySystem, verbs: Any) -> None:
    report = verbs(system).import_file(DATA)
    formats = {format for format, _ in TREES.values()}
    assert set(report.format.split(", ")) == formats
    assert (report.skipped, report.ignored) == (0, (str(DATA / "llm" / "README.txt"),))
    again = verbs(system).import_file(DATA)
    assert (again.new_conversations, again.new_messages, again.messages) == (0, 0, report.messages)
    assert system.verify().ok


def check_prompt(messages: list[BaseMessage]) -> None:
    """Check a list against what all of OpenAI, Anthropic, Gemini and Mistral refuse."""
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        assert isinstance(message.content, str)
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls  # A result stands after its call.
            open_calls.remove(message.tool_call_id)
            assert message.name is None or NAME.fullmatch(message.name)
            continue
        assert not open_calls  # All results stand before the next message.
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        assert message.content.strip() or calls
        assert message.type in ("human", "ai")
        for call in calls:
            assert NAME.fullmatch(call["name"])
            assert ID.fullmatch(call["id"] or "")
            assert call["id"] not in seen
            seen.add(call["id"] or "")
            open_calls.append(call["id"] or "")
    assert not open_calls


@pytest.mark.parametrize("file", TREES)
def test_every_thread_of_an_imported_chat_is_a_valid_prompt(file: str) -> None:
    with MemorySystem(embeddings=False) as system:
        system.import_file(DATA / file)
        for name in system.conversations():
            memory = system.conversation(name)
            for thread in memory.threads():
                check_prompt([node.message for node in thread])
                memory.checkout(thread[-1].id)
                check_prompt(memory.messages)


@pytest.mark.parametrize("folder", ["imports", "import_variants"])
def test_every_provider_accepts_each_thread_of_an_imported_chat_and_a_question(folder: str) -> None:
    with MemorySystem(embeddings=False) as system:
        system.import_file(DATA.parent / folder)
        for name in system.conversations():
            memory = system.conversation(name, node_selector=LinearNodeSelector())
            for thread in memory.threads():
                memory.checkout(thread[-1].id)
                assert refusals(as_prompt([*memory.messages, HumanMessage("And now?")])) == {}, name
                memory.append("And now?")
                assert refusals(memory.messages) == {}, name


@pytest.mark.parametrize("file", TREES)
def test_the_request_that_openai_gets_of_an_imported_chat_has_text_and_calls_only(file: str) -> None:
    model = ChatOpenAI(model="any", api_key=SecretStr("none"))
    with MemorySystem(embeddings=False) as system:
        system.import_file(DATA / file)
        for name in system.conversations():
            payload = model._get_request_payload(system.conversation(name).messages)
            for message in payload["messages"]:
                assert isinstance(message["content"], str) or message.get("tool_calls")
                assert message.keys() <= {"role", "content", "name", "tool_calls", "tool_call_id"}

"""Import of rarer shapes of the files of programs: older versions, other programs' variants, several files.

Most files are synthetic, in the shapes that the importers name. openai-agents 0.24 wrote `agents_branches`,
chainlit 2.12.0 `chainlit` and opencode-ai 1.18.33 `opencode`: a database, and a conversation of it as JSON.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from test_import_formats import check_prompt, tree_of

from langchain_threadmem import MemorySystem

DATA = Path(__file__).parents[1] / "data" / "import_variants"

TREES: dict[str, tuple[str, dict[str, str]]] = {
    "agents_branches": (
        "agents_sdk",
        {
            "conv": """
1    human Q1
2 <1 ai (hm) calls look()
3 <2 tool R
4 <3 ai A1
5 <4 human Q2
6 <5 ai A2
7 <6 human Q3
8 <7 ai A3
9    human Q1x
active 8
""",
        },
    ),
    "ai_sdk_v4": (
        "ai_sdk",
        {
            "chat1": """
1    human Q
2 <1 ai calls look(q=1)
3 <2 tool R
4 <3 ai A
active 4
""",
        },
    ),
    "aistudio_branch": (
        "ai_studio",
        {
            "River": """
1    ~system Be
2    human Q
3 <2 ai (th) A
4 <3 human Q2
5 <4 ai A2
6 <3 human QB
7 <6 ai (hm) AB
active 7
""",
        },
    ),
    "autogen_team": (
        "autogen",
        {
            "team": """
1    human Q
2 <1 ai calls look()
3 <2 tool R
4 <3 ai A
active 4
""",
        },
    ),
    "big_agi": (
        "big_agi",
        {
            "c": """
1    human Q
2 <1 ai (hm) A
active 2
""",
            "d": """
1    human old
active 1
""",
        },
    ),
    "chainlit": (
        "chainlit",
        {
            "11111111-1111-1111-1111-111111111111": """
1    ada: Why is my bread flat?
2 <1 ai calls search(q='flat bread')
3 <2 tool Let it rise.
4 <3 ai It did not rise long enough.
active 4
""",
        },
    ),
    "chatgpt_more": (
        "chatgpt",
        {
            "g": """
1    human Hello there / [audio: file_00aa]
2 <1 ai Hi! / [audio: file_00bb]
3 <2 ~human zero weight
4 <2 Bo: Group hi
5 <4 ai (thinking out loud) calls container_exec(input='ls')
6 <5 tool files
7 <6 ai (S) Answer [T](https://t) with mark
8 <6 ai (S) Other answer
9 <7 ai Page / body / u
10 <9 human new text
11 <10 ~ai
12 <10 human after empty
active 12
""",
        },
    ),
    "cherry": (
        "cherry",
        {
            "t": """
1    human Q
2 <1 ai A1
3 <1 ai (hm) A2
4 <2 human Q2
active 4
""",
        },
    ),
    "claude_code_multi": (
        "claude_code",
        {
            "A": """
1    human Q1
2 <1 ai calls R() calls R()
3 <2 tool one
4 <3 tool two
5 <4 ai Done
6 <5 human [Request interrupted by user]
7    ~human sub
8    ~human agent q
9    ~ai agent a
active 6
""",
            "B": """
1    human Look / [image]
2 <1 ai Seen
active 2
""",
        },
    ),
    "claude_old": (
        "claude",
        {
            "k": """
1    human Pasted only
2 <1 ai calls a() calls b()
3 <2 tool rb
4 <3 tool ra
5 <4 ai A
6 <5 ~human
7 <5 human Q2
8 <7 ai (sum) kept words
active 8
""",
        },
    ),
    "codex_fork": (
        "codex",
        {
            "E": """
1    human EQ
2 <1 ai (th) EA
active 2
""",
            "P": """
1    human Q
2 <1 ai A
3 <2 ~system summary text
4 <2 human Q2
5 <4 ai A2
6 <2 human Other
7 <6 ai Oth
active 7
""",
        },
    ),
    "codex_old": (
        "codex",
        {
            "s1": """
1    human Q
2 <1 ai calls shell(command=['ls'])
3 <2 tool {"output":"a"}
4 <3 ai A
active 4
""",
        },
    ),
    "continue_tools": (
        "continue",
        {
            "s": """
1    human Q
2 <1 ai (hm) calls read(p=1)
3 <2 tool R
4 <3 ai A
active 4
""",
        },
    ),
    "copilot": (
        "copilot",
        {
            "0f6d1c7e-1": """
1    human How hot is the oven?
2 <1 ai (I look.) calls view(path='notes.md') calls bash(command='oven')
3 <2 tool not found
4 <3 tool 230 degrees
5 <4 ai It is 230 degrees.
6 <5 ~human The skill of bread
7 <5 ~system They spoke of the oven.
8 <5 human And for rye?
9 <8 ai 250 degrees.
active 9
""",
        },
    ),
    "deepseek_old": (
        "deepseek",
        {
            "x": """
1    human Q
2 <1 ai (think) A
3 <2 human Q2
4 <3 ai A2
active 4
""",
        },
    ),
    "deepseek_web": (
        "deepseek",
        {
            "s": """
1    human Q
2 <1 ai (hm) A
3 <1 ai B
4 <1 ai (t) C
active 3
""",
        },
    ),
    "design": (
        "claude",
        {
            "p": """
1    human Q
2 <1 ai (hm) calls draw(a=1)
3 <2 tool done
4 <3 ai A
active 4
""",
        },
    ),
    "discord_more": (
        "discord",
        {
            "discord-2": """
1    A: Q
2    ~a: Pinned a message.
3    ai fwd
4    c: R
active 4
""",
        },
    ),
    "element": (
        "element",
        {
            "element-!r:example.org": """
1    ~system m.room.member: join
2    ada: Why is my bread flat?
3    bob: Who has my keys?
4 <2 bob: It did not rise.
5 <3 ada: In a thread
6 <4 bob: [image: loaf.jpg]
7    ~ada:
8    ai Reminder: bake
active 8
""",
        },
    ),
    "gemini_json": (
        "gemini_cli",
        {
            "s": """
1    human Q
2 <1 ai A
active 2
""",
        },
    ),
    "gemini_repeat": (
        "gemini_cli",
        {
            "s2": """
1    human Q
2 <1 ai calls x()
3 <2 tool O
4 <3 ai A
5    human Other root
active 5
""",
        },
    ),
    "goose": (
        "goose",
        {
            "20260528_1": """
1    human How hot is the oven?
2 <1 ai (I look.) Let me look. calls shell(command='oven') calls shell(command='x')
3 <2 tool 230 degrees
4 <3 tool -32603: no
5 <4 ai It is 230 degrees.
6 <5 ~human Summary of all
7 <5 human [image] / And this one?
active 7
""",
        },
    ),
    "grok_chain": (
        "grok",
        {
            "c": """
1    human Q
2 <1 ai A
3 <2 ~ai
active 2
""",
        },
    ),
    "haystack": (
        "haystack",
        {
            "hs": """
1    ~system Be brief.
2    human Q
3 <2 ai x calls look(q=1)
4 <3 tool R
5 <4 ai (r) A
active 5
""",
        },
    ),
    "haystack_old": (
        "haystack",
        {
            "hs2": """
1    human Q
2 <1 ai A
active 2
""",
        },
    ),
    "hf_old": (
        "huggingchat",
        {
            "x1": """
1    human Q
2 <1 ai A
active 2
""",
        },
    ),
    "items_newest_first": (
        "openai_items",
        {
            "items": """
1    human Q
2 <1 ai (s) calls look(q=1) calls look()
3 <2 tool r
4 <3 tool r2
5 <4 ai A
active 5
""",
        },
    ),
    "jan": (
        "jan",
        {
            "t1": """
1    human Q
2 <1 ai A
active 2
""",
        },
    ),
    "langgraph_fork": (
        "langgraph",
        {
            "t": """
1    human Q
2 <1 ai A
3 <1 ai B
4    human Q edited
5 <4 ai C
active 5
""",
        },
    ),
    "librechat_tree": (
        "librechat",
        {
            "c": """
1    human Q
2 <1 ai A1
3 <1 ai A2
4 <3 human Q2
active 4
""",
        },
    ),
    "llm_old": (
        "llm",
        {
            "c1": """
1    ~system Be brief
2    human FRAG / Q
3 <2 ai calls look(a=1)
4 <3 tool res
5 <4 ai A
active 5
""",
        },
    ),
    "mistral": (
        "mistral",
        {
            "chat-9f": """
1    human Q
2 <1 ai A
3 <1 ai B
active 3
""",
        },
    ),
    "nextchat_tools": (
        "nextchat",
        {
            "s": """
1    human Q / [image]
2 <1 ai calls look()
3 <2 tool R
4 <3 ai A
active 4
""",
        },
    ),
    "oasst_flat": (
        "oasst",
        {
            "t1": """
1    human Q
2 <1 ai bad
3 <1 ai good
4 <3 human Q2
5 <3 ~human del
active 4
""",
        },
    ),
    "opencode": (
        "opencode",
        {
            "ses_0002abcdefghijklmnopqrstuv": """
1    human How hot is the oven in notes.md?
2 <1 ai (I look.) calls read(filePath='notes.md') calls bash(command='oven')
3 <2 tool 230 degrees
4 <3 tool not found
5 <4 ai It is 230 degrees.
6 <5 human Delete it
active 5
""",
        },
    ),
    "openwebui_db": (
        "openwebui",
        {
            "id1": """
1    human Q
2 <1 ai Text first calls get(a=1)
3 <2 tool 21
4 <3 ai after
5 <1 ~ai
active 1
""",
        },
    ),
    "semantic_kernel": (
        "semantic_kernel",
        {
            "sk": """
1    human Q
2 <1 ai calls geo-look(q=1)
3 <2 tool R
active 3
""",
        },
    ),
    "sharegpt_pieces": (
        "sharegpt",
        {
            "ab": """
1    human Q
2 <1 ai A
3 <2 human Q2
4 <3 ai A2
active 4
""",
            "fc": """
1    human Q
2 <1 ai calls look(q=1)
3 <2 tool obs
4 <3 ai A
active 4
""",
        },
    ),
    "silly_branch": (
        "sillytavern",
        {
            "Main": """
1    ai Hi
2 <1 human Q
3 <2 ai A
4 <1 Ada: Q2
5 <4 ai A2
6 <5 ai A3
active 6
""",
        },
    ),
    "slack_days": (
        "slack",
        {
            "slack-C1": """
1    Ann: Q & [link](https://x.y)
2 <1 U2: A
3    ai beep
active 3
""",
        },
    ),
    "telegram": (
        "telegram",
        {
            "telegram-5": """
1    Ann: Hi all
2    ~system pin_message
3 <1 Bo: Hey
4    human deleted account
active 4
""",
        },
    ),
    "typingmind_tools": (
        "typingmind",
        {
            "x": """
1    human Q
2 <1 ai A calls f()
3 <2 tool R
4 <3 ai B
active 4
""",
        },
    ),
    "vscode_log": (
        "vscode",
        {
            "x": """
1    human Q
2 <1 ai (hm) See `b.py` now.
3 <2 human Q3
4 <3 ai A3
active 4
""",
        },
    ),
}
"""For each folder: its format, and the tree of each of its conversations, as in `test_import_formats`."""


@pytest.mark.parametrize("folder", TREES)
def test_a_rarer_shape_becomes_the_tree_that_its_format_describes(folder: str, tmp_path: Path) -> None:
    format, trees = TREES[folder]
    files = tmp_path / folder
    shutil.copytree(DATA / folder, files)
    for path in files.rglob("*"):  # Messages without times have the time of their file.
        os.utime(path, (1_790_000_000, 1_790_000_000))
    with MemorySystem(embeddings=False) as system:
        report = system.import_file(files)
        assert (report.format, report.skipped, report.ignored) == (format, 0, ())
        assert {name: tree_of(system, name) for name in system.conversations()} == trees
        again = system.import_file(files)
        assert (again.new_conversations, again.new_messages) == (0, 0)
        for name in trees:
            for thread in system.conversation(name).threads():
                check_prompt([node.message for node in thread])
        assert system.verify().ok

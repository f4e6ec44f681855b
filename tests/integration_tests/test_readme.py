"""Each Python block of README.md and docs/ runs, and prints the output shown below it.

A block that needs a server which the tests do not have stands below a comment `<!-- not run: ... -->`; it is
compiled only. Blocks with `postgresql://app@localhost/chats` run on a database with row-level security.
"""

from __future__ import annotations

import inspect
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from conftest import secured_database
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

import langchain_threadmem
from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.formats.exporters import formats
from langchain_threadmem.formats.importers import registry
from langchain_threadmem.storage import schema

ROOT = Path(__file__).parents[2]
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
NAMES = ("README.md", "CONTRIBUTING.md", "RELEASING.md", *DOCS)
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
PYTHON = re.compile(
    r"^(?P<unused><!-- not run: .*? -->\n\n?)?"
    r"```python\n(?P<source>.*?)^```\n(?:\n```(?:text|mermaid)\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
RECIPES = [name for name in DOCS if name.startswith("docs/extend/") and "```python" in PAGES[name]]
"""Pages whose blocks contain tests, which run with the fixtures of this folder."""
PROGRAMS = ["README.md", *(name for name in DOCS if "```python" in PAGES[name] and name not in RECIPES)]


# Threads are selected by meaning, so each answer has to match the topic of its question.
ANSWERS = {
    "How do I read a CSV file in Python?": "Use the csv module, or pandas.read_csv for tables.",
    "My sourdough bread comes out flat. Why?": "The dough probably did not ferment long enough.",
    "And how do I skip the header row of the file?": "Call next(reader) once before the loop.",
}


# The values of the arguments of tool calls, by name.
VALUES = {
    "selected_node_id": None,
    "reasoning": "It is about something else.",
    "title": "Bread",
    "summary": "It needs time.",
    "path": "/",
}


class FakeOpenAI(BaseChatModel):
    """Answers a question, or calls the tool that it is given."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        return self.bind(form=convert_to_openai_tool(tools[0])["function"])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        question = str(messages[-1].content)
        answer = AIMessage(ANSWERS.get(question, "Hello from the model."))
        form = options.get("form")
        if form and messages[-1].type != "tool":
            values = {**VALUES, "query": question}
            args = {name: values[name] for name in form["parameters"]["properties"]}
            answer = AIMessage("", tool_calls=[{"name": form["name"], "args": args, "id": "call"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Block(NamedTuple):
    """A Python block of a page, with the output that is shown right after it."""

    source: str
    line: int
    shown: str | None
    runs: bool


def blocks(page: str) -> Iterator[Block]:
    text = PAGES[page]
    for found in PYTHON.finditer(text):
        line = text.count("\n", 0, found.start("source"))
        yield Block(found["source"], line, found["shown"], found["unused"] is None)


def run_blocks(
    page: str, capsys: pytest.CaptureFixture[str], replaced: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The names that the blocks of a page define; `replaced` are the URLs of servers."""
    names: dict[str, Any] = {"__name__": page}
    for block in blocks(page):
        source = block.source
        for url, real in replaced.items():
            source = source.replace(url, real)
        code = compile("\n" * block.line + source, ROOT / page, "exec", dont_inherit=True)
        if not block.runs:
            continue
        with warnings.catch_warnings(record=True):  # LangChain warns about deprecated classes.
            exec(code, names)
        printed = capsys.readouterr().out
        if block.shown is not None:
            assert printed == block.shown, block.source
    return names


@pytest.fixture
def replaced(request: pytest.FixtureRequest, page: str) -> Iterator[dict[str, str]]:
    """The URLs of a real server for those that the blocks of a page name."""
    if not any("postgresql://" in block.source for block in blocks(page) if block.runs):
        yield {}
        return
    with secured_database(request.getfixturevalue("postgres_url")) as secured:
        yield {
            "postgresql://admin@localhost/chats": secured.owning,
            "postgresql://app@localhost/chats": secured.restricted,
        }


@pytest.mark.slow
@pytest.mark.parametrize("page", PROGRAMS)
def test_the_blocks_of_a_page_run_in_order_and_print_the_shown_output(
    page: str,
    replaced: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("langchain_openai.ChatOpenAI", FakeOpenAI)
    names = run_blocks(page, capsys, replaced)
    for value in names.values():
        if isinstance(value, MemorySystem):
            value.close()


@pytest.mark.parametrize("page", RECIPES)
def test_the_examples_of_extensions_pass_their_tests(
    page: str,
    system: MemorySystem,
    verbs: Callable[[ChatMemory], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fixtures = {"system": system, "verbs": verbs, "tmp_path": tmp_path, "monkeypatch": monkeypatch}
    monkeypatch.setattr(formats, "_FORMATS", dict(formats._FORMATS))
    monkeypatch.setattr(registry, "FORMATS", registry.FORMATS)
    names = run_blocks(page, capsys)
    tests = [names[name] for name in names if name.startswith("test_")]
    assert tests or page == "docs/extend/verb.md"
    for test in tests:
        test(**{name: fixtures[name] for name in inspect.signature(test).parameters})


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_prints_is_followed_by_its_output(page: str) -> None:
    silent = [block.source for block in blocks(page) if "print(" in block.source and block.shown is None]
    assert silent == []


def test_few_blocks_of_the_documentation_are_not_run() -> None:
    unused = [(page, block.line) for page in PAGES for block in blocks(page) if not block.runs]
    assert len(unused) <= 4, unused


@pytest.mark.parametrize("page", [*PROGRAMS, *RECIPES])
def test_each_block_is_short(page: str) -> None:
    longest = 12 if page == "README.md" else 32 if page in RECIPES else 20
    assert max(len(block.source.splitlines()) for block in blocks(page)) <= longest


@pytest.mark.parametrize("page", PAGES)
def test_all_links_to_files_are_valid(page: str) -> None:
    folder = (ROOT / page).parent
    targets = re.findall(
        r"\]\((?!https?:|#)([^)#]+)", re.sub(r"^```.*?^```", "", PAGES[page], flags=re.M | re.S)
    )
    assert [target for target in targets if not (folder / target).is_file()] == []


def test_the_readme_is_a_short_introduction() -> None:
    assert PAGES["README.md"].count("\n") <= 300


def test_the_navigation_of_the_site_has_every_page_once() -> None:
    site = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    assert sorted(f"docs/{page}" for page in re.findall(r'"([^"]+\.md)"', site)) == DOCS


def test_the_reference_describes_every_public_name() -> None:
    reference = "".join(text for name, text in PAGES.items() if name.startswith("docs/api/"))
    described = set(re.findall(r"^::: langchain_threadmem\.(\w+)$", reference, re.MULTILINE))
    assert described - {"errors"} == set(langchain_threadmem.__all__)


def test_the_page_on_storage_has_every_table_once() -> None:
    rows = re.findall(r"^\| (`.*`) \|", PAGES["docs/concepts/storage.md"], re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    tables = [*schema.metadata.tables, schema.LEXICON]
    assert sorted(listed) == sorted(name.removeprefix("threadmem_") for name in tables)


def test_the_drawing_of_the_rooms_has_every_folder_and_module_of_the_package() -> None:
    package = ROOT / "langchain_threadmem"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    modules = {path.stem for path in package.glob("*.py") if not path.name.startswith("__")}
    drawing = PAGES["CONTRIBUTING.md"].split("```mermaid")[1].split("```")[0]
    assert sorted((folders | modules) - set(re.findall(r"\w+", drawing))) == []


def test_contributing_is_short() -> None:
    assert len(PAGES["CONTRIBUTING.md"].encode()) <= 6144


def test_the_picture_is_valid_svg_and_shows_the_sample() -> None:
    picture = ET.parse(ROOT / "docs" / "tree.svg").getroot()
    words = "".join(picture.itertext())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "sourdough" in words
    assert "Lisbon" in words

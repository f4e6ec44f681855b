"""The files of a release agree with the package, and the examples for LangChain's documentation run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from packaging.requirements import Requirement
from packaging.version import Version

import langchain_threadmem

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = ["AGENTS.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md"]
FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place_and_the_changelog_begins_with_it() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "langchain_threadmem/__init__.py"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+?)\] - (unreleased|\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    assert newest
    assert newest[1] == langchain_threadmem.__version__


def test_the_tests_of_the_lowest_versions_have_the_lower_bounds_of_the_project() -> None:
    pinned = {
        Requirement(line).name: Version(line.partition("==")[2])
        for line in (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    }
    extras = PROJECT["project"]["optional-dependencies"]
    lists = [PROJECT["project"]["dependencies"], *(extras[name] for name in extras if name != "all")]
    for requirement in (Requirement(line) for required in lists for line in required):
        lowest = pinned[requirement.name]
        assert lowest in requirement.specifier, requirement
        if requirement.name.startswith(("lang", "chromadb", "sqlalchemy", "numpy")):
            # Another package may need a newer patch. Of other packages, the extras need newer versions.
            bounds = [Version(bound.version) for bound in requirement.specifier if bound.operator == ">="]
            assert [lowest.release[:2]] == [bound.release[:2] for bound in bounds], requirement


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_to_files_or_to_the_repository(page: str) -> None:
    repository = PROJECT["project"]["urls"]["Homepage"]
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    files = [target for target in targets if not target.startswith("https:")]
    ours = [target for target in targets if "threadmem" in target and target.startswith("https:")]
    assert [target for target in files if not (ROOT / target).exists()] == []
    assert all(target.startswith(repository) for target in ours)


def test_agents_names_places_that_exist() -> None:
    page = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:langchain_threadmem|tests|training|benchmarks|docs)/[\w./]*)`", page)
    assert len(paths) >= 6
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_the_fields_that_github_requires(form: Path) -> None:
    fields = read(form)
    assert {"name", "description", "body"} <= set(fields)
    assert {field["type"] for field in fields["body"]} <= {"textarea", "input", "dropdown"}
    assert all(field["attributes"]["label"] for field in fields["body"])
    ids = [field["id"] for field in fields["body"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_its_actions_and_has_few_rights(workflow: Path) -> None:
    jobs = read(workflow)["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    assert [action for action in used if not re.search(r"@(v\d+|release/v\d+)$", action)] == []
    assert read(workflow)["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 90 for job in jobs.values())


@pytest.mark.parametrize("page", ["middleware", "retriever"])
def test_the_examples_for_the_documentation_of_langchain_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = ["Use the csv module.", "The dough did not ferment long enough.", "Call next(reader) once."]
    model = GenericFakeChatModel(messages=map(AIMessage, answers))
    monkeypatch.setattr("langchain_openai.ChatOpenAI", lambda **_: model)
    text = (ROOT / "docs" / "langchain" / f"{page}.mdx").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for source in re.findall(r"^```python.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(source, page, "exec"), names)
    names["system"].close()
    assert ("returns to" if page == "middleware" else "dough") in capsys.readouterr().out

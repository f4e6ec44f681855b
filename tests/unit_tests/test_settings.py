"""Settings: defaults, arguments and files; errors name the setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from langchain_threadmem import MemorySettings, MemorySystem
from langchain_threadmem.errors import InputError, PersistenceError

FILES = {
    "memory.toml": "max_group_size = 7\nforget_percentage = 0.5\nsearch_range = [0.5]\n",
    "memory.yaml": "max_group_size: 7\nforget_percentage: 0.5\nsearch_range: [0.5, null]\n",
    "memory.yml": "{max_group_size: 7, forget_percentage: 0.5, search_range: [0.5]}",
    "memory.json": '{"max_group_size": 7, "forget_percentage": 0.5, "search_range": [0.5, null]}',
}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_r32_the_defaults_are_those_of_the_seeds() -> None:
    assert MemorySettings().model_dump() == {
        "context_depth": 5,
        "max_context_length": 10,
        "saving_interval": 20,
        "visit_update_interval": 20,
        "max_units": 20_000,
        "forget_percentage": 0.10,
        "max_group_size": 60,
        "max_token_count": 2000,
        "stm_capacity": 200,
        "stm_threshold": 0.8,
        "embedding_history_length": 1,
        "k_limit": 5,
        "search_range": (None, None),
        "recall_context": True,
        "add_ltm_to_stm": True,
        "query_external_first": True,
    }


def test_each_field_has_a_sentence() -> None:
    source = Path(str(__import__("langchain_threadmem.settings", fromlist=["_"]).__file__)).read_text()
    for name in MemorySettings.model_fields:
        described = source.split(f"\n    {name}: ")[1].split("\n", 1)[1].lstrip()
        assert described.startswith('"""')
        assert described.split('"""')[1].endswith(".")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_each_kind_is_read(name: str, tmp_path: Path) -> None:
    settings = MemorySettings.from_file(written(tmp_path, name, FILES[name]))
    assert settings == MemorySettings(max_group_size=7, forget_percentage=0.5, search_range=(0.5, None))


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    for name in ("memory.yaml", "memory.toml"):
        assert MemorySettings.from_file(written(tmp_path, name, "")) == MemorySettings()


def test_what_was_dumped_is_read_back(tmp_path: Path) -> None:
    settings = MemorySettings(search_range=(None, 0.5), k_limit=2)
    path = written(tmp_path, "memory.json", settings.model_dump_json())
    assert MemorySettings.from_file(path) == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("forget_percentage", 1.5),
        ("forget_percentage", -0.1),
        ("forget_percentage", float("nan")),
        ("max_group_size", 1),
        ("max_group_size", "7"),
        ("max_group_size", True),
        ("max_group_size", 2.5),
        ("stm_capacity", 0),
        ("recall_context", "yes"),
        ("search_range", [0.1, 0.2, 0.3]),
        ("search_range", [2, None]),
        ("search_range", "all"),
        ("context_depth", -1),
    ],
)
def test_a_wrong_value_is_named(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=name):
        MemorySettings(**{name: value})
    if not (isinstance(value, float) and value != value):
        path = written(tmp_path, "memory.json", json.dumps({name: value}))
        with pytest.raises(
            InputError, match=rf"memory\.json.*{name}.*{value if name != 'search_range' else ''}"
        ):
            MemorySettings.from_file(path)


def test_every_wrong_value_is_named_at_once() -> None:
    with pytest.raises(InputError, match=r"max_group_size=1: .*; k_limit='many': "):
        MemorySettings.of({"max_group_size": 1, "k_limit": "many"})


def test_an_unknown_field_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no setting 'max_groups'; the settings are context_depth, "):
        MemorySettings.of({"max_groups": 3})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("memory.ini", "", r"ends in \.toml, \.yaml, \.yml, \.json, not from"),
        ("memory.toml", "k_limit = ", "cannot be read"),
        ("memory.yaml", "k_limit: [", "cannot be read"),
        ("memory.json", "{", "cannot be read"),
        ("memory.json", "[1]", "cannot be used as settings"),
        ("memory.yaml", "1: 2", "cannot be used as settings"),
        ("memory.yaml", "!!python/object/apply:os.system ['true']", "cannot be read"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        MemorySettings.from_file(written(tmp_path, name, text))
    assert name in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        MemorySettings.from_file(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match=r"missing\.toml"):
        MemorySettings.from_file(tmp_path / "missing.toml")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        MemorySettings().k_limit = 3  # type: ignore[misc]


def test_a_system_takes_settings_in_any_form(tmp_path: Path) -> None:
    path = written(tmp_path, "memory.toml", "context_depth = 2")
    for given in (path, str(path), {"context_depth": 2}, MemorySettings(context_depth=2)):
        with MemorySystem(settings=given, embeddings=False) as system:
            assert system.settings == MemorySettings(context_depth=2)
            assert system.conversation("talk").context_depth == 2
            assert system.conversation("talk", context_depth=7).context_depth == 7
    with MemorySystem(embeddings=False) as system:
        assert system.settings == MemorySettings()


def test_a_system_with_wrong_settings_opens_no_database(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="k_limit"):
        MemorySystem(tmp_path / "memory.db", settings={"k_limit": 0})
    assert list(tmp_path.iterdir()) == []

"""The numbers of a memory, in one place: how much it keeps, shows, groups, finds and forgets.

They can be changed from arguments or from a file, so that a deployment is tuned without touching a program.
What is no number is passed where it is used: models, selectors, windows.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from langchain_threadmem.errors import InputError, PersistenceError


def _bounds(given: Any) -> Any:
    """A range as a pair; TOML has no null, so an upper end that is missing may be left out."""
    if given is None:
        return None, None
    return [*given, None, None][:2] if isinstance(given, list | tuple) and len(given) < 2 else given


# Strict: the text "10" or the word yes in a file is a slip, not a number.
Count = Annotated[int, Field(strict=True, ge=1)]
Amount = Annotated[int, Field(strict=True, ge=0)]
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Switch = Annotated[bool, Field(strict=True)]
Similarity = Annotated[float, Field(strict=True, ge=-1, le=1)]
Range = Annotated[tuple[Similarity | None, Similarity | None], BeforeValidator(_bounds)]


class MemorySettings(BaseModel):
    """How a `MemorySystem` behaves; frozen, and checked when it is made.

    The defaults are those of the programs this package takes after, but for `search_range`.

    Args:
        **data: The fields; those left out keep their defaults.

    Raises:
        InputError: A field is unknown, or a value is out of its range.

    Example:
        >>> settings = MemorySettings(max_group_size=20)
        >>> settings.max_group_size, settings.max_token_count
        (20, 2000)
        >>> MemorySettings(forget_percentage=15)
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: forget_percentage=15: Input should be less than or equal to 1
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    context_depth: Amount = 5
    """How many ancestors of a hit `retrieve` and `recall` return, unless a conversation says otherwise."""

    max_context_length: Count = 10
    """How many of a session's newest messages are its context, which `get_context` shows."""

    saving_interval: Count = 20
    """After how many additions the size of the memory is looked at; what is added is stored at once."""

    visit_update_interval: Count = 20
    """After how many visited units their visits are written down."""

    max_units: Amount = 20_000
    """How many units are kept before the least important are forgotten; 0 for no limit."""

    forget_percentage: Fraction = 0.10
    """Which part of the units that may be forgotten goes at a time, from 0 (none) to 1 (all)."""

    max_group_size: Annotated[Count, Field(ge=2)] = 60
    """How many units one summary covers at most."""

    max_token_count: Count = 2000
    """How many tokens the units that one summary covers have at most."""

    stm_capacity: Count = 200
    """How many units short-term memory holds."""

    stm_threshold: Similarity = 0.8
    """From which cosine similarity on a unit in short-term memory comes before those in long-term memory."""

    embedding_history_length: Count = 1
    """How many messages are embedded together: each with those before it in its thread, or 1 for it alone."""
    # Alone found most when it was measured, and is what recall and the choice of threads are fitted to. With
    # more, what is taken out of a conversation has the rest embedded anew, since vectors were made of it too.

    k_limit: Count = 5
    """How many hits a query returns at most, their neighbours not counted."""

    search_range: Range = (None, None)
    """Lowest and highest cosine similarity of a hit; null, or left out, for no limit on that side. By default
    there is none, and a query ranks as `recall` does, by words and meaning; MemForest's was (0.75, None)."""

    recall_context: Switch = True
    """Whether a hit comes with the message before and the message after it."""

    add_ltm_to_stm: Switch = True
    """Whether what was found in long-term memory enters short-term memory."""

    query_external_first: Switch = True
    """Whether hits in external collections come before one's own."""

    if not TYPE_CHECKING:  # Type checkers know the fields.

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise InputError("; ".join(_explained(one) for one in error.errors())) from None

    @classmethod
    def from_file(cls, path: str | Path) -> MemorySettings:
        """Read settings from a file; what it does not name keeps its default.

        Args:
            path: A `.toml`, `.yaml`, `.yml` or `.json` file with a value for each field, on one level.

        Raises:
            PersistenceError: The file cannot be read.
            InputError: It is no such file, a field is unknown, or a value is out of its range.
        """
        file = Path(path)
        parse = _PARSERS.get(file.suffix.lower())
        if parse is None:
            raise InputError(f"settings are read from a file that ends in {_ENDINGS}, not from {str(path)!r}")
        try:
            found = parse(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise PersistenceError(
                f"cannot read settings from {str(path)!r}: {error.strerror}; check the path"
            ) from error
        except (ValueError, yaml.YAMLError, RecursionError) as error:
            raise InputError(
                f"the settings in {str(path)!r} cannot be read: {error}; correct the file"
            ) from error
        try:
            return cls.of({} if found is None else found)
        except InputError as error:
            raise InputError(f"in the settings file {str(path)!r}: {error}") from None

    @classmethod
    def of(cls, given: MemorySettings | Mapping[str, Any] | str | Path | None) -> MemorySettings:
        """Settings in any form in which they can be passed.

        Args:
            given: Settings, a mapping of fields to values, the path of a file, or `None` for the defaults.

        Raises:
            PersistenceError: The file cannot be read.
            InputError: It is none of these, a field is unknown, or a value is out of its range.

        Example:
            >>> MemorySettings.of({"k_limit": 3}).k_limit
            3
        """
        if isinstance(given, MemorySettings):
            return given
        if isinstance(given, str | Path):
            return cls.from_file(given)
        if given is None:
            return cls()
        if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
            return cls(**given)
        raise InputError(
            f"{given!r} is no settings; pass MemorySettings, a mapping of fields to values, or a file's path"
        )


def _yaml(text: str) -> Any:
    # A few lines of aliases may stand for gigabytes, and settings need none.
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
        raise ValueError("an alias (*name) is not read, write its value out")
    return yaml.safe_load(text)


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": json.loads,
}
_ENDINGS = ", ".join(_PARSERS)


def _explained(error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"there is no setting {name!r}; the settings are {', '.join(MemorySettings.model_fields)}"
    return f"{name}={error['input']!r:.200}: {error['msg']}"

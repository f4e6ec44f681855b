"""`MemorySettings`: the numbers of a memory, such as limits, thresholds and group sizes.

Settings are read from arguments or from a file. Objects such as models, selectors and windows are passed to
the classes that use them.
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
    """A range as a pair; TOML has no null, so missing bounds may be omitted."""
    if given is None:
        return None, None
    return [*given, None, None][:2] if isinstance(given, list | tuple) and len(given) < 2 else given


# Strict: the text "10" or the word yes in a file is a mistake.
Count = Annotated[int, Field(strict=True, ge=1)]
Amount = Annotated[int, Field(strict=True, ge=0)]
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Switch = Annotated[bool, Field(strict=True)]
Similarity = Annotated[float, Field(strict=True, ge=-1, le=1)]
SimilarityRange = Annotated[tuple[Similarity | None, Similarity | None], BeforeValidator(_bounds)]


class MemorySettings(BaseModel):
    """The settings of a `MemorySystem`; immutable and validated.

    The defaults are those of the original designs, except `search_range` (see `docs/decisions.md`).

    Args:
        **data: The fields; omitted fields have their defaults.

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
    """The default number of ancestors that `retrieve` and `recall` return with a hit."""

    max_context_length: Count = 10
    """The number of newest messages of a session that `get_context` returns."""

    saving_interval: Count = 20
    """The number of additions between two checks of the memory size. Each addition is stored at once."""

    visit_update_interval: Count = 20
    """The number of visited units after which visits are written."""

    max_units: Amount = 20_000
    """The number of units above which the least important units are forgotten; 0 for no limit."""

    forget_percentage: Fraction = 0.10
    """The share of the forgettable units that one pass forgets, from 0 to 1."""

    max_group_size: Annotated[Count, Field(ge=2)] = 60
    """The maximum number of units that one summary covers."""

    max_token_count: Count = 2000
    """The maximum number of tokens of the units that one summary covers."""

    stm_capacity: Count = 200
    """The capacity of short-term memory, in units."""

    stm_threshold: Similarity = 0.8
    """The cosine similarity from which units of short-term memory precede units of long-term memory."""

    embedding_history_length: Count = 1
    """The number of messages embedded together: a message with its predecessors in the thread; 1 for none."""
    # 1 gave the best results, and the weights of recall and of selection are fitted to it. With larger
    # numbers, the removal of a message requires new vectors of the messages after it.

    k_limit: Count = 5
    """The maximum number of hits of a query, without their neighbours."""

    search_range: SimilarityRange = (None, None)
    """The lowest and the highest cosine similarity of a hit; `None` for no bound. Without bounds, a query
    ranks by words and meaning, as `recall` does. The default of MemForest is (0.75, None)."""

    recall_context: Switch = True
    """Whether a hit is returned with the messages before and after it."""

    add_ltm_to_stm: Switch = True
    """Whether hits in long-term memory enter short-term memory."""

    query_external_first: Switch = True
    """Whether hits in external collections precede the others."""

    if not TYPE_CHECKING:  # Type checkers know the fields.

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise InputError("; ".join(_explained(each) for each in error.errors())) from None

    @classmethod
    def from_file(cls, path: str | Path) -> MemorySettings:
        """Read settings from a file; omitted fields have their defaults.

        Args:
            path: A `.toml`, `.yaml`, `.yml` or `.json` file with fields and values on one level.

        Raises:
            PersistenceError: The file cannot be read.
            InputError: The file has another format, a field is unknown, or a value is out of range.
        """
        file = Path(path)
        parse = _PARSERS.get(file.suffix.lower())
        if parse is None:
            raise InputError(f"settings are read from a file that ends in {_ENDINGS}, not from {str(path)!r}")
        try:
            data = parse(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise PersistenceError(
                f"cannot read settings from {str(path)!r}: {error.strerror}; check the path"
            ) from error
        except (ValueError, yaml.YAMLError, RecursionError) as error:
            raise InputError(
                f"the settings in {str(path)!r} cannot be read: {error}; correct the file"
            ) from error
        try:
            return cls.of({} if data is None else data)
        except InputError as error:
            raise InputError(f"in the settings file {str(path)!r}: {error}") from None

    @classmethod
    def of(cls, given: MemorySettings | Mapping[str, Any] | str | Path | None) -> MemorySettings:
        """Settings from any accepted form.

        Args:
            given: Settings, a mapping of fields to values, the path of a file, or `None` for the defaults.

        Raises:
            PersistenceError: The file cannot be read.
            InputError: The argument has another type, a field is unknown, or a value is out of range.

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
            f"{given!r} cannot be used as settings; pass MemorySettings, a mapping, or the path of a file"
        )


def _yaml(text: str) -> Any:
    # A few lines of aliases can expand to gigabytes.
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

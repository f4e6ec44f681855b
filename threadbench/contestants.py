"""The selectors of the tables, and selectors that are named on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from numpy.typing import NDArray

from langchain_threadmem import LLMNodeSelector, LocalEmbeddings, SemanticNodeSelector
from langchain_threadmem.engine.multilingual_embeddings import MultilingualEmbeddings
from langchain_threadmem.selection.selectors import FlowSelector
from threadbench.data import Conversation
from threadbench.protocol import Contestant

Floats = NDArray[np.float32]


class ContestantError(ValueError):
    """A selector that is named on the command line cannot be used."""


def always_last(tree: Any, message: BaseMessage) -> int | None:
    """Continue the last answer."""
    ends = tree.turn_ends()
    return ends[-1].id if ends else None


class Model(Protocol):
    """An embedding model that returns arrays."""

    def embed_array(self, texts: Sequence[str]) -> Floats:
        """The unit vectors of texts."""


class Nearest:
    """Continues the turn whose message or answer is nearest by embedding; only the first begins a thread.

    Args:
        model: The embedding model; each text is embedded once.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[str, Floats] = {}

    def select_parent(self, tree: Any, message: BaseMessage) -> int | None:
        """The end of the nearest turn."""
        ends = tree.turn_ends()
        if not ends:
            return None
        [asked] = self._embed([message.text])
        humans, answers = self._embed([end.human for end in ends]), self._embed([end.answer for end in ends])
        return int(ends[int(np.maximum(humans @ asked, answers @ asked).argmax())].id)

    def _embed(self, texts: list[str]) -> Floats:
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known |= zip(new, self._model.embed_array(new), strict=True)
        return np.array([self._known[text] for text in texts])


def nearest() -> Contestant:
    """The nearest turn, by the local model in English and by the multilingual model in other languages."""
    made: dict[bool, Nearest] = {}

    def make(one: Conversation) -> Nearest:
        english = one["language"] == "en"
        if english not in made:
            made[english] = Nearest(LocalEmbeddings() if english else MultilingualEmbeddings())
        return made[english]

    return Contestant("nearest", make)


ROWS: dict[str, Callable[[], Contestant]] = {
    "always-last": lambda: Contestant("always-last", lambda one: always_last),
    "nearest": nearest,
    "semantic-words": lambda: Contestant("semantic-words", lambda one: SemanticNodeSelector()),
    "semantic": lambda: Contestant("semantic", lambda one: SemanticNodeSelector(), embeddings=None),
}
"""The rows of the tables: two rules, and `SemanticNodeSelector` without and with embeddings."""


def language_model(name: str) -> Contestant:
    """`LLMNodeSelector` with a chat model, which is asked about every message but the first.

    A message about which the model gives no usable answer continues the last answer, and a warning is logged.

    Args:
        name: The model as `provider:name`, for `init_chat_model` of the package `langchain`.

    Raises:
        ContestantError: The provider or its package is missing, or it refuses the model.
    """
    from langchain.chat_models import init_chat_model  # Imported here, since it is an optional extra.

    try:
        model = init_chat_model(name, temperature=0)
    except Exception as error:  # Each provider raises errors of its own, for example for a missing key.
        raise ContestantError(f"{name!r}: {error}") from error
    selector = LLMNodeSelector(model, on_selection_failure="latest")
    return Contestant(name, lambda one: selector, embeddings=None)


def named(name: str) -> Contestant:
    """The selector or node with a name.

    Args:
        name: `module:attribute`. The attribute is a function of tree and message, an object with
            `select_parent`, a class of such objects, from which one is made for each conversation without
            arguments, a LangGraph node (a runnable), or a function of the state alone.

    Raises:
        ContestantError: There is no such module or attribute, or it is none of these.

    Example:
        >>> named("threadbench.contestants:always_last").is_node
        False
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError as error:
        raise ContestantError(f"{name!r}: {error}") from error
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ContestantError(f"{name!r}: {error}; write module:attribute") from error
    if inspect.isclass(found):
        if not hasattr(found, "select_parent"):
            raise ContestantError(f"{name!r} is a class without select_parent(tree, message)")
        flow = issubclass(found, FlowSelector)
        return Contestant(name, lambda one: found(), embeddings=None if flow else False)
    if hasattr(found, "select_parent"):
        flow = isinstance(found, FlowSelector)
        return Contestant(name, lambda one: found, embeddings=None if flow else False)
    if isinstance(found, Runnable):
        return Contestant(name, lambda one: found, is_node=True)
    if callable(found):
        taken = [one for one in inspect.signature(found).parameters.values() if one.default is one.empty]
        if len(taken) in (1, 2):
            return Contestant(name, lambda one: found, is_node=len(taken) == 1)
    raise ContestantError(
        f"{name!r} is neither a selector (a function of tree and message, or an object with select_parent) "
        "nor a LangGraph node (a runnable, or a function of the state)"
    )

"""A conversation whose messages go where a node selector says."""

from __future__ import annotations

from dataclasses import dataclass, field

from langchain_threadmem.threads.selectors import AnySelector, LinearNodeSelector
from langchain_threadmem.threads.tree_view import OnFailure
from langchain_threadmem.tree.conversation import Conversation


@dataclass
class ThreadedConversation(Conversation):
    """A conversation, its node selector and the options of selection; see `ChatMemory` for their meaning."""

    selector: AnySelector = field(default_factory=LinearNodeSelector)
    single_tree: bool = False
    on_selection_failure: OnFailure = "latest"

    @property
    def is_linear(self) -> bool:
        """Whether every message continues the last one."""
        return isinstance(self.selector, LinearNodeSelector)

"""The branch of a conversation that a run of a graph continues."""

from __future__ import annotations

from typing import NamedTuple


class Lineage(NamedTuple):
    """The branch that a run of a graph continues.

    Attributes:
        thread: The LangGraph thread of the run; empty if it has no name, or that of the conversation.
        rewound: Whether the caller named the checkpoint at which the run begins.
        replaced: Id of the message that the run replaces, from `ThreadMemSaver.fork`; empty if there is none.
    """

    thread: str = ""
    rewound: bool = False
    replaced: str = ""


NO_LINEAGE = Lineage()

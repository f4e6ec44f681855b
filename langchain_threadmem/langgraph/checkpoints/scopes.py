"""Scopes: the tree that stores the messages of a channel."""

from __future__ import annotations

import json

CONVERSATION_CHANNEL = "messages"
"""The channel of the root namespace that contains the messages of the conversation."""
START, ROOT = "__start__", "__root__"


def scope_of(ns: str, channel: str) -> str:
    """The scope of the tree that stores the messages of a channel; each channel has a different scope.

    Example:
        >>> scope_of("", "messages"), scope_of("child:1", "notes")
        ('', '["child:1","notes"]')
    """
    if not ns and channel == CONVERSATION_CHANNEL:
        return ""
    return json.dumps([ns, channel], separators=(",", ":"))


def scope_within(ns: str, channel: str, key: str | None) -> str:
    """The scope for a list inside a value: of the channel that its key names, else of the value's channel."""
    return scope_of(ns, key if key is not None else ROOT if channel == START else channel)

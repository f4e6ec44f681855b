"""A griffe extension: methods that are made by `verb` and `averb`, and sections of examples."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
ASYNC_FORM = re.compile(r"averb\((\w+)\)")


class Verbs(griffe.Extension):
    """Shows a verb with the type that it returns, and without the repetition of its async form."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make a section of an example; griffe takes the singular for a note."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub("Examples:", obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Unwrap the flows of a class, and name async forms in the labels of their methods."""
        for name, member in list(cls.members.items()):
            if isinstance(member, griffe.Attribute) and (found := ASYNC_FORM.match(str(member.value))):
                cls.del_member(name)
                cls.members[found[1]].labels.add(f"async: {name}")
            elif isinstance(member, griffe.Function) and _is_verb(member):
                flow = member.returns
                if isinstance(flow, griffe.ExprSubscript):
                    member.returns = flow.slice


def _is_verb(function: griffe.Function) -> bool:
    return any(str(decorator.value) == "verb" for decorator in function.decorators)

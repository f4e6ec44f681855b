"""Type variables of generic functions and classes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ParamSpec, TypeVar

T = TypeVar("T")
"""Any type: an element or a result."""
V = TypeVar("V")
"""The type of the values of a mapping."""
K = TypeVar("K", bound=Hashable)
"""The type of the keys of a mapping."""
P = ParamSpec("P")
"""The parameters of a function that is passed."""

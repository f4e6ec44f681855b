"""SQL expressions for filter conditions, as far as SQL can evaluate them.

What SQL cannot say exactly as `filters.conditions` does (a key of a dictionary, a pattern, the order of
texts, which depends on a server's language) is left out, so the rows that come back are asked again
in Python. Values are bound, and columns come from a table of the caller's: nothing of a
filter is ever text of a statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, and_, literal_column, not_, or_

from langchain_threadmem.filters.conditions import ORDER, Comparison, Condition, Either, Every, Inverse, Kind

_LARGEST = (1 << 63) - 1
_INSTANT = 1e-5
"""Seconds by which a time may differ from what is stored of it: microseconds are rounded."""
_MOST = 500
"""Operands of one list that are bound."""
_NEVER: ColumnElement[bool] = literal_column("1 = 0")

Columns = Mapping[str, ColumnElement[Any]]
"""The columns of fields; times are seconds since 1970."""


class _Part(NamedTuple):
    """What SQL can say of a condition, and whether that is all of it."""

    element: ColumnElement[bool]
    exact: bool


def where(condition: Condition | None, columns: Columns) -> list[ColumnElement[bool]]:
    """What to add to a WHERE so that few rows come back that a condition does not want.

    Args:
        condition: As `filters.conditions.parse` gives it.
        columns: The fields that are columns; others are left to Python.

    Returns:
        One element, or none if SQL can say nothing.

    Example:
        >>> from sqlalchemy import column
        >>> from langchain_threadmem.filters.conditions import parse
        >>> fields = {"rank": Kind.NUMBER, "source": Kind.TEXT}
        >>> condition = parse({"rank": {"$gt": 0}, "source": {"$like": "a%"}}, fields)
        >>> [str(part) for part in where(condition, {"rank": column("rank")})]
        ['rank IS NOT NULL AND rank > :rank_1']
    """
    part = None if condition is None else _part(condition, columns)
    return [] if part is None else [part.element]


def _part(condition: Condition, columns: Columns) -> _Part | None:
    match condition:
        case Comparison():
            return _comparison(condition, columns)
        case Every(parts):
            found = [_part(part, columns) for part in parts]
            known = [part for part in found if part is not None]
            if not known:
                return None
            exact = len(known) == len(found) and all(part.exact for part in known)
            return _Part(and_(*(part.element for part in known)), exact)
        case Either(parts):
            found = [_part(part, columns) for part in parts]
            known = [part for part in found if part is not None]
            if len(known) < len(found):
                return None
            return _Part(or_(*(part.element for part in known)), all(part.exact for part in known))
        case Inverse(part):
            inner = _part(part, columns)
            return _Part(not_(inner.element), True) if inner is not None and inner.exact else None
    return None


def _comparison(condition: Comparison, columns: Columns) -> _Part | None:
    column = columns.get(condition.path[0])
    if column is None or len(condition.path) > 1:
        return None
    operand, operator = condition.operand, condition.operator
    operands = operand if operator in ("$in", "$nin") else (operand,)
    if condition.kind is Kind.TIME:
        return _time(column, operator, operand)
    if condition.kind is Kind.FLAG or len(operands) > _MOST or not all(map(_is_bindable, operands)):
        return None
    there = column.is_not(None)
    values = [value for value in operands if value is not None]
    match operator:
        case "$eq" | "$in":
            # Written out: a list that SQLAlchemy expands needs all values of the statement at once.
            known = and_(there, or_(_NEVER, *(column == value for value in values)))
            return _Part(known if None not in operands else or_(column.is_(None), known), True)
        case "$ne" | "$nin":
            return _Part(and_(there, *(column != value for value in values)), True)
        case "$gt" | "$gte" | "$lt" | "$lte" if condition.kind is Kind.NUMBER:
            compared = cast("ColumnElement[bool]", ORDER[operator](column, operand))
            return _Part(and_(there, compared), True)
    return None


def _time(column: ColumnElement[Any], operator: str, operand: Any) -> _Part | None:
    if not isinstance(operand, datetime):
        return None
    seconds = operand.timestamp()
    match operator:
        case "$eq":
            return _Part(column.between(seconds - _INSTANT, seconds + _INSTANT), False)
        case "$gt" | "$gte":
            return _Part(column >= seconds - _INSTANT, False)
        case "$lt" | "$lte":
            return _Part(column <= seconds + _INSTANT, False)
    return None


def _is_bindable(value: object) -> bool:
    """Whether both databases take a value as it is; they compare no others."""
    if value is None:
        return True
    if isinstance(value, int):
        return -_LARGEST <= value <= _LARGEST
    return isinstance(value, str) and "\0" not in value and value.encode(errors="ignore").decode() == value

"""SQL: the part of a condition that a database can evaluate.

Conditions that SQL cannot evaluate exactly like `common.filters.conditions` (on a key of a dictionary, a
pattern, or the order of texts, which depends on the locale of the server) are omitted, so the caller
evaluates the whole condition on the returned rows. Values are bound, and the caller provides the columns: no
text of a filter is part of a statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, and_, literal_column, not_, or_

from langchain_threadmem.common.filters.conditions import (
    ORDER,
    Comparison,
    Condition,
    Either,
    Every,
    FieldType,
    Inverse,
)

_MAX_INTEGER = (1 << 63) - 1
_TIME_TOLERANCE = 1e-5
"""The tolerance of times in seconds, since stored microseconds are rounded."""
_MAX_OPERANDS = 500
"""The maximum number of operands of a list that are bound."""
_FALSE: ColumnElement[bool] = literal_column("1 = 0")

Columns = Mapping[str, ColumnElement[Any]]
"""The columns of fields; times are in seconds since 1970."""


class _SqlCondition(NamedTuple):
    """The SQL expression of a condition, and whether it is equivalent to the condition."""

    element: ColumnElement[bool]
    exact: bool


def where(condition: Condition | None, columns: Columns) -> list[ColumnElement[bool]]:
    """The WHERE clause that selects the rows of a condition, and possibly more rows.

    Args:
        columns: The fields that are columns; conditions on other fields are omitted.

    Returns:
        One expression; an empty list if SQL cannot evaluate any part of the condition.

    Example:
        >>> from sqlalchemy import column
        >>> from langchain_threadmem.common.filters.conditions import parse
        >>> fields = {"rank": FieldType.NUMBER, "source": FieldType.TEXT}
        >>> condition = parse({"rank": {"$gt": 0}, "source": {"$like": "a%"}}, fields)
        >>> [str(part) for part in where(condition, {"rank": column("rank")})]
        ['rank IS NOT NULL AND rank > :rank_1']
    """
    part = None if condition is None else _part(condition, columns)
    return [] if part is None else [part.element]


def _part(condition: Condition, columns: Columns) -> _SqlCondition | None:
    match condition:
        case Comparison():
            return _comparison(condition, columns)
        case Every(parts):
            elements = [part for part in (_part(part, columns) for part in parts) if part is not None]
            if not elements:
                return None
            exact = len(elements) == len(parts) and all(part.exact for part in elements)
            return _SqlCondition(and_(*(part.element for part in elements)), exact)
        case Either(parts):
            elements = [part for part in (_part(part, columns) for part in parts) if part is not None]
            if len(elements) < len(parts):
                return None
            return _SqlCondition(
                or_(*(part.element for part in elements)), all(part.exact for part in elements)
            )
        case Inverse(part):
            inner = _part(part, columns)
            return _SqlCondition(not_(inner.element), True) if inner is not None and inner.exact else None
    return None


def _comparison(condition: Comparison, columns: Columns) -> _SqlCondition | None:
    column = columns.get(condition.path[0])
    if column is None or len(condition.path) > 1:
        return None
    operand, operator = condition.operand, condition.operator
    operands = operand if operator in ("$in", "$nin") else (operand,)
    if condition.kind is FieldType.TIME:
        return _time(column, operator, operand)
    if (
        condition.kind is FieldType.FLAG
        or len(operands) > _MAX_OPERANDS
        or not all(map(_is_bindable, operands))
    ):
        return None
    exists = column.is_not(None)
    values = [value for value in operands if value is not None]
    match operator:
        case "$eq" | "$in":
            # Not IN: a list that SQLAlchemy expands needs all values of the statement at once.
            matches = and_(exists, or_(_FALSE, *(column == value for value in values)))
            return _SqlCondition(matches if None not in operands else or_(column.is_(None), matches), True)
        case "$ne" | "$nin":
            return _SqlCondition(and_(exists, *(column != value for value in values)), True)
        case "$gt" | "$gte" | "$lt" | "$lte" if condition.kind is FieldType.NUMBER:
            compared = cast("ColumnElement[bool]", ORDER[operator](column, operand))
            return _SqlCondition(and_(exists, compared), True)
    return None


def _time(column: ColumnElement[Any], operator: str, operand: Any) -> _SqlCondition | None:
    if not isinstance(operand, datetime):
        return None
    seconds = operand.timestamp()
    match operator:
        case "$eq":
            return _SqlCondition(column.between(seconds - _TIME_TOLERANCE, seconds + _TIME_TOLERANCE), False)
        case "$gt" | "$gte":
            return _SqlCondition(column >= seconds - _TIME_TOLERANCE, False)
        case "$lt" | "$lte":
            return _SqlCondition(column <= seconds + _TIME_TOLERANCE, False)
    return None


def _is_bindable(value: object) -> bool:
    """Whether both databases store a value unchanged."""
    if value is None:
        return True
    if isinstance(value, int):
        return -_MAX_INTEGER <= value <= _MAX_INTEGER
    return isinstance(value, str) and "\0" not in value and value.encode(errors="ignore").decode() == value

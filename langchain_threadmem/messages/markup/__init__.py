"""Markup: Markdown and code as trees of elements."""

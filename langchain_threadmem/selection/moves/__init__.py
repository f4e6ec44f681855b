"""Moves of placed messages: by their answers, of whole conversations, and by hand."""

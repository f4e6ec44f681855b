"""Recall: search for messages and summaries."""

"""Summaries of messages, sessions and long-term memory."""

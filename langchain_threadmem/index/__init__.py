"""Indexes derived from messages, which can be built again."""

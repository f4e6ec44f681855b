"""Indexes that are derived from messages and can be rebuilt."""

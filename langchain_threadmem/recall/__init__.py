"""Recall: finding messages and summaries again."""

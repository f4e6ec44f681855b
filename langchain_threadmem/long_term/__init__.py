"""Long-term memory of one owner: sessions, queries, short-term memory."""

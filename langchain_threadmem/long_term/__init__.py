"""Memory of one owner: sessions, queries, short-term memory, external collections."""

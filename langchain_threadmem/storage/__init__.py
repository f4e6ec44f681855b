"""Databases: connections, transactions, statements, tables and encryption."""

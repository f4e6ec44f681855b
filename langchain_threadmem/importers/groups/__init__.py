"""Importers of group chats."""

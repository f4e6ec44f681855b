"""Importers: chats of other programs as conversations."""

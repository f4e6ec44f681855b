"""Importers of chats from other programs as conversations."""

"""Importers of chat programs."""

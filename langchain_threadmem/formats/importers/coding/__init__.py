"""Importers of coding agents and command lines."""

"""Importers of libraries and services for developers."""

"""Importers of data sets."""

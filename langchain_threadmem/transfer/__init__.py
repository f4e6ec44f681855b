"""Moving memories between databases."""

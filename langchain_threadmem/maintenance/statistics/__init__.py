"""Statistics: counts of an owner's data, and sizes of the database."""

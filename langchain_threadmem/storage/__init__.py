"""Everything that touches a database or an index."""

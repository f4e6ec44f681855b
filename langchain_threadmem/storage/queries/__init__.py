"""Every statement, as functions of an open transaction: `fn(conn, ...) -> values`."""

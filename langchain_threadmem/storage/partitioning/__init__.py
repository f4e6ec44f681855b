"""PostgreSQL databases whose tables are partitioned by conversation."""

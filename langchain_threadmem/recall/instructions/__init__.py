"""Standing instructions: how they are recognised in messages, and which hold in a memory."""

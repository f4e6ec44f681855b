"""Selection of the thread that a message continues."""

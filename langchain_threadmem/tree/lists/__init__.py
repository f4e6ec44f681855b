"""Lists of messages in the tree: the one rule for the lists of graphs, agents, histories and checkpoints."""

"""A node made of its parts: links, sessions, the space, the node's own session."""

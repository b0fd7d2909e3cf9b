"""The messages and addresses of the core services."""

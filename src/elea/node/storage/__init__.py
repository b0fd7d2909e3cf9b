"""What a broker keeps: storages over the node's own session. Only `settings` may be imported without pyarrow."""

"""uProtocol over Elea beside bare put and subscribe of eclipse-zenoh: `python -m bench.uprotocol`."""

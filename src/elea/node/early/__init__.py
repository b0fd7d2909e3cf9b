"""All that knows how nodes of the early dialects, `zenoh2018` and `xrce2017`, live in a node."""

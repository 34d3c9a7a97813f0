"""Sinks, to which rows of silver, gold and marts are sent: one module a kind of sink, and the contract that they keep."""

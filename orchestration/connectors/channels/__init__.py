"""Who is told about alerts, and how: one module a kind of channel, and the contract that they keep."""

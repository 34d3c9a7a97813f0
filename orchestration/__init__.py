"""The only place that reads, writes, starts, stops and schedules; the layers are pure functions that it wires together."""

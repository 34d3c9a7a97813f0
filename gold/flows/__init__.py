"""The kinds of flows, for whoever has no need of their declarations."""

TABLE_OF_FLOW = {
    "sessions": "sessions",
    "join": "pairs",
    "states": "states",
    "silence": "states",
    "distance": "measures",
    "duty_cycle": "measures",
    "counter": "measures",
}
"""The table of gold that each kind of flow writes, by its key in flows.yml."""

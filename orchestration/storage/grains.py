"""Grain of each table of the lake that readers see, in a sentence: what one row is."""

from orchestration.storage.views import View

WINDOW = "One closed window of one metric of one device in a group"
GRAINS = {
    "bronze.events": "One message received.",
    "silver.readings": "One accepted measurement.",
    "silver.quarantine": "One measurement, or one unreadable event, that breaks a rule.",
    "silver.without_measurements": "One event without any measurement.",
    "silver.late": "One accepted measurement that came behind the watermark, or was in quarantine.",
    "silver.duplicates": "One accepted measurement whose device, metric and event time another one had before.",
    "silver.devices": "One version of one device between two moves.",
    "silver.attributes": "One version of the attributes of one device or zone.",
    "gold.aggregates": f"{WINDOW}, in its newest revision.",
    "gold.aggregates_history": f"{WINDOW}, per revision.",
    "gold.vectors": "One entity of a group at one closed window, in its newest revision.",
    "gold.vectors_history": "One entity of a group at one closed window, per revision.",
    "gold.late": "One reading and one window of it that was closed for the group when it came.",
    "gold.anomalies": "One judged vector of an entity of a group, in its newest revision.",
    "gold.anomalies_history": "One judged vector of an entity of a group, per revision.",
    "gold.models": "One model of anomalies that was trained, is asked for, or came in force.",
    "gold.live": "One window of one metric of one device in a group that is open yet.",
    "gold.sessions": "One session of one device that has ended.",
    "gold.pairs": "Two readings that belong together, or one that found no partner in its range of time.",
    "gold.states": "One change of the state of one device.",
    "gold.measures": "One closed window of one device in which something is known.",
    "gold.alerts": "One change of state of one entity under one alert.",
}
"""Meanings of a row by SQL name; a view of one group or flow has that of its table."""
OF_TABLE = ("sessions", "pairs", "states", "measures")


def grain_of(view: View) -> str:
    """Return what a row of a view is; empty where nothing says so."""
    name = view.name.split(".", 1)[1]
    tables = (table for table in GRAINS if table.startswith("gold.") and view.name.startswith("gold."))
    of_kind = next((GRAINS[table] for table in tables if name.endswith(table.replace("gold.", "_"))), "")
    table = view.parts[0].location.name
    of_flow = GRAINS.get(f"gold.{table}", "") if table in OF_TABLE and not name.endswith("_visits") else ""
    return GRAINS.get(view.name) or of_flow or of_kind

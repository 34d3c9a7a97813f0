"""A plant whose conf changes, and the changes: each as conf/README.md has it in its table, with what becomes of it."""

from dataclasses import dataclass
from pathlib import Path

FILES = {
    "pipeline": "pipeline: plant\nlake: ./lake\npolicy: {lateness_seconds: 600}\nengine: {trigger_seconds: 0.2}\n",
    "sources": """sources:
  plant:
    path: ./landing
    settle_seconds: 0
    format: json
    device: {field: device}
    time: {field: ts}
    metric: {field: metric}
    value: {field: value}
    unit: {field: unit}
  rooms:
    path: ./rooms
    settle_seconds: 0
    format: json
    device: {field: room}
    time: {field: ts, format: "yyyy-MM-dd HH:mm"}
    metrics: {humidity: h}
""",
    "metrics": """metrics:
  temperature: {unit: degC, aggregation: average, step_seconds: 600}
  power: {aggregation: sum, step_seconds: 600}
  humidity: {aggregation: average, step_seconds: 600}
""",
    "devices": "devices:\n  oven: {groups: [kitchen]}\n  fridge: {groups: [kitchen]}\n  hall: {groups: [rooms], zone: east}\n",
    "groups": """groups:
  kitchen: {metrics: [temperature, power], vector: {features: [temperature, power]}}
  rooms: {metrics: [humidity], label: Rooms}
""",
    "rules": "rules:\n  is_cold: {holds: value < 500}\n",
    "flows": "flows:\n  heating: {group: kitchen, sessions: {metric: power, gap_seconds: 900}}\n",
    "alerts": 'alerts:\n  hot: {reading: temperature, when: value > 280, summary: "{entity} is hot"}\n',
}
ANNEX = "  annex: {path: ./annex, format: json, device: {field: d}, time: {field: t}, metrics: [power]}\n"
NOW, ALL, HELD, LAKE = "from now on", "for all after a replay", "not before a replay", "new lake"


@dataclass(frozen=True)
class ConfChange:
    """`edits`: by file, a text and what it becomes. `line`: what `check` says of it, after file and line."""

    title: str
    holds: str
    line: str
    edits: dict[str, tuple[str, str]]

    def apply(self, conf: Path) -> None:
        for name, (old, new) in self.edits.items():
            file = conf / f"{name}.yml"
            text = file.read_text(encoding="utf-8")
            assert old in text, f"{old!r} is not in {name}.yml"
            file.write_text(text.replace(old, new, 1), encoding="utf-8")


CHANGES = [
    ConfChange("a label", NOW, "rooms.label was Rooms, and is All rooms now", {"groups": ("label: Rooms", "label: All rooms")}),
    ConfChange(
        "the port of the page",
        NOW,
        "page.port was not set, and is 8700 now",
        {"pipeline": ("engine:", "page: {port: 8700}\nengine:")},
    ),
    ConfChange(
        "`lateness_seconds`", NOW, "policy.lateness_seconds was 600, and is 1200 now", {"pipeline": ("seconds: 600", "seconds: 1200")}
    ),
    ConfChange(
        "the summary of an alert",
        NOW,
        "hot.summary was {entity} is hot, and is {entity} has {value} now",
        {"alerts": ("{entity} is hot", "{entity} has {value}")},
    ),
    ConfChange("the zone of a device", NOW, "hall.zone was east, and is west now", {"devices": ("zone: east", "zone: west")}),
    ConfChange("a new device", NOW, "cellar is new", {"devices": ("devices:\n", "devices:\n  cellar: {groups: [rooms]}\n")}),
    ConfChange(
        "a new source",
        NOW,
        "annex is new",
        {"sources": ("sources:\n", f"sources:\n{ANNEX}")},
    ),
    ConfChange(
        "a source that is gone",
        NOW,
        "annex is gone",
        {"sources": (ANNEX, "")},
    ),
    ConfChange("a new rule", ALL, "is_warm is new", {"rules": ("rules:\n", "rules:\n  is_warm: {holds: value > -50}\n")}),
    ConfChange("a rule", ALL, "is_cold.holds was value < 500, and is value < 300 now", {"rules": ("value < 500", "value < 300")}),
    ConfChange(
        "a bound of a metric",
        ALL,
        "temperature.minimum was not set, and is 0.0 now",
        {"metrics": ("average, step_seconds: 600}\n  power", "average, step_seconds: 600, minimum: 0}\n  power")},
    ),
    ConfChange("a unit", ALL, "power.unit was not set, and is W now", {"metrics": ("power: {", "power: {unit: W, ")}),
    ConfChange(
        "a word for a value",
        ALL,
        "power.words.off was not set, and is 0.0 now",
        {"metrics": ("power: {", "power: {words: {'off': 0}, ")},
    ),
    ConfChange(
        "an aggregation type of which windows keep all that it needs",
        ALL,
        "temperature.aggregation was average, and is max now",
        {"metrics": ("degC, aggregation: average", "degC, aggregation: max")},
    ),
    ConfChange(
        "a time zone",
        ALL,
        "rooms.time.time_zone was not set, and is Europe/Berlin now",
        {"sources": ('HH:mm"}', 'HH:mm", time_zone: Europe/Berlin}')},
    ),
    ConfChange(
        "an attribute of readings",
        ALL,
        "plant.attributes.line was not set, and is line now",
        {"sources": ("    unit: {field: unit}\n", "    unit: {field: unit}\n    attributes: {line: line}\n")},
    ),
    ConfChange(
        "a new metric, of which a source has sent a field all the time",
        ALL,
        "co2 is new",
        {
            "metrics": ("metrics:\n", "metrics:\n  co2: {aggregation: max, step_seconds: 600}\n"),
            "sources": ("{humidity: h}", "{humidity: h, co2: c}"),
            "groups": ("metrics: [humidity]", "metrics: [humidity, co2]"),
        },
    ),
    ConfChange(
        "the group of a device",
        ALL,
        'fridge.groups was ["kitchen"], and is ["kitchen", "rooms"] now',
        {"devices": ("fridge: {groups: [kitchen]}", "fridge: {groups: [kitchen, rooms]}")},
    ),
    ConfChange(
        "a new group", ALL, "site is new", {"groups": ("groups:\n", "groups:\n  site: {metrics: [power, humidity], devices: ['*']}\n")}
    ),
    ConfChange(
        "a window",
        HELD,
        "temperature.step_seconds was 600, and is 300 now; not before a replay",
        {"metrics": ("max, step_seconds: 600, minimum", "max, step_seconds: 300, minimum")},
    ),
    ConfChange(
        "an aggregation type that needs more of each reading",
        HELD,
        "humidity.aggregation was average, and is median now; not before a replay",
        {"metrics": ("humidity: {aggregation: average", "humidity: {aggregation: median")},
    ),
    ConfChange(
        "the features of a vector",
        HELD,
        'kitchen.vector.features was ["temperature", "power"], and is ["temperature"] now; not before a replay',
        {"groups": ("features: [temperature, power]", "features: [temperature]")},
    ),
    ConfChange(
        "what becomes of late rows",
        HELD,
        "rooms.late was not set, and is keep_aside now; not before a replay",
        {"groups": ("label: All rooms", "label: All rooms, late: keep_aside")},
    ),
    ConfChange(
        "the stream of a group",
        HELD,
        "rooms.stream was rooms, and is halls now; not before a replay",
        {"groups": ("label: All rooms", "label: All rooms, stream: halls")},
    ),
    ConfChange(
        "a flow of flows.yml",
        HELD,
        "heating.sessions.gap_seconds was 900, and is 600 now; not before a replay",
        {"flows": ("gap_seconds: 900", "gap_seconds: 600")},
    ),
    ConfChange(
        "the name of the pipeline",
        LAKE,
        "pipeline was plant, and is site now",
        {"pipeline": ("pipeline: plant", "pipeline: site")},
    ),
]


def write_plant(folder: Path) -> Path:
    """The conf of the plant; returns its folder."""
    conf = folder / "conf"
    conf.mkdir()
    for name, text in FILES.items():
        (conf / f"{name}.yml").write_text(text, encoding="utf-8")
    for name in ("landing", "rooms", "annex"):
        (folder / name).mkdir()
    return conf

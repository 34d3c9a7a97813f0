"""Shapes to read hostile payloads with, and good payloads of each."""

from silver.spec import Origin, PayloadFormat, Time

LONG = PayloadFormat(
    "json",
    Origin(field="device"),
    Time("ts"),
    zone=Origin(field="zone"),
    metric=Origin(field="metric"),
    value="value",
    unit=Origin(field="unit"),
)
WIDE = {"temperature": "temp", "humidity": "hum", "power": "pow"}
SHAPES = {
    "long": LONG,
    "nested": PayloadFormat("json", Origin(field="d.id"), Time("at", "epoch_ms"), metrics={"temperature": "v.t", "humidity": "v.h"}),
    "list": PayloadFormat(
        "json", Origin(field="device"), Time("each.t", "epoch_s"), metric=Origin(field="each.n"), value="each.v", each="data.list"
    ),
    "wide list": PayloadFormat(
        "json", Origin(file_name=r"^(\w+)\."), Time("each.t", "epoch_us"), metrics={"temperature": "each.a", "power": "each.b"}, each="list"
    ),
    "words": PayloadFormat(
        "json",
        Origin(field="device"),
        Time("ts"),
        metric=Origin(field="metric"),
        value="o.value",
        attributes={"quality": "o.q", "line": "line"},
        not_measured=("---", "Unavailable", "-9999", ""),
        words={"temperature": {"on": 1.0, "OFF": 0.0}, "humidity": {"north": 12.5}},
    ),
    "csv words": PayloadFormat(
        "csv",
        Origin(field="dev"),
        Time("t"),
        metrics=WIDE,
        columns=("dev", "t", "temp", "hum", "pow", "q"),
        attributes={"quality": "q"},
        not_measured=("---", "NaN", "-9999"),
        words={"humidity": {"N": 0.0, "NNE": 22.5}},
    ),
    "local": PayloadFormat("json", Origin(constant="oven"), Time("t", "iso", "Europe/Brussels"), metrics={"humidity": "h"}),
    "pattern": PayloadFormat("json", Origin(field="d"), Time("t", "dd-MM-yyyy HH:mm:ss.SSS"), metrics={"humidity": "h"}),
    "day last": PayloadFormat("json", Origin(field="d"), Time("t", "HH:mm dd-MM-yyyy", "Europe/Brussels"), metrics={"humidity": "h"}),
    "noon": PayloadFormat("json", Origin(field="d"), Time("t", "MMM d, yyyy hh:mm a XXX"), metrics={"humidity": "h"}),
    "ordinal": PayloadFormat("json", Origin(field="d"), Time("t", "yyyyDDDHHmm z", "UTC", "second"), metrics={"humidity": "h"}),
    "csv": PayloadFormat("csv", Origin(field="dev"), Time("t"), metrics=WIDE, columns=("dev", "t", "temp", "hum", "pow")),
    "csv with header": PayloadFormat("csv", Origin(field="dev"), Time("t"), metrics=WIDE, has_header=True),
    "csv with both": PayloadFormat(
        "csv", Origin(field="dev"), Time("t"), metrics=WIDE, columns=("dev", "t", "temp", "hum", "pow"), has_header=True, encoding="cp1252"
    ),
    "csv in utf-16": PayloadFormat("csv", Origin(field="dev"), Time("t"), metrics=WIDE, has_header=True, encoding="utf-16"),
    "json in utf-16": PayloadFormat("json", Origin(field="d"), Time("t"), metrics={"humidity": "h"}, encoding="utf-16-be"),
    "csv long": PayloadFormat(
        "csv",
        Origin(field="dev"),
        Time("t", "dd.MM.yyyy HH:mm", "Europe/Brussels"),
        metric=Origin(field="m"),
        value="v",
        columns=("dev", "t", "m", "v"),
        separator=";",
        quote="'",
    ),
}
HEADERS: dict[str, list[str | None]] = {
    "csv with header": ["dev,t,temp,hum,pow", ' "t" ,dev,hum, temp ', "dev,t,temp", None, "", ",dev,t,temp,hum,pow"],
    "csv with both": ["dev,t,temp,hum,pow", ",dev,t,temp,hum,pow", ' "" ,a,b,c,d,e', ",dev,t,temp,hum", None, "a title"],
    "csv in utf-16": ["dev,t,temp,hum,pow", ",dev,t,temp,hum,pow"],
}
GOOD = {
    "long": ['{"device":"oven","metric":"temperature","value":1.5,"ts":"2026-01-01T00:00:01Z","unit":"degF","zone":"hall"}'],
    "nested": ['{"d":{"id":"oven"},"at":1767225601000,"v":{"t":1.25,"h":"2"}}'],
    "list": ['{"device":"oven","data":{"list":[{"n":"temperature","v":1,"t":1767225601.5},{"n":"humidity","v":true,"t":1767225602}]}}'],
    "wide list": ['{"list":[{"a":1,"b":2.5,"t":1767225601000000},{"a":null,"t":"1767225602000000"},null]}'],
    "words": [
        '{"device":"oven","metric":"temperature","o":{"value":"ON","q":true},"ts":"2026-01-01T00:00:01Z","line":{"n":1}}',
        '{"device":"oven","metric":"humidity","o":{"value":"---","q":""},"ts":"2026-01-01T00:00:01Z"}',
        '{"device":"oven","metric":"humidity","o":{"value":-9999.0,"q":192},"ts":"2026-01-01T00:00:01Z"}',
        '{"device":"oven","metric":"humidity","o":{"value":null},"ts":"2026-01-01T00:00:01Z"}',
        '{"device":"oven","o":5}',
    ],
    "csv words": [
        "oven,2026-01-01T00:00:01Z,-9999.00,NNE,---,good",
        "oven,2026-01-01T00:00:01Z,off,nan,north,",
        "dev,t,temp,hum,pow,q",
        "",
    ],
    "local": ['{"t":"2026-01-01 01:00:00.5","h":1}', '{"t":"2026-03-29T02:30:00","h":1}', '{"t":"2025-10-26T02:30:00","h":1}'],
    "pattern": ['{"d":"oven","t":"01-01-2026 00:00:00.1","h":1}'],
    "day last": ['{"d":"oven","t":"01:30 01-01-2026","h":1}'],
    "noon": ['{"d":"oven","t":"Jan 1, 2026 12:30 AM +02:00","h":1}'],
    "ordinal": ['{"d":"oven","t":"20260010030 CET","h":1}', '{"d":"oven","t":"20252990230 Europe/Berlin","h":1}'],
    "csv": ["oven,2026-01-01T00:00:01Z,1.5,,3", '"oven", 2026-01-01 00:00:02 ,"1.5", 2 ,""'],
    "csv with header": ["oven,2026-01-01T00:00:01Z,1.5,2,3", "1,oven,2026-01-01T00:00:01Z,1.5,2,3", "2026-01-01T00:00:01Z,oven,50,20"],
    "csv with both": ["oven,2026-01-01T00:00:01Z,1.5,2,3", "1,oven,2026-01-01T00:00:01Z,1.5,2,3", "o\u20acen,2026-01-01T00:00:01Z,1,,"],
    "csv in utf-16": [
        "oven,2026-01-01T00:00:01Z,1.5,2,3",
        "1,oven,2026-01-01T00:00:01Z,1.5,2,3",
        "\ufeff\U0001f525,2026-01-01T00:00:01Z,1,,",
    ],
    "json in utf-16": ['{"d":"\U0001f525","t":"2026-01-01T00:00:01Z","h":1}'],
    "csv long": ["oven;01.01.2026 00:30;temperature;1,5", "'oven';01.01.2026 00:30;'temperature';1.5"],
}

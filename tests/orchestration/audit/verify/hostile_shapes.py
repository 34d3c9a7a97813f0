"""Shapes to read hostile payloads with, and good payloads of each."""

from typing import Any

from silver.spec import Locator, Origin, PayloadFormat, Time

LONG = PayloadFormat(
    "json",
    Origin(field="device"),
    Time("ts"),
    zone=Origin(field="zone"),
    metric=Origin(field="metric"),
    value=Origin("value"),
    unit=Origin(field="unit"),
)
WIDE = {"temperature": "temp", "humidity": "hum", "power": "pow"}


def decoded(time: str, *decode: object, device: str = "device", **more: Any) -> PayloadFormat:
    """Of long rows, unless metrics are given."""
    rows: dict[str, Any] = {} if "metrics" in more else {"metric": Origin(field="metric"), "value": "value"}
    origin = Origin(constant="oven") if device == "oven" else Origin(field=device)
    return PayloadFormat("json", origin, Time(time, more.pop("format", "iso")), decode=decode, **rows | more)


OF_TAG = {"temperature": "fields.temp", "humidity": "fields.hum"}
OF_KEYS: dict[str, Any] = {"metric": Origin(field="s.key"), "value": "s.value"}
OWN = {"own": "def pairs(payload):\n    return [dict(pair.split('=') for pair in payload.decode().split(';'))]\n"}
DECODED = {
    "array": decoded("ts", "array"),
    "array of lists": decoded(
        "each.t", "array", format="epoch_s", each="l", metric=Origin(field="each.n"), value="each.v", attributes={"q": "q"}
    ),
    "wide array": decoded("ts", "array", metrics={"temperature": "v.t", "humidity": "h"}),
    "text": decoded("value", "text", device="oven", format="epoch_s", metrics={"power": "value"}),
    "lines": decoded("ts", "lines"),
    "concatenated": decoded("ts", "concatenated"),
    "base64": decoded("Body.ts", {"base64": "Body"}, "array", metric=Origin(field="Body.metric"), value="Body.value"),
    "by_key": decoded("ts", {"by_key": "s"}, **OF_KEYS),
    "by_key of some": decoded("ts", {"by_key": {"match": "[th].*"}}, metric=Origin(field="key"), value="v"),
    "join": decoded("ts", {"join": {"into": "device", "fields": ["device", "zone", "s.t"]}}),
    "columns": decoded("time", {"columns": {"start": "t", "step": "dt"}}, format="epoch_s", metrics=WIDE),
    "flatten": decoded("rooms.list.t", {"flatten": "rooms.list"}, format="epoch_s", device="rooms.id", metrics={"power": "rooms.list.v"}),
    "influx": decoded("time", "influx", format="epoch_ns", device="tags.device", metrics=OF_TAG),
    "influx by key": decoded(
        "time", "influx", {"by_key": "fields"}, format="epoch_ns", metric=Origin(field="fields.key"), value="fields.value"
    ),
    "senml": decoded("t", "senml", format="epoch_s", device="bn", metric=Origin(field="name"), value="v", unit=Origin(field="u")),
    "otlp": decoded("time", "otlp", format="epoch_ns", device="resource.host.name", metric=Origin(field="name"), value="value"),
    "own": decoded(
        "ts", "own:pairs", code={"own": "def pairs(payload):\n    return [dict(p.split('=') for p in payload.decode().split(';'))]\n"}
    ),
}
MARKED = {
    "nested each": PayloadFormat(
        "json",
        Origin(field="gateways.*.id", otherwise=Locator("site")),
        Time("each.t", "epoch_s"),
        metric=Origin(field="each.n"),
        value=Origin("each.v[0]"),
        each="gateways.*.readings",
    ),
    "each by key": PayloadFormat(
        "json", Origin(field="each.key"), Time("ts"), metrics={"temperature": "each.v.t", "humidity": "each.v.h[1].x"}, each="s.*"
    ),
    "wildcards": PayloadFormat(
        "json", Origin(field="a.*.key"), Time("t[-1]", "epoch_s"), metric=Origin(field="a.*.b.*.key"), value=Origin("a.*.b.*.value")
    ),
    "numbered": PayloadFormat(
        "json", Origin(field="d[0].id"), Time("d[1].t", "epoch_s"), metrics={"temperature": "v[0][1]", "power": "v[2]"}
    ),
    "decoded marks": decoded("each.*.ts", "array", each="l", metrics={"power": "each.*.v", "humidity": "h"}, device="each.*.key"),
}
NO_JSON = ("text", "lines", "concatenated", "influx", "influx by key", "own")
"""Shapes whose payloads are no JSON."""
SHAPES = {
    "long": LONG,
    "nested": PayloadFormat("json", Origin(field="d.id"), Time("at", "epoch_ms"), metrics={"temperature": "v.t", "humidity": "v.h"}),
    "list": PayloadFormat(
        "json", Origin(field="device"), Time("each.t", "epoch_s"), metric=Origin(field="each.n"), value=Origin("each.v"), each="data.list"
    ),
    "wide list": PayloadFormat(
        "json", Origin(file_name=r"^(\w+)\."), Time("each.t", "epoch_us"), metrics={"temperature": "each.a", "power": "each.b"}, each="list"
    ),
    "words": PayloadFormat(
        "json",
        Origin(field="device"),
        Time("ts"),
        metric=Origin(field="metric"),
        value=Origin("o.value"),
        attributes={"quality": "o.q", "line": "line"},
        not_measured=("---", "Unavailable", "-9999", ""),
        words={"temperature": {"on": 1.0, "OFF": 0.0}, "humidity": {"north": 12.5}},
    ),
    "located": PayloadFormat(
        "json",
        Origin(field="id", match=r"^(\w+)\."),
        Time(payload=True, match=r'"t" ?: ?"?([-0-9T:.]+Z?)"?', otherwise=Locator("ts", match="(.*)")),
        zone=Origin(fields=("z", "id"), match="( ?[ab].*)"),
        metric=Origin(field="id", match=r"\.(\w+|)$"),
        value=Origin("v", match=r"^ ?(\S*) ?\w*$", otherwise=Locator("w", match="(.)")),
        unit=Origin("v", match=r" (\w+)$", otherwise=Locator(file_name=r"(\w+)\.")),
        not_measured=("---", "-9999"),
        words={"humidity": {"north": 12.5}},
    ),
    "located csv": PayloadFormat(
        "csv",
        Origin(payload=True, match=r"^(\w+)", otherwise=Locator(constant="nobody")),
        Time(fields=("d", "t"), match=r"^(\d.*) X$"),
        metric=Origin(file_name=r"(\w+)\.", otherwise=Locator("m")),
        value=Origin("v", match="([0-9.,]+)"),
        columns=("dev", "d", "t", "v", "m"),
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
        value=Origin("v"),
        columns=("dev", "t", "m", "v"),
        separator=";",
        quote="'",
    ),
    **DECODED,
    **MARKED,
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
    "located": [
        '{"id":"oven.temperature","v":"1.5 degF","t":"2026-01-01T00:00:01Z","z":"a"}',
        '{"id":"oven.humidity","v":"north x","ts":"2026-01-01T00:00:01Z","z":1}',
        '{"id":"oven","v":21.5,"ts":1767225601}',
        '{"id":"oven.humidity","v":"--- degC","ts":"2026-01-01T00:00:01Z"}',
        '{"id":"oven.humidity","w":"25","ts":"2026-01-01T00:00:01Z"}',
    ],
    "located csv": ["oven,2026-01-01,00:00:01Z X,1.5 bar,temperature", ",2026-01-01,00:00:01Z,bar,", '"", 2026-01-01 , 00:00 X ,"1,5",'],
    "nested each": [
        '{"site":"s","gateways":[{"id":"oven","readings":[{"n":"temperature","v":[1.5,2],"t":1767225601},{"n":"power","v":[2],"t":1767225602}]},'
        '{"id":"room","readings":[]},{"readings":{"n":"humidity","v":[3],"t":1}}]}',
        '{"site":"s","gateways":{"id":{"readings":[{"n":"temperature","v":1}]}}}',
    ],
    "each by key": [
        '{"ts":"2026-01-01T00:00:01Z","s":{"oven":{"v":{"t":1,"h":[1,{"x":2}]}},"room":{"v":{"t":2}},"key":3}}',
        '{"s":[{"key":"oven"}]}',
    ],
    "wildcards": [
        '{"t":[1,1767225601],"a":{"oven":{"b":{"temperature":1.5,"power":{"value":2}}},"room":{"b":{}}}}',
        '{"a":[{"key":1,"b":[{"value":2}]}]}',
    ],
    "numbered": ['{"d":[{"id":"oven"},{"t":1767225601}],"v":[[1,2.5],null,3]}', '{"d[0]":{"id":"oven"},"d":[1],"v[0][1]":5,"v":{}}'],
    "decoded marks": ['[{"l":[{"oven":{"ts":"2026-01-01T00:00:01Z","v":1},"room":2}],"h":5},{"l":[[{"key":"oven","v":3}],{}]}]'],
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
    "array": [
        '[{"device":"oven","metric":"temperature","value":1.5,"ts":"2026-01-01T00:00:01Z"},{"device":"oven","metric":"humidity","value":2}]'
    ],
    "array of lists": [
        '[{"device":"oven","q":1,"l":[{"n":"temperature","v":1,"t":1767225601}]},{"device":"oven","l":[]},{"device":"oven"}]'
    ],
    "wide array": ['[{"device":"oven","ts":"2026-01-01T00:00:01Z","v":{"t":1,"h":2},"h":3},{"device":"room","v":null,"h":4}]'],
    "text": ["1767225601"],
    "lines": [
        '{"device":"oven","metric":"temperature","value":1.5,"ts":"2026-01-01T00:00:01Z"}',
        '{"device":"oven","metric":"temperature","value":1}\r\n\n{"device":"oven","metric":"humidity","value":2}',
    ],
    "concatenated": [
        '{"device":"oven","metric":"temperature","value":1.5,"ts":"2026-01-01T00:00:01Z"} {"device":"oven"}{"metric":"power"}'
    ],
    "base64": [
        '{"device":"oven","Body":"eyJtZXRyaWMiOiJ0ZW1wZXJhdHVyZSIsInZhbHVlIjoxLjUsInRzIjoiMjAyNi0wMS0wMVQwMDowMDowMVoifQ=="}',
        '{"device":"oven","Body":"W3sibWV0cmljIjoicG93ZXIiLCJ2YWx1ZSI6MX0seyJ0cyI6MX1d"}',
    ],
    "by_key": ['{"device":"oven","ts":"2026-01-01T00:00:01Z","s":{"temperature":1.5,"humidity":{"value":"2"},"power":null}}'],
    "by_key of some": ['{"device":"oven","ts":"2026-01-01T00:00:01Z","temperature":{"v":1.5},"humidity":{"v":2},"x":{"v":3}}'],
    "join": ['{"device":"oven","zone":"a","s":{"t":true},"metric":"temperature","value":1.5,"ts":"2026-01-01T00:00:01Z"}'],
    "columns": [
        '{"device":"oven","t":1767225601.5,"dt":0.1,"temp":[1,2.5],"hum":[3,null]}',
        '{"device":"oven","t":1767225601.5,"dt":0.1,"temp":[1,2.5],"hum":["3",null],"pow":[true,{}]}',
    ],
    "flatten": [
        '{"rooms":[{"id":"oven","list":[{"t":1767225601,"v":1},{"t":1767225602,"v":2}]},{"id":"room","list":{"t":1767225601,"v":3}}]}'
    ],
    "influx": [
        "weather,device=oven temp=1.5,hum=40i,door=t 1767225601000000000",
        'weather,device=ro\\ om\\,1 temp=21.5,state="ok, \\"dry\\"" 1767225602000000000\n# a comment\n\nweather,device=oven hum=4u',
    ],
    "influx by key": ["weather,device=oven temperature=1.5,humidity=40i,door=t 1767225601000000000"],
    "senml": [
        '[{"bn":"oven","bt":1767225601,"bu":"degF","bv":0.1,"n":"temperature","v":0.2},{"n":"humidity","t":-60,"vb":true},{"n":"power","s":5}]'
    ],
    "otlp": [
        '{"resourceMetrics":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"oven"}}]},"scopeMetrics":[{"metrics":'
        '[{"name":"temperature","gauge":{"dataPoints":[{"asDouble":1.5,"timeUnixNano":"1767225601000000000"}]}},'
        '{"name":"power","sum":{"dataPoints":[{"asInt":"5","timeUnixNano":"1767225602000000000","flags":0}]}}]}]}]}'
    ],
    "own": ["device=oven;metric=temperature;value=1.5;ts=2026-01-01T00:00:01Z"],
    "csv long": ["oven;01.01.2026 00:30;temperature;1,5", "'oven';01.01.2026 00:30;'temperature';1.5"],
}

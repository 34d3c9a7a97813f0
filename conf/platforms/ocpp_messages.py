"""Meter values of charging stations in OCPP 1.6 and 2.0.1: frames of OCPP-J as a proxy or a gateway hands them on."""

import json

ENERGY = "Energy.Active.Import.Register"  # what a value without a measurand is, by the standard


def meter_values(payload, message, station_level=2):
    """List the sampled values of a call `[2, id, action, {..}]`, or of its object alone; other calls have none.

    The station is a level of the topic, as its name stands in the address of the WebSocket and not in a message. `device` is station and
    connector. `measurand` has phase and place, if a value has them.

    >>> from types import SimpleNamespace as Message
    >>> meter = '{"timestamp": "2026-03-02T08:00:00Z", "sampledValue": [{"value": "5"}]}'
    >>> call = '[2, "7", "MeterValues", {"connectorId": 1, "meterValue": [%s]}]' % meter
    >>> meter_values(call.encode(), Message(topic="ocpp/CS-1"))
    [{'device': 'CS-1/1', 'time': '2026-03-02T08:00:00Z', 'measurand': 'Energy.Active.Import.Register', 'value': '5', 'unit': 'Wh'}]
    """
    frame = json.loads(payload)
    call = frame[3] if isinstance(frame, list) and len(frame) > 3 else frame
    call = call if isinstance(call, dict) else {}
    evse = call.get("evse") or {}
    connector = call.get("connectorId", call.get("evseId", evse.get("id", 0)))
    station = (message.topic.split("/") + [""] * station_level)[station_level - 1]
    values = []
    for meter in call.get("meterValue", call.get("transactionData", [])):
        for sample in meter["sampledValue"]:
            names = [sample.get("measurand", ENERGY), sample.get("phase"), sample.get("location")]
            measure = sample.get("unitOfMeasure", {})  # of OCPP 2.0.1
            unit = sample.get("unit", measure.get("unit", "Wh" if names[0].startswith("Energy.Active") else None))
            value = sample["value"] if not measure.get("multiplier") else float(sample["value"]) * 10 ** measure["multiplier"]
            measurand = ".".join(name for name in names if name and name != "Outlet")
            device = f"{station}/{connector}".strip("/")
            values.append({"device": device, "time": meter["timestamp"], "measurand": measurand, "value": value, "unit": unit})
    return values

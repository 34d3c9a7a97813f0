"""A flow as flows.yml declares it, made of its kind."""

from gold.flows.spec import Counter, Distance, DutyCycle, FlowSpec, Kind, Pairs, Sessions, Silence, StateMachine

KEYS: dict[type[Kind], str] = {
    Sessions: "sessions",
    Pairs: "join",
    StateMachine: "states",
    Silence: "silence",
    Distance: "distance",
    DutyCycle: "duty_cycle",
    Counter: "counter",
}


def flow_of(name: str, kind: Kind, group: str | None = None) -> FlowSpec:
    return FlowSpec(name, group, **{KEYS[type(kind)]: kind})  # type: ignore[arg-type]

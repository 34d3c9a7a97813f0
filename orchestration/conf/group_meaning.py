"""Check groups.yml: features of vectors, and settings that a shared stream must share."""

from collections.abc import Iterator, Mapping, Sequence

from expectations.wording import hint, quoted
from gold.windows.spec import Group, Vector
from orchestration.conf.devices import Device, Membership
from orchestration.conf.names import Declared
from orchestration.conf.structure import Finding

Devices = Mapping[str, Device]


def check_groups(groups: Mapping[str, Group], devices: Devices, declared: Declared) -> Iterator[Finding]:
    """A group without devices is no mistake: they may come by `tidemark devices load`."""
    of_groups, of_any = _members(groups, devices, declared)
    for name, group in groups.items():
        if group.vector:
            members = [*of_groups.get(name, ()), *of_any] if group.vector.entity == "group" else []
            yield from _check_features(name, group.vector, list(group.metrics), members, declared)
        if group.anomalies:
            yield from _check_anomalies(name, group.anomalies.features, group.vector)
    yield from _check_streams(groups)


def _check_anomalies(name: str, judged: Sequence[str], vector: Vector | None) -> Iterator[Finding]:
    if vector is None:
        yield Finding.of(("groups", name, "anomalies"), "judges vectors, and the group has none; declare its `vector`")
        return
    for at, feature in enumerate(judged):
        if feature not in vector.features:
            remedy = hint(feature, vector.features, "it has " + ", ".join(vector.features))
            problem = f"names {quoted(feature)}, which is no feature of the vector; {remedy}"
            yield Finding.of(("groups", name, "anomalies", "features"), problem, at)


def _members(groups: Mapping[str, Group], devices: Devices, declared: Declared) -> tuple[dict[str, list[str]], list[str]]:
    """Devices by their groups, and those that may be in any, as they are wrong or name none."""
    of_groups, of_any = dict[str, list[str]](), list[str]()
    membership = Membership({name: group.devices for name, group in groups.items()})
    for device_id in declared.entries["devices"] or ():
        device = devices.get(device_id)
        device_groups = membership.groups_of(device_id, device.groups if device else ())
        if not device_groups:
            of_any.append(device_id)
        for group in device_groups:
            of_groups.setdefault(group, []).append(device_id)
    return of_groups, of_any


def _check_features(name: str, vector: Vector, metrics: list[str], members: list[str], declared: Declared) -> Iterator[Finding]:
    if any(declared.lacks("metrics", metric) for metric in metrics):
        metrics += declared.entries["metrics"] or ()  # the unknown metric is reported already: the feature it would have been is not
    setting = ("groups", name, "vector", "features")
    is_of_group = vector.entity == "group"
    if is_of_group and not vector.features:
        example = f"{(members or ['device'])[0]}.{metrics[0]}"
        yield Finding.of(setting, f"is missing, and entity group has no default; write for example [{example}]")
    for at, feature in enumerate(vector.features):
        if is_of_group:
            problem = _problem_of_pair(feature, metrics, members, declared)
        else:
            problem = None if feature in metrics else f"is no metric of the group; {hint(feature, metrics, f'add it to {name}.metrics')}"
        if problem:
            yield Finding.of(setting, f"names {quoted(feature)}, which {problem}", at)


def _problem_of_pair(feature: str, metrics: list[str], members: list[str], declared: Declared) -> str | None:
    """Devices and metrics may hold dots. Gold and verify take the longest metric, so there must be one way to read it alone."""
    pairs = [(feature[:at], feature[at + 1 :]) for at, character in enumerate(feature) if character == "."]
    of_metric = [(device_id, metric) for device_id, metric in pairs if metric in metrics]
    if len(of_metric) > 1:
        return "can be read as {} of {} and as {} of {}; rename one of them".format(*of_metric[0][::-1], *of_metric[1][::-1])
    declared_pairs = [pair for pair in of_metric if not declared.lacks("devices", pair[0])]
    if declared_pairs:
        is_member = declared.entries["devices"] is None or declared_pairs[0][0] in members
        return None if is_member else f"is of a device outside the group; add the group to {declared_pairs[0][0]} in devices.yml"
    if of_metric:
        return f"is of a device that devices.yml does not declare; {hint(of_metric[0][0], members, 'declare it there')}"
    possible = [f"{device_id}.{metric}" for device_id in members for metric in metrics]
    return f"is no device.metric of the group; {hint(feature, possible, 'its metrics are ' + ', '.join(metrics))}"


def _check_streams(groups: Mapping[str, Group]) -> Iterator[Finding]:
    """One query has one way to close its windows when nothing comes."""
    first: dict[str, str] = {}
    for name, group in groups.items():
        stream = group.stream or name
        other = first.setdefault(stream, name)
        own, others = ("not set" if group.idle_close_seconds is None else group.idle_close_seconds for group in (group, groups[other]))
        if own != others:
            problem = f"is {own}, but {others} for {other}, which shares the stream {stream}; make them equal"
            yield Finding.of(("groups", name, "idle_close_seconds"), problem)

"""A profile as columns of extension points: what is on, what is off, what differs from the default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from playground.engine.plugins import InstalledPlugin, installed, plugin_points
from playground.engine.profiles import POINTS, ProfileOutline, outline

# A scheduler without one of these does not start.
REQUIRED = ("queueSort", "bind")
SCORE = "score"


@dataclass(frozen=True)
class PluginCell:
    """One plugin at one point; `note` says how it differs, empty where it does not."""

    name: str
    field: str
    on: bool
    required: bool
    weight: int | None
    weight_field: str
    note: str


@dataclass(frozen=True)
class PointColumn:
    """One extension point; `others` are plugins that could be added."""

    key: str
    title: str
    cells: tuple[PluginCell, ...]
    others: tuple[PluginCell, ...]

    @property
    def n_on(self) -> int:
        """How many plugins run."""
        return sum(cell.on for cell in self.cells)

    @property
    def n_different(self) -> int:
        """How many differ from the default."""
        return sum(bool(cell.note) for cell in self.cells)


@dataclass(frozen=True)
class ProfileView:
    """One profile: its columns, and its differences in words."""

    name: str
    columns: tuple[PointColumn, ...]
    differences: tuple[str, ...]


def default_profile(release: Mapping[str, Any] | None = None) -> ProfileOutline:
    """What runs without a configuration in a release of Kubernetes (None: the oldest)."""
    document = release or {}
    switched = tuple(sorted((document.get("switched") or {}).items()))
    return replace(_default_profile(document.get("name"), switched), release=release)


@cache
def _default_profile(name: str | None, switched: tuple[tuple[str, bool], ...]) -> ProfileOutline:
    return outline(None, {"name": name, "switched": dict(switched)} if name else None).profiles[0]


def view_profile(profile: ProfileOutline) -> ProfileView:
    """Compare a profile with the default one, point by point."""
    columns = tuple(_column(point, profile) for point in POINTS)
    return ProfileView(profile.scheduler_name, columns, tuple(_differences(profile, columns)))


@dataclass(frozen=True)
class InstalledCell:
    """A plugin of an installed package, and what a profile makes of it; `args` are those that apply."""

    plugin: InstalledPlugin
    points_on: tuple[str, ...]
    weight: int | None
    args: Mapping[str, Any]


def installed_plugins(profile: ProfileOutline) -> list[InstalledCell]:
    """What installed packages offer, by name."""
    cells = []
    for plugin in installed():
        points_on = tuple(point for point in POINTS if plugin.name in profile.plugins[point])
        given = {_camel(field): value for field, value in profile.args.get(plugin.name, {}).items()}
        cells.append(
            InstalledCell(plugin, points_on, profile.weights.get(plugin.name), {**plugin.args, **given})
        )
    return cells


def _column(point: str, profile: ProfileOutline) -> PointColumn:
    usual, now = default_profile(profile.release).plugins[point], profile.plugins[point]
    changed_args = _changed_args(profile) if point == _first_point_with_args(point) else {}
    cells = [_cell(point, name, profile, usual, on=True, args=changed_args.get(name, "")) for name in now]
    cells += [_cell(point, name, profile, usual, on=False) for name in usual if name not in now]
    shown = {cell.name for cell in cells}
    others = [
        PluginCell(name, f"on:{point}:{name}", False, False, 1 if point == SCORE else None, f"w:{name}", "")
        for name, points in sorted(plugin_points(profile.release).items())
        if point in points and name not in shown
    ]
    return PointColumn(point, f"{point[0].upper()}{point[1:]}", tuple(cells), tuple(others))


def _first_point_with_args(point: str) -> str:
    """Arguments are told where people look for them: at Filter, Score and PostFilter."""
    return point if point in ("filter", "score", "postFilter") else ""


def _cell(
    point: str, name: str, profile: ProfileOutline, usual: Sequence[str], *, on: bool, args: str = ""
) -> PluginCell:
    default_weights = default_profile(profile.release).weights
    weight = profile.weights.get(name, default_weights.get(name, 1)) if point == SCORE else None
    note = ""
    if on and name not in usual:
        note = "added"
    elif not on:
        note = "off, default on"
    elif weight is not None and weight != default_weights[name]:
        note = f"default × {default_weights[name]}"
    if on and args:
        note = f"{note}, {args}" if note else args
    return PluginCell(name, f"on:{point}:{name}", on, point in REQUIRED, weight, f"w:{name}", note)


def _changed_args(profile: ProfileOutline) -> dict[str, str]:
    """Plugin -> which arguments differ, in a few words."""
    changed = {}
    usual = default_profile(profile.release).args
    for name, args in profile.args.items():
        before = usual.get(name, {})
        fields = [field for field, value in args.items() if value != before.get(field)]
        if not fields:
            continue
        strategy = args.get("scoring_strategy")
        kind = strategy.get("type") if isinstance(strategy, Mapping) else None
        usual_kind = (before.get("scoring_strategy") or {}).get("type") if before else None
        changed[name] = (
            str(kind) if kind and kind != usual_kind else f"args: {', '.join(map(_camel, fields))}"
        )
    return changed


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _differences(profile: ProfileOutline, columns: Sequence[PointColumn]) -> list[str]:
    words = [
        f"{cell.name} {cell.note} at {column.title}"
        for column in columns
        for cell in column.cells
        if cell.note
    ]
    if profile.percentage_of_nodes_to_score:
        words.append(f"percentageOfNodesToScore {profile.percentage_of_nodes_to_score}")
    return words


def edited(
    document: Mapping[str, Any] | None, profile: ProfileOutline, posted: Mapping[str, str]
) -> dict[str, Any]:
    """Return the configuration with the posted switches and weights, everything else as it was written.

    Parameters
    ----------
    document
        The configuration in use; None is the default one.
    profile
        The one that is edited, as it runs now.
    posted
        Fields of the page: ``on:point:plugin`` for what is on, ``w:plugin`` weights.
    """
    base: dict[str, Any] = _copied(document) if document else {"profiles": []}
    base = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **base}
    profiles = base.setdefault("profiles", [])
    written = next(
        (p for p in profiles if p.get("schedulerName", "default-scheduler") == profile.scheduler_name), None
    )
    if written is None:
        written = {"schedulerName": profile.scheduler_name}
        profiles.append(written)
    plugins = written.setdefault("plugins", {})
    in_use = [name for point in POINTS for name in profile.plugins[point]]
    known = plugin_points(profile.release, in_use)
    for point in POINTS:
        for name, points in known.items():
            if point not in points:
                continue
            was_on, is_on = name in profile.plugins[point], f"on:{point}:{name}" in posted
            weight = _weight(posted.get(f"w:{name}")) if point == SCORE else None
            if was_on and not is_on:
                _switch(plugins, point, name, on=False)
            elif is_on and not was_on:
                usual = name in default_profile(profile.release).plugins[point]
                _switch(plugins, point, name, on=True, weight=weight, explicit=not usual)
            if is_on and weight is not None and weight != profile.weights.get(name, 1):
                _set_weight(plugins, name, weight)
    if not plugins:
        del written["plugins"]
    return base


def _switch(
    plugins: dict[str, Any],
    point: str,
    name: str,
    *,
    on: bool,
    weight: int | None = None,
    explicit: bool = False,
) -> None:
    lists = plugins.setdefault(point, {})
    gone, other = ("disabled", "enabled") if on else ("enabled", "disabled")
    left = [entry for entry in lists.get(gone, []) if entry.get("name") != name]
    if left:
        lists[gone] = left
    else:
        lists.pop(gone, None)
    if not on or explicit:
        entry: dict[str, Any] = {"name": name}
        if on and weight is not None and weight != 1:
            entry["weight"] = weight
        lists.setdefault(other, []).append(entry)
    if not lists:
        plugins.pop(point)


def _set_weight(plugins: dict[str, Any], name: str, weight: int) -> None:
    enabled = plugins.setdefault(SCORE, {}).setdefault("enabled", [])
    for entry in enabled:
        if entry.get("name") == name:
            entry["weight"] = weight
            return
    enabled.append({"name": name, "weight": weight})


def _weight(text: str | None) -> int | None:
    """A weight as posted; one that is no number stays, so that validation names it at its line."""
    if text is None or not text.strip():
        return None
    return int(text) if text.strip().lstrip("-").isdigit() else None


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value

"""Which scheduler plugins this site offers: those of the tree, and those of installed packages that it lets in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core import installed_plugins
from scheduler_core.config.validation import args_document
from scheduler_core.framework.limit import DEFAULT_SECONDS, limit_plugins
from scheduler_core.framework.per_node import asked_per_node
from scheduler_core.framework.registry import declared
from scheduler_core.releases import release_from

_allowed: Sequence[str] | None = None
_seconds = DEFAULT_SECONDS


def use(names: Sequence[str] | None, seconds: float = DEFAULT_SECONDS) -> None:
    """Let these plugins of installed packages in, None for all of them; said once, when a process starts.

    Parameters
    ----------
    seconds
        Processor time that one call of such a plugin may take.
    """
    global _allowed, _seconds
    _seconds = seconds
    limit_plugins(seconds)
    _allowed = None if names is None else list(names)
    installed_plugins.allow(_allowed)


def allowed() -> dict[str, Any]:
    """Arguments of `use`, for a child process."""
    return {"names": _allowed, "seconds": _seconds}


def plugin_points(
    release: Mapping[str, Any] | None = None, others: Iterable[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Every plugin a configuration may name in a release -> the points it implements.

    Parameters
    ----------
    others
        Names in use, members of families among them, which no list holds.
    """
    catalog = installed_plugins.known().in_release(release_from(release)).catalog
    return {name: catalog[name].points for name in (*catalog, *others) if name in catalog}


def drawn() -> Mapping[str, tuple[str, str]]:
    """Plugins that declare how their points are drawn -> their letter and colour class."""
    known = installed_plugins.known().items()
    return {name: (one.draw[0], f"s{one.draw[1]}") for name, one in known if one.draw is not None}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plugin of an installed package.

    Attributes
    ----------
    per_node
        Points at which it is asked about one node at a time, which is slow.
    args
        Argument -> its default, as a configuration writes them; empty where it takes none.
    """

    name: str
    about: str
    package: str
    version: str
    points: tuple[str, ...]
    per_node: tuple[str, ...]
    args: Mapping[str, Any]


def installed() -> list[InstalledPlugin]:
    """Plugins from outside the tree, by name."""
    found = []
    for name, one in sorted(installed_plugins.outside().items()):
        spec = declared(one.plugin)
        about = (one.plugin.__doc__ or "").strip().partition("\n")[0]
        found.append(
            InstalledPlugin(
                name,
                about,
                one.origin.package,
                one.origin.version,
                spec.points,
                asked_per_node(one.plugin),
                args_shown(name, spec.default_args()),
            )
        )
    return found


def args_shown(name: str, args: Any) -> dict[str, Any]:
    """Arguments of a plugin as a configuration writes them; empty where it has none."""
    document = args_document(name, args) or {}
    return {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}


def lacking(plugins: Iterable[str]) -> list[str]:
    """What to install for those of a scenario's plugins (`ScenarioFacts.plugins`) that are not known here.

    A sentence each; empty where the scenario can be run again.
    """
    known = installed_plugins.outside()
    sentences = []
    for plugin in plugins:
        name, _, requirement = plugin.partition(" (")
        if name not in known:
            how = f"; it comes with the package: pip install {requirement.rstrip(')')}" if requirement else ""
            sentences.append(f"The plugin {name} is not installed here{how}")
    return sentences


def problems() -> tuple[str, ...]:
    """What is wrong with plugins that are installed and allowed but cannot be used, a sentence each."""
    return installed_plugins.problems()

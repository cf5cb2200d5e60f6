"""KubeSchedulerConfiguration documents and Policy files: is this one usable?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from scheduler_core.config.catalog import EXTENSION_POINTS
from scheduler_core.config.construction import files_unread
from scheduler_core.config.decode import configuration_among as _among
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.policy import in_todays_case
from scheduler_core.config.types import POLICY_KIND
from scheduler_core.errors import ConfigurationError, FieldError
from scheduler_core.queue.lanes import BackoffQueue
from scheduler_core.releases import release_from
from scheduler_core.sim.options import load


def is_policy(document: Mapping[str, Any] | None) -> bool:
    """Whether it is a legacy Policy file, which a scheduler translates before it starts."""
    return document is not None and document.get("kind") == POLICY_KIND


def configuration_among(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The configuration among documents, out of the ConfigMaps and Lists that hold it.

    A Policy has its keys in today's case, which is how the rest of the site reads it.

    Raises
    ------
    ConfigurationError
        ConfigMaps hold several, or none.
    """
    document = _among(documents)
    return in_todays_case(document) if is_policy(document) else dict(document)


def without_effect(
    document: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> tuple[dict[str, str], ...]:
    """Entries of a Policy without a counterpart today: path, name and why; none where it cannot be used at all."""
    if not is_policy(document):
        return ()
    try:
        dropped = load(document, release=release_from(release)).untranslated
    except ConfigurationError:
        return ()
    return tuple({"field": item.field, "name": item.name, "reason": item.reason} for item in dropped)


FILES_REFUSED: Final = (
    "files of this server are not read: give the file's content in caData, certData or keyData "
    "(base64 -w0 FILE), or run the playground on the machine that has the file"
)
_FILE_MISSING: Final = (
    "; put the file on this machine, or give its content in caData, certData or keyData (base64 -w0 FILE)"
)
_FILE_FIELDS: Final = ("caFile", "certFile", "keyFile")
_MAX_FILE_BYTES: Final = 1024 * 1024


def check_configuration(
    document: Mapping[str, Any],
    release: Mapping[str, Any] | None = None,
    *,
    may_read_files: bool = False,
) -> None:
    """Load a document to see whether the scheduler would start with it.

    Parameters
    ----------
    release
        Of the release of Kubernetes it is for (`Cluster.release`); None is the oldest.
    may_read_files
        Files an extender's tlsConfig names are opened (embedded mode: they are the person's own).

    Raises
    ------
    ConfigurationError
        With every field at fault.
    """
    try:
        loaded = load(
            document, release=release_from(release), read_file=_read_file if may_read_files else files_unread
        )
    except ConfigurationError as error:
        hinted = (
            replace(item, detail=item.detail + _FILE_MISSING) if item.field.endswith(_FILE_FIELDS) else item
            for item in error.errors
        )
        raise ConfigurationError(str(error), tuple(hinted)) from None
    if may_read_files:
        return
    items = tuple(
        FieldError("FieldValueForbidden", f"extenders[{index}].tlsConfig.{field}", path, FILES_REFUSED)
        for index, extender in enumerate(loaded.configuration.extenders)
        if (tls := extender.tls_config) is not None
        for field, path in (("caFile", tls.ca_file), ("certFile", tls.cert_file), ("keyFile", tls.key_file))
        if path
    )
    if items:
        raise ConfigurationError(f"{items[0].field}: {FILES_REFUSED}", items)


def _read_file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(_MAX_FILE_BYTES)


# ---- What a configuration amounts to: plugins per extension point, weights, arguments and extenders

POINTS: Final = EXTENSION_POINTS
"""Extension points under their names in a configuration, in pipeline order."""


def loaded(
    document: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> LoadedConfiguration:
    """Load a configuration that is known to be usable (None = the default one) in a release (None = the oldest).

    Raises
    ------
    ConfigurationError
        It is not usable; `check_configuration` says where.
    """
    return load(document, release=release_from(release))


def loaded_and_problem(
    document: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> tuple[LoadedConfiguration, str]:
    """The same, and why it cannot be used any more (a plugin it names was uninstalled): then the default one."""
    try:
        return loaded(document, release), ""
    except ConfigurationError as error:
        return loaded(None, release), str(error)


# ---- How long a pod backs off, as a configuration says

SECOND_NS = 1_000_000_000


def backoffs_ns(
    document: Mapping[str, Any] | None,
    failures: Sequence[bool],
    release: Mapping[str, Any] | None = None,
) -> list[int]:
    """How long a pod backs off after each of its failed attempts, in nanoseconds.

    Parameters
    ----------
    document
        The cluster's KubeSchedulerConfiguration; None = the default one.
    failures
        Of each attempt in order: whether it ended in an error, and not because no node fitted.
    release
        The cluster's release of Kubernetes; None is the oldest.

    Returns
    -------
    list of int
        0 where the configuration cannot be used any more.
    """
    try:
        configuration = load(document, release=release_from(release)).configuration
    except ConfigurationError:
        # A plugin it names was uninstalled: how long pods backed off is unknown.
        return [0] * len(failures)
    queue = BackoffQueue(
        configuration.pod_initial_backoff_s * SECOND_NS,
        configuration.pod_max_backoff_s * SECOND_NS,
        lambda _: (),
    )
    unschedulable = errors = 0
    found = []
    for is_error in failures:
        errors = errors + 1 if is_error else 0
        unschedulable += not is_error
        found.append(queue.backoff_ns(errors or unschedulable))
    return found

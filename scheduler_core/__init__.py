"""A deterministic re-implementation of kube-scheduler 1.34 to 1.36 in columns. README.md says how it is built."""

from scheduler_core.version import ENGINE_VERSION as ENGINE_VERSION

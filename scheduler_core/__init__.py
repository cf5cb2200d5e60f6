"""A deterministic re-implementation of kube-scheduler v1.34 in columns. README.md says how it is built."""

from scheduler_core.version import EMULATES as EMULATES
from scheduler_core.version import ENGINE_VERSION as ENGINE_VERSION

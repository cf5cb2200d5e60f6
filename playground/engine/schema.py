"""The kinds and fields of the Kubernetes API, for the surfaces."""

from scheduler_core.objects.kinds import MAKES, READ, SHAPING
from scheduler_core.objects.reading import SERVED_EARLY, early_in, served_kinds
from scheduler_core.schema.fields_check import FieldProblem, check_fields, nearest_name, unknown_field
from scheduler_core.schema.tables import (
    SCALARS,
    Field,
    Type,
    atomic_types,
    kinds,
    prose,
    table_beside,
    types,
)

__all__ = [
    "MAKES",
    "READ",
    "SCALARS",
    "SERVED_EARLY",
    "SHAPING",
    "Field",
    "FieldProblem",
    "Type",
    "atomic_types",
    "check_fields",
    "early_in",
    "kinds",
    "nearest_name",
    "prose",
    "served_kinds",
    "table_beside",
    "types",
    "unknown_field",
]

"""CEL expressions: read, bounded and run, with Kubernetes' functions. The language itself is a library's."""

from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.syntax import ExpressionError

__all__ = ["Expression", "ExpressionError", "ExpressionLimits"]

"""HTTP extenders over an injected transport."""

from scheduler_core.extender.chain import (
    ExtenderBinding,
    ExtenderChain,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    ExtenderScores,
    FeasibleNode,
    bind_request,
    extender_chain,
    parse_bind_answer,
)
from scheduler_core.extender.extender import Extender, build_extenders
from scheduler_core.extender.transport import (
    ExtenderAnswer,
    ExtenderCall,
    ExtenderRequest,
    Transport,
    no_transport,
)
from scheduler_core.extender.wire import Victims

__all__ = [
    "Extender",
    "ExtenderAnswer",
    "ExtenderBinding",
    "ExtenderCall",
    "ExtenderChain",
    "ExtenderFilterResult",
    "ExtenderPreemptionResult",
    "ExtenderRequest",
    "ExtenderScores",
    "FeasibleNode",
    "Transport",
    "Victims",
    "bind_request",
    "build_extenders",
    "extender_chain",
    "no_transport",
    "parse_bind_answer",
]

"""HTTP extenders over an injected transport."""

from scheduler_core.extender.chain import (
    Candidate,
    ExtenderBinding,
    ExtenderChain,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    ExtenderScores,
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
    "Candidate",
    "Extender",
    "ExtenderAnswer",
    "ExtenderBinding",
    "ExtenderCall",
    "ExtenderChain",
    "ExtenderFilterResult",
    "ExtenderPreemptionResult",
    "ExtenderRequest",
    "ExtenderScores",
    "Transport",
    "Victims",
    "bind_request",
    "build_extenders",
    "extender_chain",
    "no_transport",
    "parse_bind_answer",
]

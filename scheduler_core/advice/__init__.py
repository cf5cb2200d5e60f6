"""Questions about decisions: what would it take, why not there, from which weight on, and how much was luck.

All of it is asked of a copy (`Sandbox`): nothing here changes a cluster. See README.md.
"""

from scheduler_core.advice.edits import Edit, FailedEdit, ProvenEdit
from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.advice.what_would_it_take import Advice, Limits, what_would_it_take

__all__ = ["Advice", "Edit", "FailedEdit", "Limits", "ProvenEdit", "Sandbox", "what_would_it_take"]

"""The types of rows, for annotations of pages and APIs: names for a type checker, any at run time.

Selectors find rows and services write them; what is handed one says so by its type, and can do no more with it
(docs/decisions/0014-rows-are-handed-out.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playground.accounts.models import AccessToken as AccessToken
    from playground.accounts.models import AuditEntry as AuditEntry
    from playground.accounts.models import Invitation as Invitation
    from playground.accounts.models import Team as Team
    from playground.accounts.models import User as User
else:

    def __getattr__(name: str) -> Any:
        """A type's name at run time, where annotations are not looked at: it reaches no table."""
        return Any

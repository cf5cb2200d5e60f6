"""Links that are sent by mail."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.core.mail import send_mail
from django.http import HttpRequest
from django.template.loader import render_to_string

if TYPE_CHECKING:
    from playground.accounts.row_types import Invitation


logger = logging.getLogger(__name__)


def mail_invitation(request: HttpRequest, invitation: Invitation, link: str) -> bool:
    """Send an invitation's link; False if the mail server would not take it."""
    where = f"team {invitation.team.name}" if invitation.team else "the scheduling playground"
    text = render_to_string(
        "accounts/invitation_mail.txt",
        {"invitation": invitation, "link": link, "where": where, "host": request.get_host()},
    )
    try:
        return bool(send_mail(f"Invitation to {where}", text, None, [invitation.email]))
    except OSError:
        # smtplib's errors are OSErrors.
        logger.exception("an invitation could not be sent by mail")
        return False

"""Forms of accounts."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.contrib.auth import forms as auth_forms
from django.contrib.auth import get_user_model, password_validation
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from playground.accounts import audit, throttle
from playground.accounts.addresses import client_address
from playground.accounts.choices import Role, TokenScope
from playground.accounts.invitations import DAYS
from playground.accounts.row_types import User
from playground.accounts.teams import person_named
from playground.accounts.throttle import known_device
from playground.accounts.tokens import DEFAULT_DAYS

TOKEN_DAYS: Final = (7, 30, DEFAULT_DAYS, 365)


class Styled(forms.BaseForm):
    """A form whose fields have the product's classes and labels; rules of passwords are in one line."""

    LABELS: ClassVar = {
        "password1": "Password",
        "password2": "The same again",
        "new_password1": "New password",
        "new_password2": "The same again",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            is_choice, is_check = (isinstance(field.widget, of) for of in (forms.Select, forms.CheckboxInput))
            field.widget.attrs["class"] = "sel" if is_choice else "check" if is_check else "inp"
            field.widget.attrs.pop("autofocus", None)
            if name in self.LABELS:
                field.label = self.LABELS[name]
                rules = password_validation.password_validators_help_texts() if name.endswith("1") else ()
                field.help_text = " ".join(rules)


class PatientLoginForm(Styled, AuthenticationForm):
    """Counts each try before it tries; `attempt` says what came of it."""

    attempt: throttle.LoginAttempt | None = None

    def clean(self) -> dict[str, Any]:
        assert self.request is not None
        name = str(self.cleaned_data.get("username") or "")
        if not name or not self.cleaned_data.get("password"):
            return self.cleaned_data
        user = person_named(name)
        address = client_address(self.request)
        self.attempt = throttle.count_login(
            name=name, address=address, user=user, device=known_device(self.request, user)
        )
        if self.attempt.wait_s:
            if self.attempt.is_first_refusal:
                audit.record("login-throttled", about=user, address=address)
            raise ValidationError(too_many(self.attempt.wait_s), code="throttled")
        try:
            cleaned = super().clean()
        except ValidationError:
            # What is no name here may be a password in the wrong field: it is not kept.
            audit.record("login-failed", about=user, address=address)
            raise
        self.attempt.succeeded()
        return dict(cleaned)


def too_many(wait_s: int) -> str:
    """Why no password is tried, and until when."""
    minutes = -(-wait_s // 60)
    return (
        f"Too many tries. Try again in {minutes} minute{'s' if minutes > 1 else ''},"
        " or set a new password by a reset link, which works at once."
    )


class TokenForm(Styled, forms.Form):
    name = forms.CharField(
        max_length=100, label="What it is for", widget=forms.TextInput({"autocomplete": "off"})
    )
    scope = forms.ChoiceField(
        label="It may",
        choices=[(TokenScope.READ, "read"), (TokenScope.WRITE, "read and write, as you")],
        initial=TokenScope.READ,
    )
    cluster = forms.ChoiceField(label="In", required=False)
    days = forms.ChoiceField(
        label="It expires",
        choices=[*((str(days), f"after {days} days") for days in TOKEN_DAYS), ("", "never")],
        initial=str(DEFAULT_DAYS),
        required=False,
    )

    def __init__(self, *args: Any, clusters: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["cluster"].choices = [("", "all your clusters"), *clusters]  # type: ignore[attr-defined]


class TeamForm(Styled, forms.Form):
    name = forms.CharField(
        max_length=100, label="Name of the team", widget=forms.TextInput({"autocomplete": "off"})
    )


ROLES: Final = [
    (Role.VIEWER, "viewer: looks"),
    (Role.EDITOR, "editor: changes clusters"),
    (Role.OWNER, "owner: also manages the team"),
]


class InviteForm(Styled, forms.Form):
    role = forms.ChoiceField(label="As", choices=ROLES, initial=Role.EDITOR)
    days = forms.TypedChoiceField(
        label="The link works",
        choices=[(days, f"{days} day{'s' if days > 1 else ''}") for days in DAYS],
        coerce=int,
        initial=DAYS[1],
    )
    email = forms.EmailField(label="Mail it to (optional)", required=False)

    def __init__(self, *args: Any, mails: bool, of_team: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not mails:
            del self.fields["email"]
        if not of_team:
            del self.fields["role"]


class EmailForm(Styled, forms.Form):
    email = forms.EmailField(label="Mail address, for reset links", required=False)
    password = forms.CharField(
        label="Your password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )


class NewAccountForm(Styled, auth_forms.BaseUserCreationForm):  # type: ignore[type-arg]  # takes none when it runs
    """A name and a password for who was invited."""

    LABELS: ClassVar = {**Styled.LABELS, "username": "Name"}
    email = forms.EmailField(label="Mail address (optional, for reset links)", required=False)

    class Meta:
        model = get_user_model()
        fields = ("username", "email")


class ChangePasswordForm(Styled, auth_forms.PasswordChangeForm):
    """The old password is counted before it is tried, as a login's is."""

    end_tokens = forms.BooleanField(label="Delete my tokens, too", required=False)

    def clean_old_password(self) -> str:
        check_own_password(self.user, self.cleaned_data["old_password"])
        return str(self.cleaned_data["old_password"])


class ResetForm(Styled, auth_forms.PasswordResetForm):
    LABELS: ClassVar = {"email": "Mail address of the account"}


class NewPasswordForm(Styled, auth_forms.SetPasswordForm):  # type: ignore[type-arg]  # takes none when it runs
    """A new password, by a link that was mailed."""


def check_own_password(user: User, password: str) -> None:
    """Check that a user knows their password; the try is counted first.

    Raises
    ------
    ValidationError
    """
    attempt = throttle.count_password(user=user)
    if attempt.wait_s:
        raise ValidationError(too_many(attempt.wait_s), code="throttled")
    if not user.check_password(password):
        raise ValidationError("That is not your password.", code="password_incorrect")
    attempt.succeeded()

"""Forms of accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib.auth import forms as auth_forms
from django.contrib.auth import get_user_model, password_validation
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from playground.accounts import audit, throttle
from playground.accounts.addresses import client_address
from playground.accounts.choices import Role, TokenScope
from playground.accounts.invitations import DAYS
from playground.accounts.teams import person_named
from playground.accounts.throttle import known_device
from playground.accounts.tokens import DEFAULT_DAYS

if TYPE_CHECKING:
    from playground.accounts.row_types import User

TOKEN_DAYS: Final = (7, 30, DEFAULT_DAYS, 365)


class Styled(forms.Form):
    """Puts the product's classes on its fields."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)


def dress(form: forms.BaseForm) -> None:
    """The product's classes on a form's fields, and no help that lists every rule of passwords."""
    for field in form.fields.values():
        field.widget.attrs["class"] = "sel" if isinstance(field.widget, forms.Select) else "inp"
        field.widget.attrs.pop("autofocus", None)


class PatientLoginForm(AuthenticationForm):
    """Counts each try before it tries; `attempt` says what came of it."""

    attempt: throttle.LoginAttempt | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)

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


class TokenForm(Styled):
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


class TeamForm(Styled):
    name = forms.CharField(
        max_length=100, label="Name of the team", widget=forms.TextInput({"autocomplete": "off"})
    )


ROLES: Final = [
    (Role.VIEWER, "viewer: looks"),
    (Role.EDITOR, "editor: changes clusters"),
    (Role.OWNER, "owner: also manages the team"),
]


class InviteForm(Styled):
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


class EmailForm(Styled):
    email = forms.EmailField(label="Mail address, for reset links", required=False)
    password = forms.CharField(
        label="Your password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )


class NewAccountForm(auth_forms.BaseUserCreationForm):  # type: ignore[type-arg]  # takes none when it runs
    """A name and a password for who was invited."""

    email = forms.EmailField(label="Mail address (optional, for reset links)", required=False)

    class Meta:
        model = get_user_model()
        fields = ("username", "email")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)
        self.fields["username"].label = "Name"
        self.fields["username"].help_text = ""
        plain_passwords(self)


class ChangePasswordForm(auth_forms.PasswordChangeForm):
    """The old password is counted before it is tried, as a login's is."""

    end_tokens = forms.BooleanField(label="Delete my tokens, too", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)
        plain_passwords(self)
        self.fields["end_tokens"].widget.attrs["class"] = "check"

    def clean_old_password(self) -> str:
        check_own_password(self.user, self.cleaned_data["old_password"])
        return str(self.cleaned_data["old_password"])


class ResetForm(auth_forms.PasswordResetForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)
        self.fields["email"].label = "Mail address of the account"


class NewPasswordForm(auth_forms.SetPasswordForm):  # type: ignore[type-arg]  # takes none when it runs
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)
        plain_passwords(self)


def check_own_password(user: User, password: str) -> None:
    """That who is logged in knows the password, counted before it is tried.

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


def plain_passwords(form: forms.BaseForm) -> None:
    """Labels for two fields of a new password, with the rules in one line."""
    for name, label in (("password1", "Password"), ("new_password1", "New password")):
        if name in form.fields:
            form.fields[name].label = label
            form.fields[name].help_text = " ".join(password_validation.password_validators_help_texts())
    for name in ("password2", "new_password2"):
        if name in form.fields:
            form.fields[name].label = "The same again"
            form.fields[name].help_text = ""

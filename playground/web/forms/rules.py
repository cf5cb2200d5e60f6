"""The form of a rule: a CEL expression that filters or scores."""

from typing import Any

from django import forms

from playground.engine import rules

AREA = {"rows": 3, "spellcheck": "false", "autocapitalize": "off"}


class RuleForm(forms.Form):
    """One rule; what its expressions mean is checked as a configuration would be."""

    name = forms.CharField(max_length=63, label="Name", help_text="such as fast-disk")
    filter = forms.CharField(
        required=False, strip=False, label="Filter: true where the pod may run",
        widget=forms.Textarea(attrs=AREA), help_text='such as node.metadata.labels.?disk.orValue("") == "ssd"',
    )  # fmt: skip
    reason = forms.CharField(
        required=False, max_length=256, label="Reason, told where it may not",
        help_text="such as: node(s) had no fast disk",
    )  # fmt: skip
    score = forms.CharField(
        required=False, strip=False, label="Score: a number, 0 to 100 unless it is normalized",
        widget=forms.Textarea(attrs=AREA), help_text="such as 100 * free.memory / allocatable.memory",
    )  # fmt: skip
    normalize = forms.ChoiceField(
        required=False,
        choices=[
            ("None", "as it is"),
            ("Highest", "the highest gets 100"),
            ("Lowest", "the lowest gets 100"),
        ],
        label="Normalize",
    )
    weight = forms.IntegerField(required=False, min_value=1, max_value=100, initial=1, label="Weight")
    pod = forms.CharField(
        required=False, max_length=320, label="Try it for the pod", help_text="namespace/name; empty: any pod"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["auto_id"] = "rule-%s"
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    def clean_name(self) -> str:
        """A name that a plugin may have behind `Rule/`."""
        name: str = self.cleaned_data["name"].removeprefix(f"{rules.FAMILY}/")
        if not rules.is_name(name):
            raise forms.ValidationError(
                "letters, digits, - _ and . only, with a letter or digit first and last"
            )
        return name

    def clean(self) -> dict[str, Any]:
        """Errors of the expressions, at their fields."""
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for item in rules.problems(self.rule_args(cleaned)):
                field = item.field if item.field in self.fields else None
                self.add_error(field, item.message)
        return cleaned

    @staticmethod
    def rule_args(cleaned: dict[str, Any]) -> dict[str, str]:
        """What a configuration writes of it."""
        return {field: str(cleaned.get(field) or "") for field in rules.FIELDS} | {
            "normalize": str(cleaned.get("normalize") or "None")
        }

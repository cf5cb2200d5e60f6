"""The people of a site, for its administrators (team mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts import invitations, passwords, teams
from playground.api.documentation import number, operation
from playground.api.pages import next_page
from playground.api.queries import whole_number
from playground.api.serializers import answers, requests
from playground.api.serializers.answers import Answer
from playground.api.serializers.shapes import flag, text, texts, whole
from playground.api.views.teams import INVITATION, TeamView, invitation_link, invitation_shown
from playground.clusters.errors import NotFound

if TYPE_CHECKING:
    from playground.accounts.row_types import User


class Person(Answer):
    id = whole()
    user = text()
    administrator = flag()
    active = flag()
    teams = texts()


class People(Answer):
    items = Person(many=True)
    next = text(allow_null=True)


_PERSON: Final = {"id": 2, "user": "grace", "administrator": False, "active": True, "teams": ["platform"]}


def _shown(person: User) -> dict[str, Any]:
    return {
        "id": person.pk,
        "user": person.get_username(),
        "administrator": person.is_superuser,
        "active": person.is_active,
        "teams": sorted(member.team.name for member in person.memberships.all()),
    }


class AdministratorView(TeamView):
    """To everybody else there is nothing here, as on the pages."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = hasattr(self, str(request.method).lower())  # 405 is right for any other method
        if known and (self.person is None or not self.person.is_superuser):
            raise NotFound(f"there is nothing at {request.path}")

    def one(self, user_id: int) -> User:
        found = teams.person_by_number(user_id)
        if found is None:
            raise NotFound(f"person {user_id} not found", kind="Person", name=str(user_id))
        return found


class AllPeople(AdministratorView):
    @operation(
        "List the people of the site",
        id="people_list",
        answers_={200: People},
        errors=(400, 404),
        parameters=[
            number("limit", "How many at most.", least=1, most=500),
            number("after", "Only people with a greater id."),
        ],
        answer_example={"items": [_PERSON], "next": None},
        tag="teams",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """For administrators: by id."""
        limit = whole_number(request, "limit", default=100, least=1, most=500) or 100
        after = whole_number(request, "after", default=0) or 0
        rows = teams.everyone().filter(pk__gt=after).order_by("pk")
        found = list(rows[: limit + 1])
        more = found[limit - 1].pk if len(found) > limit else None
        return Response(
            {"items": [_shown(one) for one in found[:limit]], "next": next_page(request, after=more)}
        )


class OnePerson(AdministratorView):
    @operation(
        "Close an account, or open it again",
        id="people_set_active",
        request=requests.Active,
        answers_={200: Person},
        errors=(400, 403, 404, 409, 413, 415),
        example={"active": False},
        answer_example=_PERSON | {"active": False},
        tag="teams",
    )
    def patch(self, request: Request, user_id: int) -> Response:
        """For administrators: tokens and sessions of a closed account end at once."""
        person = self.one(user_id)
        asked = requests.Active(data=request.data)
        asked.is_valid(raise_exception=True)
        passwords.set_active(by=self.person, user=person, active=asked.validated_data["active"])
        person.refresh_from_db()
        return Response(_shown(person))


class SiteInvitations(AdministratorView):
    told_once = True

    @operation(
        "List open invitations to the site",
        id="people_invitations_list",
        answers_={200: answers.Invitations},
        errors=(400, 404),
        answer_example={"items": [INVITATION]},
        tag="teams",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """For administrators. The links themselves were told once."""
        found = invitations.open_invitations(self.person, None)
        return Response({"items": [invitation_shown(one) for one in found]})

    @operation(
        "Invite a person to the site",
        id="people_invite",
        request=requests.SiteInvitation,
        answers_={201: answers.NewInvitation},
        errors=(400, 403, 404, 409, 413, 415),
        example={"expiresInDays": 7},
        answer_example=INVITATION | {"link": "https://playground.example/account/invitation/m0Rse-c0de/"},
        tag="teams",
    )
    def post(self, request: Request) -> Response:
        """For administrators: the answer holds the link, once."""
        asked = requests.SiteInvitation(data=request.data)
        asked.is_valid(raise_exception=True)
        made, secret = invitations.create_invitation(
            by=self.person, team=None, days=asked.validated_data["expiresInDays"]
        )
        return Response(invitation_shown(made) | {"link": invitation_link(request, secret)}, status=201)


class OneSiteInvitation(AdministratorView):
    @operation(
        "Withdraw an invitation to the site",
        id="people_invitations_withdraw",
        answers_={204: None},
        errors=(400, 404),
        tag="teams",
    )
    def delete(self, request: Request, invitation_id: int) -> Response:
        """Its link leads nowhere then."""
        if not invitations.withdraw(by=self.person, team=None, invitation_id=invitation_id):
            raise NotFound(f"invitation {invitation_id} not found", kind="Invitation")
        return Response(status=204)

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person of a team. Embedded mode has none: everybody at the machine is its owner.

    Our own model although it adds nothing yet: a user model cannot be changed once tables refer to it.
    """

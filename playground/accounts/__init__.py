"""Users; memberships and tokens come with teams."""

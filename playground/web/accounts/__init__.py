"""Pages of accounts: login, one's tokens and teams, invitations, new passwords, the audit list."""

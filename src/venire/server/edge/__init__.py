"""What every request goes through: limits, roles, sessions, errors, other servers."""

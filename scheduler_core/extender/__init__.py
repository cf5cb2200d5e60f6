"""HTTP extenders over an injected transport."""

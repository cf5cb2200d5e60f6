"""Views: each method is one call into a service or selector."""

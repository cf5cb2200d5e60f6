"""Programs that drive an instance from outside, over its REST API. README.md says which."""

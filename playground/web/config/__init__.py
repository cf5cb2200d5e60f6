"""The scheduler's configuration: plugins, release, rules, extenders, classes and budgets."""

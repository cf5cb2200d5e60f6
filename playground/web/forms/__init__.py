"""Forms of the pages. They check what a person typed; services check what it means."""

"""The playground's own mock extenders, as schedulers reach them: over HTTP."""

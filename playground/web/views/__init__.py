"""View functions: read with a selector or write with one service, then render. Nothing is decided here."""

"""Pages of scenarios: shares, replay, comparison, gallery, the best joint placement."""

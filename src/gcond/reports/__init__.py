"""Results as tables, figures and a page, for people to read."""

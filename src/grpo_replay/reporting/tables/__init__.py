"""Tables of a study, and their formats."""

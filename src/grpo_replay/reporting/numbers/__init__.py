"""The numbers that tables and figures show, each with its interval."""

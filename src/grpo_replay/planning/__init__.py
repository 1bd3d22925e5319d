"""What a run will do and cost, and what is refused before it starts."""

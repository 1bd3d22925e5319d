"""What is asked of a model, what is rewarded, and what is right."""

"""What every method starts from."""

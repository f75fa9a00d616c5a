"""What a training script itself counts and prints of its path."""

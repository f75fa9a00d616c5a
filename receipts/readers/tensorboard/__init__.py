"""TensorBoard: event files."""

"""Hugging Face Trainer: consoles and trainer_state.json."""

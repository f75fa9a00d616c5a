"""The Hugging Face Trainer: its console, its tables, trainer_state.json."""

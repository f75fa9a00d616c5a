"""modded-nanogpt: its logs."""

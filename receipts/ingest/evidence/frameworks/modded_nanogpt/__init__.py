"""modded-nanogpt's records and its forks."""

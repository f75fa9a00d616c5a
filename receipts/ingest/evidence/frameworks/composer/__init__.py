"""Composer, and LLM Foundry, which runs on it."""

"""MaxText: console logs, metrics files, configuration."""

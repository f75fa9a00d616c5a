"""nanotron: console logs and configuration."""

"""torchtitan: console logs and configuration."""

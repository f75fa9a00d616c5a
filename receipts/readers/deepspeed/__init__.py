"""DeepSpeed: console logs, reports, configuration."""

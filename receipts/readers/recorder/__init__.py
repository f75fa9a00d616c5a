"""The recorder's own companions: what the process that launched a job saw of it."""

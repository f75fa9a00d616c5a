"""Studies over several launches: bridges, sweeps, bisections and experiments, with their commands and pages."""

"""Pictures of a report, one a module: its values, how they are gathered, and the figure with its table and caption."""

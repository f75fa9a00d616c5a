"""Trust between strangers: signed statements, bundles and keys, with their commands."""

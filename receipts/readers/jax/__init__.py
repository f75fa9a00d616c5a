"""JAX: its compile log, monitoring events and transfer guard."""

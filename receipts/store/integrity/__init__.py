"""Whether a store is what was written: seals, the audit's reading, and indexes made anew."""

"""A line over time: launches of one experiment that differ in code, wheels, image and driver alone, and incidents."""

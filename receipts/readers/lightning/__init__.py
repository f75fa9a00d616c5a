"""Lightning: CSVLogger and console."""

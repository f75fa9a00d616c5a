"""What every room uses: errors, configuration, bundled resources, numbers with units, atomic writes of files."""

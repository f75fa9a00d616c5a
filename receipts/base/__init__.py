"""What every room uses: errors, configuration, bundled resources, units."""

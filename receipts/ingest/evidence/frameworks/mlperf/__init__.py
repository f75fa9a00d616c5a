"""MLPerf Training's logging."""

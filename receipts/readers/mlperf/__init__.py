"""MLPerf Training: the records of mlcommons/logging."""

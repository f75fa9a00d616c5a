"""Event files of TensorBoard, and the names that frameworks log to trackers."""

"""Settings of the environment: launch scripts and files of assignments."""

"""XLA: programs as text, profiles, memory of the runtime, and the reports of torch_xla."""

"""What a person starts and waits for: submit, run, export, import, audit, revalidate."""

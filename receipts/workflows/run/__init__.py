"""The runner's loop: launch a plan, tell how it ended, keep a receipt of it, and step down the lane's ladder."""

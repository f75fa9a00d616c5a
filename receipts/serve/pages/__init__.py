"""Pages of the server: each view a URL, rendered from the page model, in the words of the commands, without scripts."""

"""Capabilities that the kernel does without: a folder each, with its verbs, its questions and its pages."""

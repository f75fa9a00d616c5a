"""Bisecting over axes: the smallest set of changes that explains why one configuration is worse than another."""

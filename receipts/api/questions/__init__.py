"""The kernel's questions: a module a noun, which holds the declarations and loads what answers them when it is asked.

A new question is a function here, or in a module of a plugin: its command, its HTTP operation, its Python method and
its tool for agents follow from it (`receipts.api.question`).
"""

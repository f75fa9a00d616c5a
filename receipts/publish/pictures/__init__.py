"""Pictures and what they share: colours, figures as SVG, and chips over their physical topology.

Values in, text out.
"""

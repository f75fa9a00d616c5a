"""Pictures and what they share: colours, panels and figures as SVG.

Values in, text out.
"""

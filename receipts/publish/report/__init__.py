"""Reports: what the questions answer about a stretch of time, gathered as values and rendered as pages.

`collect` reads the store and gives a `WeekData`; `pair` and `claim` give the values of one comparison and one claim.
`render` and its like make files of them, `parquet` of what they were computed from.
"""

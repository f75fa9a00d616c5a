"""The pages of reports: values of `receipts.questions.week` as sections, tables and pictures. Nothing is computed here.

`template` reads what the templates of ``reports/`` say, `render` makes files of a page, and `basis` writes as Parquet
what a report was computed from.
"""

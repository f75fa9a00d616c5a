"""What a program asks of receipts, in Python: the commands' questions with the commands' answers.

`import receipts` leads here. Commands and the server put their questions to the same values, so that an answer is the
same text wherever it is read.
"""

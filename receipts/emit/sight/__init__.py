"""Sight: what the recorder sees of a job of PyTorch by itself, so that nothing has to be typed.

`watch` binds the parts to a recorder, `hooks` listens to torch, `steps` finds where steps end, `root` the model and
`model` what it is, `inputs` tokens and batch, `reads` loss and gradient norm, and `arm` does all of it for a script
without a line changed. Nothing here imports torch, raises into the job, or keeps a part of it alive.
"""

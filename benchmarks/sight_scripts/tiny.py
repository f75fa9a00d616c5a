"""A step of almost nothing, so that what is done beside it shows: its processor time, in microseconds a step."""

import json
import time

import torch

STEPS, LATER = 3000, 200
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(2, 4)
begun = 0.0
for step in range(STEPS + LATER):
    if step == LATER:  # after the warm-up and the trace
        begun = time.process_time()
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
spent = time.process_time() - begun
print("TRUTH " + json.dumps({"steps": STEPS + LATER, "ms": 1e3 * spent / STEPS}), flush=True)

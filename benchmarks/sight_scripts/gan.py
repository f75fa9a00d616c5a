"""A GAN: the discriminator steps twice for each step of the generator; no tokens, no blocks."""

import json
import time

import torch
from torch import nn

STEPS, ROWS = 40, 16
torch.manual_seed(0)
netG = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32))
netD = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
optG, optD = (torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (netG, netD))
criterion, times = nn.BCEWithLogitsLoss(), []
for step in range(STEPS):
    begun = time.perf_counter()
    for _ in range(2):
        netD.zero_grad()
        errD = criterion(netD(torch.randn(ROWS, 32) + 2), torch.ones(ROWS, 1))
        errD = errD + criterion(netD(netG(torch.randn(ROWS, 8)).detach()), torch.zeros(ROWS, 1))
        errD.backward()
        optD.step()
    netG.zero_grad()
    errG = criterion(netD(netG(torch.randn(ROWS, 8))), torch.ones(ROWS, 1))
    errG.backward()
    optG.step()
    times.append(time.perf_counter() - begun)
print("loss", errD.item(), errG.item())
truth = {"steps": STEPS, "dtype": "fp32", "recompute": "none", "posture": "eager"}
print("TRUTH", json.dumps(truth | {"ms": 1e3 * sorted(times)[STEPS // 2]}))

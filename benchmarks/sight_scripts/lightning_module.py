"""Lightning: a LightningModule around a decoder, clipping by the Trainer, validation twice."""

import json
import time
import warnings

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
STEPS, ROWS, LENGTH, VOCAB, DIM, LAYERS = 36, 4, 32, 64, 32, 2


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCAB, DIM)
        make = torch.nn.TransformerEncoderLayer
        self.blocks = torch.nn.ModuleList(make(DIM, 4, 128, dropout=0.0, batch_first=True) for _ in range(LAYERS))
        self.head = torch.nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        x, mask = self.embed(tokens), torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(x)


class Lit(LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.times = Decoder(), []

    def training_step(self, batch, index):
        self.times.append(time.perf_counter())
        return F.cross_entropy(self.net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    def validation_step(self, batch, index):
        self.net(batch[:, :-1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


torch.manual_seed(0)
rows = torch.randint(0, 20, (STEPS * ROWS, LENGTH + 1))
trainer = Trainer(max_steps=STEPS, accelerator="cpu", logger=False, enable_checkpointing=False, gradient_clip_val=1.0,
                  enable_progress_bar=False, enable_model_summary=False, val_check_interval=18, limit_val_batches=2)  # fmt: skip
lit = Lit()
trainer.fit(lit, DataLoader(rows, batch_size=ROWS), DataLoader(rows[:16], batch_size=ROWS))
gaps = sorted(after - before for before, after in zip(lit.times[10:], lit.times[11:], strict=False))
truth = {"steps": STEPS, "tokens": ROWS * LENGTH, "micro": ROWS, "length": LENGTH, "accumulation": 1, "depth": LAYERS}
truth |= {"hidden": DIM, "vocabulary": VOCAB, "heads": 4, "parameters": sum(p.numel() for p in lit.parameters())}
truth |= {"dtype": "fp32", "recompute": "none", "posture": "eager", "ms": 1e3 * gaps[len(gaps) // 2]}
print("TRUTH", json.dumps(truth))

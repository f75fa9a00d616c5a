"""transformers: its Trainer, `accelerate` around an own loop, and LoRA by peft; the first argument names which."""

import json
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

kind = sys.argv[1]
STEPS, ROWS, LENGTH, VOCAB, DIM, LAYERS, ACCUMULATION = 36, 2, 32, 96, 32, 3, 1 if kind == "peft" else 2
torch.manual_seed(0)
config = LlamaConfig(vocab_size=VOCAB, hidden_size=DIM, intermediate_size=80, num_hidden_layers=LAYERS,
                     num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)  # fmt: skip
model = LlamaForCausalLM(config)
parameters = sum(weight.numel() for weight in model.parameters())
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 20, (STEPS * ROWS * ACCUMULATION, LENGTH))]
times = []
if kind == "trainer":

    class Clock(TrainerCallback):
        def on_step_end(self, *given, **named):
            times.append(time.perf_counter())

    arguments = TrainingArguments("out", max_steps=STEPS, per_device_train_batch_size=ROWS, use_cpu=True, report_to=[],
                                  gradient_accumulation_steps=ACCUMULATION, logging_steps=6, save_strategy="no",
                                  disable_tqdm=True)  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Clock()]).train()
else:
    from accelerate import Accelerator
    from torch.utils.data import DataLoader

    if kind == "peft":
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
        parameters = sum(weight.numel() for weight in model.parameters())
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATION)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(rows, batch_size=ROWS))
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            times.append(time.perf_counter())
    print(loss.item())
gaps = sorted(after - before for before, after in zip(times[10:], times[11:], strict=False))
truth = {"steps": STEPS, "tokens": ACCUMULATION * ROWS * LENGTH, "micro": ROWS, "length": LENGTH, "depth": LAYERS}
truth |= {"accumulation": ACCUMULATION, "hidden": DIM, "vocabulary": VOCAB, "heads": 4, "kv_heads": 2}
truth |= {"parameters": parameters, "adapters": "lora" if kind == "peft" else "none", "dtype": "fp32"}
truth |= {"recompute": "none", "posture": "eager", "ms": 1e3 * gaps[len(gaps) // 2]}
print("TRUTH", json.dumps(truth))

"""What stands around each snippet of `docs/recorder.md`: the job that its lines are added to, by the section's name.

`RAN` jobs use the framework itself. `STAND_IN` ones call as the framework does, and prove nothing else of it.
"""

from __future__ import annotations

TRANSFORMERS = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=128)
rows = [{"input_ids": torch.arange(128) % 64, "labels": torch.arange(128) % 64} for _ in range(24)]
arguments = TrainingArguments(
    output_dir="out", max_steps=6, per_device_train_batch_size=2, gradient_accumulation_steps=2, logging_steps=2,
    eval_strategy="steps", eval_steps=3, save_steps=4, use_cpu=True, report_to=[], disable_tqdm=True,
    learning_rate=1e-3, seed=7)
trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=rows, eval_dataset=rows[:2])
"""

LIGHTNING = """
import logging, warnings
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def training_step(self, batch, index):
        return self.layer(batch).square().mean()
    def validation_step(self, batch, index):
        self.layer(batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

module = Model()
loader, validation = DataLoader(torch.randn(24, 8), batch_size=2), DataLoader(torch.randn(4, 8), batch_size=2)
options = dict(max_steps=6, accumulate_grad_batches=2, accelerator="cpu", devices=1, logger=False,
               val_check_interval=4, enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=1,
               default_root_dir="out")
"""

# Trainer.train is torchtitan's own, and looks its parts up as it does on a GPU; model, data and optimizer are none.
TORCHTITAN = """
import contextlib, os
from types import SimpleNamespace as Object
import torch
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
store = torch.distributed.HashStore()
torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
import torchtitan.trainer as titan
titan.time = Object(sleep=lambda seconds: None)
titan.dist_utils.set_pg_timeouts = lambda **given: None

class Profile:
    def build(self, **given):
        return contextlib.nullcontext(Object(step=lambda: None))

class Checkpoints:
    def load(self, step):
        pass
    def _should_save(self, curr_step, last_step=False):
        return last_step
    def save(self, curr_step, last_step=False):
        pass

class Metrics:
    def log(self, step, global_avg_loss, global_max_loss, grad_norm, extra_metrics=None):
        pass

class Small(titan.Trainer):
    def __init__(self):
        training = Object(local_batch_size=4, global_batch_size=-1, seq_len=16, steps=6)
        self.config = Object(training=training, profiler=Profile(), checkpoint=Object(load_step=-1), dump_folder="out",
                             validator=Object(enable=True), comm=Object(train_timeout_seconds=9))
        self.step, self.dataloader, self.gradient_accumulation_steps = 0, None, 2
        self.parallel_dims = Object(tp=1, pp=1, cp=1, ep=1, dp_replicate=1, dp_shard=2)
        self.checkpointer, self.metrics_processor = Checkpoints(), Metrics()
        self.gc_handler = Object(run=lambda step: None)
        self.validator = Object(should_validate=lambda step: step % 3 == 0, validate=lambda parts, step: None)
        self.model_parts = []
    def batch_generator(self, loader):
        return iter(())
    def train_step(self, batches):
        self.metrics_processor.log(self.step, 4.0 - self.step / 10, 4.0, grad_norm=1.5)

trainer = Small()
"""

JAX = """
import jax, jax.numpy as jnp

def train_step(state, batch):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((batch @ w) ** 2))(state)
    return state - 0.1 * slope, loss

state, batches = jnp.ones((4, 4)), [jnp.full((2, 4), 0.5)] * 6
"""

COMPOSER = """
from types import SimpleNamespace as Object

class Trainer:
    def __init__(self, callbacks, steps):
        self.callbacks, self.steps = callbacks, steps
        self.state = Object(timestamp=Object(token=Object(value=0)), loss=None)
    def event(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self.state, None)
    def fit(self):
        self.event("fit_start")
        for step in range(self.steps):
            self.event("batch_start")
            self.state.loss = 4.0 - step
            self.state.timestamp.token.value += 512
            self.event("batch_end")
            if step == 2:
                self.event("eval_start")
                self.event("eval_end")
        self.event("fit_end")

options = {"steps": 6}
"""

MEGATRON = """
import sys
from types import ModuleType, SimpleNamespace as Object

SOURCE = '''
def get_current_global_batch_size():
    return 16
def train_step(forward_step_func, data_iterator, model, optimizer, opt_param_scheduler, config):
    return {"lm loss": 3.0}, 0, False, False, 0, 1.25, None
def training_log(loss_dict, total_loss_dict, learning_rate, decoupled_learning_rate, iteration, loss_scale,
                 report_memory_flag, skipped_iter, grad_norm, params_norm, num_zeros_in_grad):
    return report_memory_flag
def evaluate_and_print_results(prefix):
    pass
def save_checkpoint_and_time(iteration):
    pass
def pretrain(iterations):
    for iteration in range(iterations):
        losses, skipped, _, _, _, norm, _ = train_step(None, None, None, None, None, None)
        training_log(losses, {}, 1e-4, None, iteration, 1.0, False, skipped, norm, None, None)
        if iteration == 2:
            evaluate_and_print_results("i")
            save_checkpoint_and_time(iteration)
'''
for name in ("megatron", "megatron.training", "megatron.training.training", "megatron.training.global_vars"):
    module = sys.modules[name] = ModuleType(name)
    if "." in name:
        setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
training = sys.modules["megatron.training.training"]
exec(SOURCE, training.__dict__)
sys.modules["megatron.training.global_vars"]._GLOBAL_ARGS = Object(
    seq_length=32, global_batch_size=16, micro_batch_size=2, rampup_batch_size=None, num_layers=4, world_size=1)
pretrain, arguments = training.pretrain, (6,)
"""

MAXTEXT = """
from types import SimpleNamespace as Object

class Config:
    def __getattr__(self, name):
        known = {"global_batch_size_to_train_on": 8, "max_target_length": 64, "num_decoder_layers": 3, "emb_dim": 32}
        if name not in known:
            raise ValueError(f"{name} is no key of this configuration")
        return known[name]

def p_train_step(state, batch):
    return state + 1, {"scalar": {"learning/loss": 4.0 - state, "learning/grad_norm": 1.0}}

def train_loop(step, state):
    for batch in range(6):
        state, metrics = step(state, batch)

config, state = Config(), 0
"""

RAN = {"transformers": TRANSFORMERS, "Lightning": LIGHTNING, "torchtitan": TORCHTITAN, "JAX": JAX}
STAND_IN = {"Composer": COMPOSER, "Megatron-LM": MEGATRON, "MaxText": MAXTEXT}
# The module without which a job cannot run.
NEEDS = {"transformers": "accelerate", "Lightning": "lightning.pytorch", "torchtitan": "torchtitan.trainer"}
NEEDS["JAX"] = "jax"

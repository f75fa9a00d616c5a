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

# Trainer, model, data, validation and checkpoints are torchtitan's own. What a CPU lacks is stood in for: a device that
# has a name and memory, flex attention with a gradient, and the time-outs of process groups that newer torch has.
TORCHTITAN = """
import os, pathlib
from types import SimpleNamespace as Object
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
os.environ["TORCHDYNAMO_DISABLE"] = "1"
import torch, torch._utils
torch._utils._get_available_device_type = lambda: "cpu"
lacking = {"current_device": 0, "get_device_name": "CPU", "memory_stats": {}, "reset_peak_memory_stats": None}
lacking |= {"get_device_properties": Object(total_memory=1 << 34), "empty_cache": None}
for name, found in lacking.items():
    setattr(torch.cpu, name, lambda *given, found=found: found)

import datasets, pyarrow
from tokenizers import Tokenizer, models, pre_tokenizers
words = "the receipt names every axis that a launch has".split()
tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(["<unk>", "<eos>", *words])}, "<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.add_special_tokens(["<eos>"])
pathlib.Path("assets").mkdir()
tokenizer.save("assets/tokenizer.json")
pathlib.Path("assets/tokenizer_config.json").write_text('{"eos_token": "<eos>"}')
rows = datasets.Dataset(pyarrow.table({"text": [" ".join(words * 8)] * 400}), fingerprint="small")

import torchtitan.trainer as titan
from torchtitan.hf_datasets import text_datasets
from torchtitan.models.common.attention import FlexAttention
from torchtitan.models.llama3.config_registry import llama3_debugmodel

def attention(q, k, v, *, enable_gqa, **more):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=enable_gqa), None

FlexAttention._compiled_flex_attn = staticmethod(attention)
titan.dist_utils.set_pg_timeouts = lambda **given: None
text_datasets.DATASETS["small"] = type(text_datasets.DATASETS["c4"])(
    path="small", loader=lambda path: rows, sample_processor=lambda sample: sample["text"])
config = llama3_debugmodel()
config.hf_assets_path, config.dump_folder = "assets", "out"
config.dataloader.dataset = config.validator.dataloader.dataset = "small"
training, validator = config.training, config.validator
training.local_batch_size, training.global_batch_size, training.seq_len, training.steps = 2, 4, 32, 6
training.disable_cuda_graphs = True
validator.enable, validator.freq, validator.steps = True, 3, 1
config.checkpoint.enable, config.checkpoint.interval = True, 4
trainer = titan.Trainer(config)
"""

JAX = """
import jax, jax.numpy as jnp

def train_step(state, batch):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((batch @ w) ** 2))(state)
    return state - 0.1 * slope, loss

state, batches = jnp.ones((4, 4)), [jnp.full((2, 4), 0.5)] * 6
"""

COMPOSER = """
import torch

class Trainer:
    def __init__(self, callbacks, steps):
        self.callbacks, self.steps = callbacks, steps
        self.model = torch.nn.Sequential(torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64))
    def fit(self):
        for callback in self.callbacks:
            callback.fit_start(None, None)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for step in range(self.steps):
            ids = torch.randint(0, 64, (4, 128))
            torch.nn.functional.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()

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

# The step, its log and the evaluation are megatron.training's own, as are model, optimizer and schedule. They ask for
# CUDA by its name: here that is the processor. The loop around them is the job's, since Megatron's own waits for CUDA.
MEGATRON_CORE = """
import collections, contextlib, os, sys
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
import torch
from torch.overrides import TorchFunctionMode

class OnTheProcessor(TorchFunctionMode):
    def __torch_function__(self, function, types, given=(), named=None):
        named = dict(named or {})
        if str(named.get("device", "")).startswith("cuda"):
            named["device"] = "cpu"
        return function(*given, **named)

OnTheProcessor().__enter__()
torch.cuda.current_device = lambda: torch.device("cpu")
for name in ("empty_cache", "synchronize", "reset_peak_memory_stats"):
    setattr(torch.cuda, name, lambda *given: None)
for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
    setattr(torch.cuda, name, lambda *given: 0)
torch.cuda.memory_stats = lambda *given: collections.defaultdict(int)

import megatron.core.datasets.utils
import megatron.training.training as training
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.rerun_state_machine import RerunDataIterator
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.training.arguments import parse_args, validate_args
from megatron.training.global_vars import get_timers, set_global_variables
from megatron.training.initialize import initialize_megatron

sys.argv[1:] = '''--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128
    --micro-batch-size 2 --global-batch-size 4 --train-iters 6 --lr 1e-3 --lr-decay-style constant
    --distributed-backend gloo --use-cpu-initialization --transformer-impl local --tokenizer-type NullTokenizer
    --vocab-size 64 --mock-data --log-interval 1 --eval-iters 1 --rerun-mode disabled --no-persist-layer-norm
    --no-gradient-accumulation-fusion --no-masked-softmax-fusion --no-rope-fusion'''.split()
megatron_args = parse_args(ignore_unknown_args=True)
validate_args(megatron_args)
set_global_variables(megatron_args)
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
parallel_state.initialize_model_parallel()
megatron.core.datasets.utils.compile_helpers = lambda: None
initialize_megatron(allow_no_cuda=True)
tensor_parallel.get_cuda_rng_tracker().fork = contextlib.nullcontext

config = TransformerConfig(num_layers=2, hidden_size=32, num_attention_heads=4, use_cpu_initialization=True,
                           pipeline_dtype=torch.float32)
gpt = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=64, max_sequence_length=128)
model = [DistributedDataParallel(config, DistributedDataParallelConfig(), gpt)]
optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-3, clip_grad=0.0), model)
scheduler = OptimizerParamScheduler(
    optimizer, init_lr=0.0, max_lr=1e-3, min_lr=0.0, lr_warmup_steps=0, lr_decay_steps=100, lr_decay_style="constant",
    start_wd=0.0, end_wd=0.0, wd_incr_steps=100, wd_incr_style="constant")
batches = RerunDataIterator(iter(lambda: torch.arange(256).view(2, 128) % 64, None))

def loss_of(output):
    loss = output.float().mean()
    return loss, torch.tensor(1), {"lm loss": torch.stack([loss.detach(), torch.tensor(1.0)])}

def forward_step(iterator, model):
    tokens = next(iterator)
    mask = torch.triu(torch.ones(1, 1, 128, 128, dtype=torch.bool), 1)
    return model(tokens, torch.arange(128).expand(2, 128), mask, labels=tokens.roll(-1, 1)), loss_of

def pretrain(iterations):
    get_timers()("interval-time", log_level=0).start(barrier=True)
    totals, report, schedule = {}, False, get_forward_backward_func()
    for iteration in range(iterations):
        losses, skipped, _, _, _, norm, zeros, logit = training.train_step(
            forward_step, batches, model, optimizer, scheduler, config, schedule, iteration=iteration)
        report = training.training_log(
            losses, totals, 1e-3, iteration + 1, 1.0, report, skipped, norm, None, zeros, logit)
        if iteration == 2:
            training.evaluate_and_print_results(
                "i", forward_step, batches, model, iteration, None, config, write_to_tensorboard=False)

arguments = (6,)
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

# MaxText's own, from its configuration to its loop. The page's line stands inside that loop, where the step is jitted:
# here the loop is given the recorded step by the function that jits it.
MAXTEXT_ITSELF = """
from pathlib import Path
import maxtext
import maxtext.trainers.pre_train.train as train
from maxtext.utils import train_utils

words = {"run_name": "small", "base_output_directory": "out", "steps": 6, "hardware": "cpu",
         "dataset_type": "synthetic", "base_emb_dim": 32, "base_num_query_heads": 4, "base_num_kv_heads": 4,
         "head_dim": 8, "base_mlp_dim": 64,
         "base_num_decoder_layers": 2, "vocab_size": 128, "max_target_length": 256, "per_device_batch_size": 2,
         "attention": "dot_product", "enable_checkpointing": False, "enable_goodput_recording": False,
         "skip_jax_distributed_system": True}
base = Path(maxtext.__file__).parent / "configs" / "base.yml"
config, state = train.initialize(["train", str(base), *(f"{name}={value}" for name, value in words.items())])
jits, jitted = train_utils.jit_train_and_eval_step, []

class Step:
    def __call__(self, *given, **named):
        return jitted[-1](*given, **named)
    def __getattr__(self, name):
        return getattr(jitted[-1], name)

p_train_step = Step()

def train_loop(step, goodput):
    def jit(*given, **named):
        inner, evaluation = jits(*given, **named)
        jitted.append(inner)
        return step, evaluation
    train_utils.jit_train_and_eval_step = jit
    train.train_loop(config, goodput)
"""

RAN = {"transformers": TRANSFORMERS, "Lightning": LIGHTNING, "torchtitan": TORCHTITAN, "JAX": JAX}
RAN |= {"Composer": COMPOSER, "Megatron-LM": MEGATRON_CORE, "MaxText": MAXTEXT_ITSELF}
STAND_IN = {"Megatron-LM": MEGATRON, "MaxText": MAXTEXT}
# The module without which a job cannot run.
NEEDS = {"transformers": "accelerate", "Lightning": "lightning.pytorch", "torchtitan": "torchtitan.trainer, tokenizers"}
NEEDS |= {
    "JAX": "jax",
    "Composer": "torch",
    "Megatron-LM": "megatron.training.training",
    "MaxText": "maxtext.trainers.pre_train.train",
}

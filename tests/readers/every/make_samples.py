"""Writes the samples of lanes that need an accelerator: ``python tests/readers/every/make_samples.py``.

Traces hold what kineto writes of a step, event by event, with kernels of the names that the libraries give them; logs
hold each framework's own lines. All figures are made up. The traces of `cpu-torch` and all compiled programs are
recorded: see ``samples/README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "samples"
STEPS = 2
NVJET_BF16 = "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT"
NVJET_FP8 = "nvjet_sm90_qqtst_128x256_128x4_1x2_h_bz_coopA_TNT"
CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0"
CUDNN_BACK = "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_3_64x64x128_4x1x1_kernel0_0"
SDPA = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 64, 64, 4>, false, true>"
SDPA_BACK = (
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<128>>"
)
FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>"
FLASH_BACK = "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8>>"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, c10::BFloat16, float, 10, false, false>"
TE_SOFTMAX = "void transformer_engine::scaled_aligned_causal_masked_softmax_warp_forward<__nv_bfloat16, float, 10>"
TE_NORM = "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<transformer_engine::Kernel_traits>"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
INDUCTOR = "triton_poi_fused_mul_silu_0"
BF16, SHAPES = ["c10::BFloat16", "c10::BFloat16"], [[2048, 1024], [1024, 4096]]


@dataclass
class Trace:
    """Events of one rank's trace, on two threads of the host and one stream of the device."""

    chip: str = "NVIDIA H200"
    world: int = 8
    at: float = 1000.0
    events: list[dict[str, Any]] = field(default_factory=list)

    def event(self, category: str, name: str, duration: float, tid: int = 71, **arguments: Any) -> None:
        """One event that begins now."""
        where = {"pid": 0, "tid": 7} if category in ("kernel", "gpu_memcpy") else {"pid": 70, "tid": tid}
        begin = {"ts": round(self.at, 3), "dur": duration}
        self.events.append({"ph": "X", "cat": category, "name": name, **where, **begin, "args": arguments})

    def run(self, operator: str, *kernels: str, tid: int = 71, seconds: float = 40.0, **arguments: Any) -> None:
        """An operator that launches kernels, one after another."""
        self.event("cpu_op", operator, 20.0, tid, **arguments)
        for kernel in kernels:
            self.at += 3.0
            self.event("cuda_runtime", "cudaLaunchKernelExC", 2.0, tid)
            self.event("kernel", kernel, seconds, device=0, stream=7)
        self.at += 25.0

    def matmul(self, kernel: str = NVJET_BF16, operator: str = "aten::mm", tid: int = 71) -> None:
        """A multiplication of torch."""
        self.run(operator, kernel, tid=tid, **{"Input Dims": SHAPES, "Input type": BF16})

    def matmul_on_host(self) -> None:
        """A multiplication that launches nothing: its tensors live on the host."""
        self.event("cpu_op", "aten::addmm", 900.0, **{"Input Dims": [[4096], [64, 1024], [1024, 4096]]})
        self.at += 950.0

    def write(self, path: Path, cut: bool = False) -> None:
        """The document, as `export_chrome_trace` writes it; ``cut`` leaves its end out."""
        head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": self.chip, "computeMajor": 9, "computeMinor": 0}],
            "cuda_runtime_version": 12080,
            "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": self.world, "nccl_version": "2.27.5"},
            "record_shapes": 1,
        }
        rows = ",\n".join(json.dumps(event) for event in self.events)
        text = json.dumps(head)[:-1] + f', "traceEvents": [\n{rows}\n], "traceName": "{path.name}"}}\n'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text[: len(text) * 2 // 3] if cut else text, encoding="utf-8")


def steps(trace: Trace) -> Iterator[int]:
    """The steps of a trace, each under its mark."""
    for number in range(STEPS):
        mark = len(trace.events)
        begin = trace.at
        yield number
        trace.event("user_annotation", "Optimizer.step#AdamW.step", 30.0)
        trace.run("aten::_fused_adamw_", "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>")
        row = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number + 20}", "pid": 70, "tid": 71}
        trace.events.insert(mark, row | {"ts": begin, "dur": round(trace.at - begin, 3), "args": {}})
        trace.at += 10.0


def megatron(gemm: str = NVJET_BF16, attention: Iterable[str] = (CUDNN, CUDNN_BACK), **broken: bool) -> Trace:
    """Megatron-Core with Transformer Engine modules."""
    trace, (forward, back) = Trace(), attention
    for _ in steps(trace):
        for _ in range(2):
            trace.run("_LayerNormLinear", TE_NORM, gemm)
            name = "FusedAttnFunc" if forward == CUDNN else "transformer_engine::scaled_softmax"
            trace.run(name, forward)
            trace.run("_Linear", gemm)
            if broken.get("region"):
                trace.event("cpu_op", "Torch-Compiled Region: 0/0", 30.0)
                trace.at += 2.0
                trace.event("cpu_op", "CompiledFunction", 25.0)
                trace.run("## Call CompiledFxGraph fabc ##", INDUCTOR)
            if broken.get("whole"):
                trace.event("cpu_op", "Torch-Compiled Region: 1/0", 60.0)
                trace.at += 2.0
                trace.matmul()
            trace.run("_LayerNormMLP", TE_NORM, gemm, gemm)
        if broken.get("host"):
            trace.matmul_on_host()
        trace.run("_LayerNormMLPBackward", gemm, gemm, tid=72)
        trace.run("FusedAttnFuncBackward" if forward == CUDNN else "SoftmaxBackward", back, tid=72)
        trace.run("_LayerNormLinearBackward", gemm, tid=72)
        trace.run("nccl:_reduce_scatter_base", REDUCE)
    return trace


def sharded(
    gemm: str = NVJET_BF16,
    attention: tuple[str, str, str] = ("aten::_scaled_dot_product_flash_attention", SDPA, SDPA_BACK),
    *,
    fsdp: bool = True,
    blocks: bool = False,
    whole: bool = False,
    host: bool = False,
    operator: str = "aten::mm",
    world: int = 8,
) -> Trace:
    """Modules of torch, sharded by FSDP2 or by nothing that a trace shows; compiled block by block, whole, or not."""
    trace, (name, forward, back) = Trace(world=world), attention
    for _ in steps(trace):
        if whole:
            trace.event("cpu_op", "Torch-Compiled Region: 0/0", 700.0)
        for layer in range(2):
            if fsdp:
                trace.event("user_annotation", f"FSDP::all_gather (layers.{layer})", 20.0)
                trace.run("fsdp::all_gather_copy_in", GATHER)
            if blocks:
                trace.event("cpu_op", "Torch-Compiled Region: 2/0", 115.0)
                trace.at += 1.0
            trace.matmul(gemm, operator)
            trace.run(name, forward)
            trace.matmul(gemm, operator)
        if blocks or not whole:
            trace.at += 200.0
            trace.matmul(NVJET_BF16)
        if host:
            trace.matmul_on_host()
        trace.at += 700.0
        for _ in range(2):
            if blocks or whole:
                trace.event("cpu_op", "autograd::engine::evaluate_function: CompiledFunctionBackward", 120.0, 72)
                trace.event("cpu_op", "CompiledFunctionBackward", 115.0, 72)
                trace.at += 1.0
            trace.matmul(gemm, operator, tid=72)
            trace.run(f"{name}_backward", back, tid=72)
            trace.matmul(gemm, operator, tid=72)
        if fsdp:
            trace.run("fsdp::chunk_cat", REDUCE)
    return trace


UNFUSED = ("aten::_scaled_dot_product_attention_math", SOFTMAX, SOFTMAX)
PACKAGE = ("FlashAttnFunc", FLASH, FLASH_BACK)


def traces() -> None:
    """Every trace, by lane: one of the path, and one broken in each way."""
    lane = FOLDER / "nvidia-megatron"
    megatron().write(lane / "trace.json")
    megatron(gemm=NVJET_FP8).write(lane / "trace-fp8.json")
    megatron(region=True).write(lane / "trace-helpers.json")
    megatron(attention=(TE_SOFTMAX, TE_SOFTMAX)).write(lane / "trace-unfused.json")
    megatron(host=True).write(lane / "trace-host.json")
    megatron(whole=True).write(lane / "trace-compiled.json")
    megatron().write(lane / "trace-cut.json", cut=True)
    for name, fsdp in (
        *(("nvidia-fsdp2", True), ("nvidia-torchtitan", True)),
        *(("nvidia-torch", False), ("deepspeed-zero-offload", False)),
    ):
        lane = FOLDER / name
        sharded(fsdp=fsdp).write(lane / "trace.json")
        sharded(fsdp=fsdp, attention=UNFUSED).write(lane / "trace-unfused.json")
        sharded(fsdp=fsdp, host=True).write(lane / "trace-host.json")
        sharded(fsdp=fsdp, whole=True).write(lane / "trace-whole.json")
    sharded(blocks=True).write(FOLDER / "nvidia-torchtitan" / "trace-blocks.json")
    sharded(gemm=NVJET_FP8, operator="aten::_scaled_mm").write(FOLDER / "nvidia-fsdp2" / "trace-fp8.json")
    lane = FOLDER / "nanotron"
    sharded(fsdp=False, attention=PACKAGE).write(lane / "trace.json")
    sharded(fsdp=False, attention=UNFUSED).write(lane / "trace-unfused.json")
    sharded(fsdp=False, attention=PACKAGE, blocks=True).write(lane / "trace-blocks.json")
    sharded(fsdp=False, attention=PACKAGE, host=True).write(lane / "trace-host.json")


MEGATRON_ARGUMENTS = {
    "attention_backend": "AttnBackend.fused",
    "bf16": "True",
    "context_parallel_size": "1",
    "cuda_graph_impl": "none",
    "data_parallel_size": "8",
    "expert_model_parallel_size": "1",
    "fp8": "None",
    "global_batch_size": "64",
    "hidden_size": "1024",
    "micro_batch_size": "2",
    "num_attention_heads": "8",
    "num_layers": "2",
    "pipeline_model_parallel_size": "1",
    "recompute_granularity": "None",
    "seq_length": "1024",
    "tensor_model_parallel_size": "1",
    "transformer_impl": "transformer_engine",
    "world_size": "8",
}


def megatron_log(**arguments: str) -> str:
    """A training log with the arguments that Megatron dumps, and six iterations."""
    known = MEGATRON_ARGUMENTS | arguments
    dump = "".join(f"  {name} {'.' * (46 - len(name))} {value}\n" for name, value in known.items())
    lines = "".join(
        f" [2026-05-04 09:00:{step:02d}.250000] iteration {step:8d}/       6 | consumed samples: {step * 64:12d} |"
        f" elapsed time per iteration (ms): {700 + step:.1f} | throughput per GPU (TFLOP/s/GPU): 310.5 |"
        f" learning rate: 1.000000E-04 | global batch size:    64 | lm loss: {8 - step / 10:.6E} | loss scale: 1.0 |"
        f" grad norm: 1.250 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step in range(1, 7)
    )
    return (
        "using world size: 8, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 1, "
        "pipeline-model-parallel size: 1\n------------------------ arguments ------------------------\n"
        f"{dump}-------------------- end of arguments ---------------------\n{lines}"
    )


def titan_log(compiled: bool) -> str:
    """torchtitan's own lines: configuration, what was applied, metrics."""
    head = "[titan] 2026-05-04 09:00:00,100 - root - INFO - "
    config = {
        "model": {"name": "llama3", "flavor": "debug"},
        "training": {"local_batch_size": 2, "seq_len": 1024, "mixed_precision_param": "bfloat16", "steps": 6},
        "parallelism": {"data_parallel_shard_degree": 8, "data_parallel_replicate_degree": 1},
        "activation_checkpoint": {"mode": "none"},
        "compile": {"enable": compiled},
    }
    lines = [
        f"{head}Running with args: {json.dumps(config, indent=2)}",
        f"{head}Building 1-D device mesh with ['dp_shard'], [8]",
        *([f"{head}Compiling each TransformerBlock with torch.compile"] if compiled else []),
        f"{head}Applied FSDP to the model",
    ]
    lines += [
        f"[titan] 2026-05-04 09:00:{step:02d},512 - root - INFO - step: {step:2d}  loss: {9 - step / 10:8.5f}  "
        f"grad_norm:  1.2{step}00  memory: 40.25GiB(28.75%)  tps: {8000 + step:,}  tflops: 251.20  mfu: 25.40%"
        for step in range(1, 7)
    ]
    # torchrun's tee marks every line with its rank.
    return "".join(f"[rank0]:{line}\n" for line in "\n".join(lines).split("\n"))


def deepspeed_log() -> str:
    """DeepSpeed's lines at level INFO, with the configuration that the engine prints."""
    head = "[2026-05-04 09:00:{:02d},500] [INFO] [logging.py:123:log_dist] [Rank 0] "
    config = (
        "[2026-05-04 09:00:00,200] [INFO] [config.py:{}:print]   {} {}\n",
        {
            "bfloat16_config": "enabled=True immediate_grad_update=True",
            "gradient_accumulation_steps": "1",
            "train_batch_size": "64",
            "train_micro_batch_size_per_gpu": "8",
            "world_size": "8",
            "zero_enabled": "True",
            "zero_optimization_stage": "3",
        },
    )
    text = config[0].format(1007, "DeepSpeedEngine", "configuration:").replace("   DeepSpeed", " DeepSpeed")
    for name, value in config[1].items():
        text += config[0].format(1011, name.ljust(30, " "), f"{'.' * 3} {value}")
    for step in range(1, 7):
        text += head.format(step) + f"step={step}, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]\n"
        text += head.format(step) + "time (ms) | fwd: 310.20 | bwd: 640.10 | step: 205.40\n"
    return text


def nanotron_log() -> str:
    """nanotron's iteration lines."""
    head = "05/04/2026 09:00:{:02d} [INFO|DP=0|PP=0|TP=0|ip-10-0-0-1]: "
    text = head.format(0) + "Config(general=GeneralArgs(project='debug', run='debug', seed=42), "
    text += "parallelism=ParallelismArgs(dp=8, pp=1, tp=1, expert_parallel_size=1), "
    text += "tokens=TokensArgs(sequence_length=1024, train_steps=6, micro_batch_size=8, "
    text += "batch_accumulation_per_replica=1), model=ModelArgs(dtype=torch.bfloat16, ddp_bucket_cap_mb=25))\n"
    for step in range(1, 7):
        cells = f"consumed_tokens: {step * 65_536 / 1000:.3g}K | elapsed_time_per_iteration_ms: 80{step} | "
        cells += f"tokens_per_sec: 81.{step}K | tokens_per_sec_per_gpu: 10.{step}K | global_batch_size: 65.5K | "
        cells += (
            f"lm_loss: {9 - step / 10:.3g} | lr: 0.0001 | model_tflops_per_gpu: 310 | hardware_tflops_per_gpu: 310 | "
        )
        text += head.format(step) + f"iteration: {step} / 6 | {cells}grad_norm: 1.2{step}\n"
    return text


def loop_log() -> str:
    """A training script of one's own: a JSON object a step."""
    rows = ({"step": step, "step_time_ms": 240.0 + step, "loss": 8 - step / 10} for step in range(1, 7))
    return "2026-05-04 09:00:00,100 begin\n" + "".join(f"{json.dumps(row)}\n" for row in rows)


def maxtext_log() -> str:
    """MaxText's lines: parameters, the mesh, memory, steps."""
    head = "I0504 09:00:{:02d}.100000 140 {}] "
    config = {
        "model_name": "llama3-8b",
        "attention": "flash",
        "hardware": "tpu",
        "dtype": "bfloat16",
        "quantization": "",
        "remat_policy": "none",
        "ici_fsdp_parallelism": "4",
        "ici_data_parallelism": "1",
        "ici_tensor_parallelism": "1",
        "per_device_batch_size": "2.0",
        "max_target_length": "512",
        "steps": "6",
    }
    text = head.format(0, "pyconfig.py:120") + "Num_devices: 4, shape (1, 1, 4, 1)\n"
    text += "".join(f"{head.format(0, 'pyconfig.py:300')}Config param {key}: {config[key]}\n" for key in sorted(config))
    for step in range(6):
        text += head.format(step + 1, "metric_logger.py:180")
        text += (
            f"completed step: {step}, seconds: 0.50{step}, TFLOP/s/device: 210.{step}, Tokens/s/device: 2040.{step}, "
        )
        text += f"total_weights: 4096, loss: {9 - step / 10:.3f}\n"
    return text


def jax_profile(reads: bool) -> dict[str, Any]:
    """A profile of two steps on one TPU, in the Chrome format: a plane of the host, and one of the device."""
    planes = {701: ("/host:CPU", {1: "python"}), 3: ("/device:TPU:0", {2: "Steps", 3: "XLA Modules", 4: "XLA Ops"})}
    events: list[dict[str, Any]] = []
    for process, (plane, threads) in planes.items():
        events.append({"ph": "M", "pid": process, "name": "process_name", "args": {"name": plane}})
        for thread, name in threads.items():
            row = {"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": name}}
            events.append(row)

    def add(process: int, thread: int, name: str, begin: float, duration: float, **arguments: str) -> None:
        row = {"ph": "X", "pid": process, "tid": thread, "ts": begin, "dur": duration, "name": name}
        events.append(row | ({"args": arguments} if arguments else {}))

    for step in range(STEPS):
        at = 1000.0 * step
        add(701, 1, "PjitFunction(train_step)", at + 1, 80.0)
        if reads:
            add(701, 1, "np.asarray(jax.Array)", at + 90, 850.0)
        add(3, 3, "jit_train_step(1177)", at + 100, 800.0)
        add(3, 4, "fusion.12", at + 110, 300.0, long_name="%fusion.12 = bf16[8,512,256] fusion(%p)")
        add(3, 4, "splash_mha_fwd.3", at + 420, 200.0, tf_op="jit(train_step)/splash_mha_fwd/pallas_call:")
    return {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}


def metrics_report(steps_done: int, **counters: int) -> str:
    """torch_xla's report of a clean run after so many steps, with further counters."""

    def metric(name: str, samples: int, spent: str) -> str:
        percentiles = "  Percentiles: 1%=001ms; 5%=001ms; 10%=001ms; 20%=001ms; 50%=001ms; 80%=001ms; 90%=001ms\n"
        return f"Metric: {name}\n  TotalSamples: {samples}\n  Accumulator: {spent}\n{percentiles}"

    reads = counters.pop("reads", 0)
    text = metric("CompileTime", 2, "03s201ms120.500us") + metric("ExecuteReplicatedTime", steps_done, "01s020ms")
    if reads:
        text += metric("TransferFromDeviceTime", reads, "210ms004.100us")
    known = {"CachedCompile": steps_done - 2, "CreateXlaTensor": 410, "MarkStep": steps_done, "UncachedCompile": 2}
    known |= {"xla::mm": 24, "xla::_to_copy": 40, **counters}
    return text + "".join(f"Counter: {name}\n  Value: {known[name]}\n" for name in sorted(known))


def debug_blocks(cause: str, read: bool = False) -> str:
    """What PT_XLA_DEBUG_LEVEL=2 prints of two compilations and twelve executions."""

    def block(kind: str, why: str, frames: tuple[str, ...]) -> str:
        rule = "=" * 80
        lines = [rule, f"{kind} Cause", f"  {why}", "Graph Info: ", "  Graph Name: step", f"  Graph Hash: {'5e' * 16}"]
        lines += ["  Number of Graph Inputs: 19", "  Number of Graph Outputs: 18", "Python Frame Triggered Execution: "]
        lines += [f"  {frame}" for frame in frames]
        return "".join(f"{kind} Analysis: {line}\n" for line in [*lines, "-" * 80, rule])

    frames = ("sync (site-packages/torch_xla/torch_xla.py:87)", "_compile (site-packages/torch_xla/torch_xla.py:199)")
    frames += ("train (train.py:88)",)
    text = ""
    for step in range(12):
        if step < 2:
            text += block("Compilation", cause, frames)
        text += block("Execution", cause, frames)
        if read:
            why = "most likely user code trying to access tensor value before torch_xla.sync"
            text += block("Execution", why, ("log (train.py:93)", "train (train.py:90)"))
    return text


def engine_log() -> str:
    """What NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 prints of one selection."""
    config = {
        "transformer_engine_version": "2.13.0",
        "compute_capability": "sm90",
        "flash_attn_version": "2.8.3",
        "cudnn_version": "9.20.0",
        "qkv_type": "<class 'torch.Tensor'>",
        "qkv_dtype": "torch.bfloat16",
        "qkv_layout": "sbhd_sbhd_sbhd",
        "max_seqlen_q": 1024,
        "attn_mask_type": "causal",
        "fp8": False,
    }
    head = "[DEBUG    | DotProductAttention]: "
    return (
        f"{head}Running with config={config}\n"
        f"{head}Available backends = {{FlashAttention=True (2.8.3), FusedAttention=True (sub-backend 1), "
        "UnfusedDotProductAttention=True}\n"
        f"{head}Selected backend = FusedAttention (sub-backend 1).\n"
        "[INFO     | DotProductAttention]: Running with FusedAttention backend (sub-backend 1)\n"
    )


def freeze(**wheels: str) -> str:
    """What `pip freeze` prints, with the versions that matter."""
    known = {"absl-py": "2.3.1", "numpy": "2.3.4", "packaging": "25.0", "scipy": "1.16.3"}
    found = known | {name.replace("__", "-"): version for name, version in wheels.items()}
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found))


def logs() -> None:
    """Every training log, by lane."""
    texts = {
        "nvidia-megatron/run.log": megatron_log(),
        "nvidia-megatron/run-fp8.log": megatron_log(fp8="hybrid"),
        "nvidia-megatron/engine.log": engine_log(),
        "nvidia-fsdp2/run.log": loop_log(),
        "nvidia-torch/run.log": loop_log(),
        "nvidia-torchtitan/run.log": titan_log(compiled=False),
        "nvidia-torchtitan/run-blocks.log": titan_log(compiled=True),
        "deepspeed-zero-offload/run.log": deepspeed_log(),
        "nanotron/run.log": nanotron_log(),
        "tpu-maxtext/run.log": maxtext_log(),
        "tpu-maxtext/profile.json": json.dumps(jax_profile(reads=False), indent=0) + "\n",
        "tpu-maxtext/profile-reads.json": json.dumps(jax_profile(reads=True), indent=0) + "\n",
        "tpu-maxtext/freeze.txt": freeze(jax="0.10.2", jaxlib="0.10.2", libtpu="0.0.42"),
        "tpu-torch-xla/freeze.txt": freeze(torch="2.9.0a0+git21fec65", torch_xla="2.9.0+gitc04e61c", libtpu="0.0.36"),
        "cpu-jax/freeze.txt": freeze(jax="0.10.2", jaxlib="0.10.2"),
        "tpu-torch-xla/run.log": loop_log(),
        "tpu-torch-xla/warm.txt": metrics_report(6),
        "tpu-torch-xla/end.txt": metrics_report(26),
        "tpu-torch-xla/end-median.txt": metrics_report(26, reads=20, **{"aten::median": 20}),
        "tpu-torch-xla/end-item.txt": metrics_report(26, reads=20, **{"aten::_local_scalar_dense": 20}),
        "tpu-torch-xla/debug.log": debug_blocks("torch_xla.compile"),
        "tpu-torch-xla/debug-lazy.log": debug_blocks("user torch_xla.sync"),
        "cpu-torch/run.log": loop_log(),
        "cpu-jax/run.log": loop_log(),
        "cpu-torch-xla/run.log": loop_log(),
        "cpu-torch-xla/freeze.txt": freeze(torch="2.9.0", torch_xla="2.9.0"),
    }
    for name, text in texts.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    traces()
    logs()

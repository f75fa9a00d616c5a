"""Loops that a table describes: each table reads a line of its framework, and nothing of its evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from receipts.ingest import vocabulary
from receipts.ingest.evidence import read
from receipts.ingest.reader import line_readers
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.ingest.steps import FIELDS
from receipts.readers.loops.loop import READERS

GIB: Final = 2**30
PEAKS: Final = ("peak_bytes", "peak_reserved_bytes")
# By table: the lines of steps 7 and 8, and what the first one says.
LINES: dict[str, tuple[str, dict[str, float]]] = {
    "composer": (
        "[batch=7/48]:\n\t Train loss/train/total: 2.5\n\t Train throughput/device/mfu: 0.4",
        {"loss": 2.5, "mfu": 0.4},
    ),
    "pytorch_loop": (
        "iter 7: loss 2.5, time 250.25ms, mfu 31.25%",
        {"loss": 2.5, "step_seconds": 0.25025, "mfu": 0.3125},
    ),
    "tinygrad": (
        "    7  250.25 ms run,    1.21 ms python,   0.15 ms fetch data,  248.89 ms NV * 8,  2.50 loss, 0.000100 LR, "
        "78.12 GB used,  9876.54 GFLOPS",
        {"loss": 2.5, "step_seconds": 0.25025},
    ),
    "torchtune": (
        "Step 7 | loss:2.5 lr:2e-05 tokens_per_second_per_gpu:4512.25 grad_norm:1.5 peak_memory_active:40.5"
        " peak_memory_alloc:40.25 peak_memory_reserved:45.5",
        {"loss": 2.5, "grad_norm": 1.5, "tokens_per_second_per_chip": 4512.25, "peak_bytes": 40.25 * GIB}
        | {"peak_reserved_bytes": 45.5 * GIB},
    ),
    "verl_lines": (
        "(TaskRunner pid=7) step:7\n - actor/entropy:0.5\n - actor/grad_norm:1.5\n - perf/throughput:3164.5\n"
        " - perf/time_per_step:86.5\n - perf/max_memory_reserved_gb:94.5",
        {"grad_norm": 1.5, "step_seconds": 86.5, "tokens_per_second_per_chip": 3164.5}
        | {"peak_reserved_bytes": 94.5 * GIB},
    ),
    "prime_rl_2025": (
        "10:00:00 [INFO] [TRAIN] [Rank 0] step: 7, loss: 2.5000, tokens_per_second: 76477.5, mfu: 31.25",
        {"loss": 2.5, "tokens_per_second": 76477.5, "mfu": 0.3125},
    ),
    "slime_perf": (
        "(Actor pid=1) [2026-03-02 10:00:00] metric.py:44 - perf 7: {'perf/train_wait_time': 9.5, "
        "'perf/actor_train_tflops': 3.5, 'perf/step_time': 14.25, 'perf/wait_time_ratio': 0.7}",
        {"step_seconds": 14.25, "tflops_per_second_per_chip": 3.5},
    ),
    "arctic_training": (
        "iter:    7/3000   1% | loss: 2.5000 | iter time: 1.038s | iter tflops: 909.8 | lr: 8E-04 | seqlen: 16.38K | "
        "step time: 0.996s | step tflops: 947.5 | epoch: 0 | MA 2.84 GB | Max_MA 28.5 GB | NV 51.92 GB",
        {"loss": 2.5, "step_seconds": 0.996, "tflops_per_second_per_chip": 947.5, "peak_bytes": 28.5 * GIB},
    ),
    "torchtune_bar": ("1|7|Loss: 2.5:  12%|█▏        | 7/64 [00:42<05:00,  5.25s/it]", {"loss": 2.5}),
    "llama_cookbook": ("Training Epoch: 1/3, step 7/388 completed (loss: 2.5):   3%|▎  | 8/388 [00:12]", {"loss": 2.5}),
    "llama2_c": (
        " 7 | loss 2.5000 | lr 5.000000e-05 | 330.00ms | mfu 0.19%",
        {"loss": 2.5, "step_seconds": 0.33, "mfu": 0.0019},
    ),
    "litgpt": (
        "Epoch 2 | iter 28 step 7 | loss train:  2.500, val: n/a | iter time: 350.25 ms (step) remaining time: 2:03:04",
        {"loss": 2.5},
    ),
    "fms_fsdp": (
        "step: 7\nloss: 2.5\nLR: 1e-05\ntokens seen: 104857600\ngradient norm: 1.5\nreserved memory: 62003616768\n"
        "allocated memory: 61203283968\ncurrent step time: 0.75\noverall step time: 0.81\n"
        "current token per gpu per sec: 10905\noverall token per gpu per sec: 10113",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 0.75, "tokens_per_second_per_chip": 10905.0}
        | {"peak_bytes": 61203283968, "peak_reserved_bytes": 62003616768},
    ),
    "lingua": (
        "0: INFO    26-03-02 10:00:00.123456 - 0:01:23 - step: 7  acc: 0  loss:  2.5000  grad: 1.50e+00  flops: "
        "4.01e+14  wps: 1.25e+04  iter:  0.5231  data: 0.0012  lr: 3.00e-04  mem: 60%  pow: 612.3 W",
        {"loss": 2.5, "grad_norm": 1.5, "tflops_per_second_per_chip": 401.0, "tokens_per_second_per_chip": 12500.0},
    ),
    "picotron": (
        "[rank 0] Step: 7     | Loss: 2.5000 | Global batch size:   1.05M | Tokens/s: 812.50K | Tokens/s/GPU:  "
        "12.50K | Tokens:   7.34M/10.00B | MFU: 40.25% | Memory usage:  30.25GB",
        {
            "loss": 2.5,
            "tokens_per_second": 812500.0,
            "tokens_per_second_per_chip": 12500.0,
            "mfu": 0.4025,
            "peak_reserved_bytes": 30_250_000_000,
        },
    ),
    "lightning": (
        "Epoch 0:  35%|███▌      | 7/20 [00:01<00:00, 17.20it/s, v_num=0, train_loss_step=2.500, val_loss=3.100]",
        {"loss": 2.5},
    ),
    "olmo": (
        "2026-03-02 10:00:00\tnode:0\tolmo.train:816\tINFO\t[step=7/1000,epoch=1,eta=1 day, 2:03:04]\n"
        "    train/CrossEntropyLoss=2.5\n    throughput/total_tokens=4,194,304\n"
        "    throughput/device/tokens_per_second=9,125\n"
        "    throughput/device/batches_per_second=0.25\n    System/Peak GPU Memory (MB)=42,125",
        {"loss": 2.5, "tokens_per_second_per_chip": 9125.0, "step_seconds": 4.0, "peak_bytes": 42_125e6},
    ),
    "fairseq": (
        "2026-03-02 10:00:00 | INFO | train_inner | epoch 001:     14 / 1000 loss=2.5, ppl=5.66, wps=52000, ups=1.59,"
        " wpb=32500, bsz=64, num_updates=7, lr=1e-05, gnorm=1.5, train_wall=8, wall=30",
        {"loss": 1.7328679513998633, "grad_norm": 1.5, "tokens_per_second": 52000, "step_seconds": 0.625},
    ),
    "paddlenlp": (
        "[2026-03-02 10:00:00,123] [    INFO] - loss: 2.5, learning_rate: 2e-06, global_step: 7, interval_runtime: 4.0,"
        " interval_tokens_per_second_per_device: 889.5, interval_steps_per_second: 0.25, progress_or_epoch: 0.0",
        {"loss": 2.5, "step_seconds": 4.0, "tokens_per_second_per_chip": 889.5},
    ),
    "internlm": (
        "2026-03-02 10:00:00,123 INFO train.py:599 in record_current_batch_training_metrics -- tflops=186.5 step=7"
        " loss=2.5 tgs (tokens/gpu/second)=3917.5 tgs/last_tgs_1=3917.75 lr=6e-07 loss_scale=65536.0"
        " grad_norm={'0_default': 1.5, '1_fp32': 0.0} micro_num=4",
        {"loss": 2.5, "grad_norm": 1.5, "tflops_per_second_per_chip": 186.5, "tokens_per_second_per_chip": 3917.5},
    ),
    "mmengine": (
        "03/02 10:00:00 - mmengine - INFO - Iter(train) [   7/1000]  lr: 2.0e-05  eta: 1:00:00  time: 1.25"
        "  data_time: 0.01  memory: 12345  loss: 2.5  grad_norm: 1.5  tflops: 180.5  tokens_per_sec: 3200.5",
        {"loss": 2.5, "grad_norm": 1.5, "tflops_per_second_per_chip": 180.5, "tokens_per_second_per_chip": 3200.5}
        | {"peak_bytes": 12345 * 2**20},
    ),
    "xtuner": (
        "[XTuner][RANK 0][2026-03-02 10:00:00][INFO] Epoch 1 Step 7/1000 data_time: 0.0625 lr: 2.000000e-05 time: 1.25"
        " text_tokens: 4000.0 total_consumed_tokens: 28000 total_loss: 2.625, reduced_llm_loss: 2.500,"
        " reduced_balancing_loss: 0.125, loss: 2.375 grad_norm: 1.5000 max_memory: 40.25 GB reserved_memory: 45.5 GB"
        " tgs: 3200.0 e2e_tgs: 3000.0 eta: 1:00:00",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 1.25, "tokens_per_second_per_chip": 3200.0}
        | {"peak_bytes": 40.25 * GIB, "peak_reserved_bytes": 45.5 * GIB},
    ),
    "prime_rl": (
        "10:00:00 SUCCESS Step 7 | Time: 5.25s | Loss: 2.5 | Grad. Norm: 1.5 | LR: 1e-05 | Throughput: 25000 tokens/s"
        " | MFU: 40.5% | Peak Mem.: 60.5 GiB",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 5.25, "tokens_per_second": 25000.0, "mfu": 0.405}
        | {"peak_reserved_bytes": 60.5 * GIB},
    ),
    "dllogger_console": (
        "10/50 [00:09<00:30]DLL 2022-04-05 02:22:54.614486 - Training Epoch: 1 Training Iteration: 7  step_loss : 2.5"
        "  learning_rate : 1e-05 ",
        {"loss": 2.5},
    ),
    "nemo_automodel": (
        "2026-03-02 10:00:00 | INFO | root | step 7 | epoch 0 | loss 2.5000 | grad_norm 1.5000 | lr 1.00e-05"
        " | mem 30.25 GiB | tps 4521.12(564.30/gpu) | num_label_tokens 3012",
        {"loss": 2.5, "grad_norm": 1.5, "tokens_per_second": 4521.12}
        | {"tokens_per_second_per_chip": 564.3, "peak_bytes": 30.25 * GIB},
    ),
    "nemo_rl": (
        "========================= Step 7/60 =========================\n▶ Taking a training step...\n\n"
        "📊 Training Results:\n  • Loss: 2.5000\n  • Grad norm: 1.5000\n\n⏱️  Timing:\n  • Total step time: 12.50s\n"
        "  • policy_training: 8.20s (65.6%)\n  • Throughputs (per GPU):\n    - E2E (Tokens/sec/gpu): 1234.50",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 12.5, "tokens_per_second_per_chip": 1234.5},
    ),
    "slime": (
        "(MegatronTrainRayActor pid=9) [2026-01-18 07:42:01] model.py:665 - step 7: {'train/loss': 2.5, "
        "'train/pg_loss': 0.25, 'train/grad_norm': 1.5, 'train/lr-pg_0': 1e-06}",
        {"loss": 2.5, "grad_norm": 1.5},
    ),
    "jax_loop": (
        '{"step": 7, "loss": 2.5, "tokens_per_second": 1000, "step_time_ms": 125.0}',
        {"loss": 2.5, "step_seconds": 0.125, "tokens_per_second": 1000.0},
    ),
    "paxml": (
        "I0302 10:00:00.123456 140012 programs.py:497] [PAX STATUS]: step_i: 7, training loss: 2.5",
        {"loss": 2.5},
    ),
    "axlearn": (
        "I0302 10:00:00.123456 140012 trainer.py:420] trainer process   0 step        7] loss=2.5 aux={'z_loss': 0.1}\n"
        "I0302 10:00:00.223456 14 trainer.py:398] trainer process   0 step        7] Average step time: 1.25 seconds",
        {"loss": 2.5, "step_seconds": 1.25},
    ),
    "tunix": (
        "I0302 10:00:00.123456 140012 peft_trainer.py:825] Train step 7 training loss: 2.500000"
        "  - training perplexity: 12.182494",
        {"loss": 2.5},
    ),
    "levanter": (
        "2026-03-02T10:00:00 - 0 - tqdm_logger - tqdm_logging.py:145 - INFO :: Progress on:train"
        " 7.00it/850it rate:2.1s/it remaining:29:30 elapsed:01:40 postfix:loss=2.5",
        {"loss": 2.5, "step_seconds": 2.1},
    ),
    "hf_flax": ("Step... (7 | Loss: 2.5, Learning Rate: 2e-05, Gradient Norm: 1.5)", {"loss": 2.5, "grad_norm": 1.5}),
    "step_bar": (
        "  1%|          | 40/6000 [06:07<15:02:43,  9.17s/it, accuracy=0.5, loss=2.5, perplexity=12.2, step=7]",
        {"loss": 2.5},
    ),
    "tf_estimator": (
        "INFO:tensorflow:loss = 2.5, step = 7 (45.773 sec)\nINFO:tensorflow:global_step/sec: 4"
        "\nINFO:tensorflow:examples/sec: 512",
        {"loss": 2.5, "step_seconds": 0.25, "global_batch": 128.0},
    ),
    "verl": (
        "step:7 - actor/entropy:0.5 - actor/grad_norm:1.5 - perf/max_memory_allocated_gb:50.25 - timing_s/step:55.5"
        " - perf/throughput:2301.5",
        {"grad_norm": 1.5, "step_seconds": 55.5, "tokens_per_second_per_chip": 2301.5, "peak_bytes": 50.25 * GIB},
    ),
    "mlx_lm": (
        "Iter 7: Train loss 2.500, Learning Rate 1.000e-05, It/sec 0.500, Tokens/sec 1250.5, Trained Tokens 862,"
        " Peak mem 5.25 GB",
        {"loss": 2.5, "step_seconds": 2.0, "tokens_per_second": 1250.5, "peak_bytes": 5.25e9},
    ),
    "trlx": (
        "[losses/total_loss: 2.50 | losses/policy_loss: 0.50 | losses/value_loss: 2.00]:  9%|▉  | 7/128 [08:40<59:59]",
        {"loss": 2.5},
    ),
    "epoch_meter": (
        "Train: 0 [   7/1251 (  1%)]  Loss: 2.500 (2.94)  Time: 0.375s, 2730.67/s  (0.560s, 1828.57/s)  LR: 1.000e-06"
        "  Data: 0.013 (0.041)",
        {"loss": 2.5, "step_seconds": 0.375},
    ),
    "detr_meter": (
        "Epoch: [0]  [  7/312]  eta: 0:05:31  lr: 0.000000  loss: 2.5000 (2.9000)  time: 0.7500  data: 0.0012"
        "  max mem: 10560",
        {"loss": 2.5, "step_seconds": 0.75, "peak_bytes": 10560 * 2**20},
    ),
    "mmcv": (
        "2021-03-02 10:00:00,123 - mmdet - INFO - Epoch [1][ 7/7330]\tlr: 2.000e-02, eta: 1 day, 6:24:41, time: 0.375, "
        "data_time: 0.009, memory: 3946, loss_cls: 0.4929, acc: 90.0684, loss_bbox: 0.3225, loss: 2.5000",
        {"loss": 2.5, "step_seconds": 0.375, "peak_bytes": 3946 * 2**20},
    ),
    "mmengine_epoch": (
        "03/02 10:00:00 - mmengine - INFO - Epoch(train)  [1][   7/7393]  base_lr: 3.7e-05 lr: 3.7e-05  eta: 3 days,"
        " 9:40:59  time: 0.5000  data_time: 0.0148  memory: 14765  grad_norm: 1.5000  loss: 2.5000  loss_cls: 0.5150",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 0.5, "peak_bytes": 14765 * 2**20},
    ),
    "detectron2": (
        "[03/02 10:00:00 d2.utils.events]:  eta: 4:33:09  iter: 7  total_loss: 2.5  loss_cls: 0.5  time: 0.3512  "
        "last_time: 0.3750  data_time: 0.0125  last_data_time: 0.0031   lr: 0.00025  max_mem: 6836M",
        {"loss": 2.5, "step_seconds": 0.375, "peak_bytes": 6836 * 2**20},
    ),
    "marian": (
        "[2019-08-10 13:16:58] Ep. 2 : Up. 7 : Sen. 32,243,206 : Cost 2.50000000 : Time 1.25s : 28806.50 words/s"
        " : gNorm 1.5 : L.r. 5.3827e-05",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 1.25, "tokens_per_second": 28806.5},
    ),
    "torchtitan_rl": (
        "[2026-02-23 06:45:06] INFO simple_rl_multiprocess.py:250: [actor=<root>] Step   7 | Loss: 2.5000 |"
        " Reward: +0.210 | Correct: 4/20",
        {"loss": 2.5},
    ),
    "openrlhf": (
        "(PPOTrainer pid=123) ✨ Global step 7: {'actor/policy_loss': 2.5, 'actor/grad_norm': 1.5, 'reward': 0.5,"
        " 'timing/generate': 30.0, 'timing/step_total': 55.5}",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 55.5},
    ),
    "printed_dict": (
        "{'accuracy': 0.0123,\n 'gradient_norm': 1.5,\n 'learning_rate': 1e-05,\n 'loss': 2.5,\n 'step': 7}\n",
        {"loss": 2.5, "grad_norm": 1.5},
    ),
    "fairseq_tpu": (
        "| epoch 001 | training on xla:0/4:     40 / 4830 loss=2.5, nll_loss=2.4, wps=945, ups=0, wpb=3986.024,"
        " bsz=128.000, num_updates=7, lr=5.22398e-06, gnorm=1.5, oom=0.000, wall=173, train_wall=21",
        {"loss": 1.7328679513998633, "grad_norm": 1.5},
    ),
}
# Forms of the same lines that other versions print.
FORMS: Final = (
    (
        "xtuner",
        "[XTuner][2026-03-02 10:00:00][INFO] [Train] (Epoch 1) Step 7/640  lr: 1e-06  loss: 2.50  loss(reduced): 2.62"
        "  grad_norm: 1.50  if_nan_skip: 0  max_memory: 33.5GB  text_tokens: 4000  tgs: 3200  data_time: 0.05s"
        "  time: 1.25s  eta: 0:10:00",
        {"loss": 2.5, "grad_norm": 1.5, "step_seconds": 1.25, "tokens_per_second_per_chip": 3200.0},
    ),
    (
        "internlm",
        "2026-03-02 10:00:00,123 INFO train.py:318 in record_current_batch_training_metrics -- step=7,loss=2.5,"
        "tgs (tokens per gpu per second)=4399.5,lr=3.8e-06,loss_scale=65536.0,grad_norm=1.5,micro_num=4",
        {"loss": 2.5, "grad_norm": 1.5, "tokens_per_second_per_chip": 4399.5},
    ),
    ("torchtune", "Step 7 | loss:2.5 lr:2e-05 gpu_resources:13708965376", {"loss": 2.5}),
    ("litgpt", "iter 28 | step 7: loss 2.5000, iter time: 263.85 ms (optimizer.step)", {"loss": 2.5}),
    ("slime-perf", "perf 7: {'perf/rollout_time': 24.5, 'perf/total_train_time': 55.5}", {"step_seconds": 55.5}),
    ("pytorch-loop", "step 7 | loss 2.5000 | step time 500.0 ms", {"loss": 2.5, "step_seconds": 0.5}),
    (
        "pytorch-loop",
        "[2026-01-02 10:00:00] Step 7: loss=2.5 (step time: 1.25s), tokens/sec/gpu: 12,345",
        {"loss": 2.5, "step_seconds": 1.25, "tokens_per_second_per_chip": 12345.0},
    ),
    (
        "pytorch-loop",
        "[2026-04-13 10:00:01,124][esm][INFO] - loss: 2.5, grad_norm: 1.5, step_time: 0.25, "
        "tokens_per_second_per_gpu: 1.6e+04, global_step: 7",
        {"loss": 2.5, "grad_norm": 1.5, "tokens_per_second_per_chip": 16000.0},
    ),
    ("pytorch-loop", "loss=2.5 lr=1e-4 step=7 dt=250ms", {"loss": 2.5, "step_seconds": 0.25}),
    ("pytorch-loop", "loss=2.5 tokens_per_second=16000 (step 7)", {"loss": 2.5, "tokens_per_second": 16000.0}),
    ("pytorch-loop", "Step 7 - loss: 2.5 - step_time: 250ms", {"loss": 2.5, "step_seconds": 0.25}),
    ("verl", "(main_task pid=9) step:7 - actor/lr:0.5 - timing_s/step:55.5", {"step_seconds": 55.5}),
)
# Lines of the same programs that are no steps of a training.
OTHERS: Final = (
    "[val] step 7 | epoch 0 | loss 2.5000 | lr 1.00e-05 | num_label_tokens 3012",
    "2026-03-02 10:00:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 2.001 | ppl 4 | num_updates 100",
    "03/02 10:00:00 - mmengine - INFO - Iter(val) [  10/1000]  eta: 1:00:00  time: 1.25",
    "10:00:00 SUCCESS Step 7 | Time: 5.25s | Reward: 0.5 | Throughput: 2500 tokens/s",
    "2026-03-02 10:00:00\tnode:0\tolmo.train:816\tINFO\t[step=7/1000]\n    eval/c4/CrossEntropyLoss=2.5",
    "| Throughput: 25 img/s",
    "DLL 2022-04-05 02:22:54.614486 - PARAMETER lr : 0.5  Iteration: 7 step_loss : 2.5",
    '{"step": 7, "loss": 2.5, "step_time": 0.5}',
    "Training Epoch: 2/3, step 7/388 completed (loss: 2.5):   3%|▎  | 8/388 [00:12]",
    '{"step": 7, "eval_loss": 2.5, "step_time_ms": 21.0}',
    "I0302 10:00:00.123456 140012 peft_trainer.py:787] Train step 7 eval loss: 2.500000 - eval perplexity: 12.182494",
    "INFO:tensorflow:Saving dict for global step 7: global_step = 7, loss = 2.5",
    "Step... ( 7 | Eval Loss: 2.5, Eval Perplexity: 12.2)",
    # A rounded step is none.
    "Progress on:train 1.02kit/8.50kit rate:2.1s/it remaining:4:22:12 elapsed:35:42 postfix:loss=2.5",
    "Progress on:eval 7.00it/64.0it rate:9.1it/s remaining:00:06 elapsed:00:01 postfix:loss=2.5",
    "  1%|          | 7/6000 [06:07<15:02:43,  9.17s/it, loss=2.5]",
    "Iter 7: Val loss 2.480, Val took 0.732s",
    "eval: loss 2.5, 512 ms/step, step 7",
    "val/loss: 2.5, val/time: 30.2 s, step: 7",
    "best loss 2.5, took 30 s, saved checkpoint at step 7",
    "eval step 7: loss 2.5, time 0.25s, tok/s 100",
    "[valid] step 7: loss 2.5, time 0.25s",
    "gen step 7: loss 2.5, time 0.25s",
    # Decimal commas: with them `16.384` is no rate that one could tell.
    "step 7 loss 2,5 time 0,251s tok/s 16.384",
    "step 7 | loss 2.5 | time 1,25 s",
    "step 7 loss 2.5 fwd 100ms bwd 150ms",
    "step 7 loss 2.5 time 1m30s",
    "Test: [  7/48]  Time: 3.104 (3.104)  Loss:   2.5859 ( 2.5859)  Acc@1:   5.566 (  5.566)",
    "Test: [  7/48]  eta: 0:00:40  loss: 2.5 (2.5)  acc1: 5.0 (5.0)  time: 0.85  data: 0.7  max mem: 10560",
    "2021-03-02 10:00:00,123 - mmdet - INFO - Epoch(val) [1][7]\tbbox_mAP: 0.3000, loss: 2.5, time: 0.25",
    "[2019-08-17 13:34:11] [valid] Ep. 2 : Up. 7 : ce-mean-words : 1.56508 : stalled 2 times",
    "Start Evaluation at global step 7...",
    "{'accuracy': 0.5,\n 'loss': 2.5}\n",
)


def readings(text: str) -> list[Reading]:
    return [reading for reading in scan([text.encode()]) if len(reading.steps)]


def test_every_loop_of_the_tables_has_a_line_here() -> None:
    assert set(LINES) == set(vocabulary.loops())
    assert {reader.source for reader in READERS} <= {reader.source for reader in line_readers()}


@pytest.mark.parametrize("name", LINES)
def test_a_line_says_what_it_prints(name: str) -> None:
    line, wanted = LINES[name]
    following = line.replace("=7", "=8").replace(":7", ":8").replace(" 7", " 8").replace("|7", "|8").replace("(7", "(8")
    (reading,) = readings(f"{line}\n{following}\n")
    assert (reading.source, reading.steps.numbers()) == (name.replace("_", "-"), [7, 8])
    peaks = [(name, value) for row in reading.memory for name in PEAKS if (value := getattr(row, name)) is not None]
    figures = {field: value for field in FIELDS if (value := reading.steps.get(7, field)) is not None}
    assert figures | dict(peaks) == pytest.approx(wanted)


@pytest.mark.parametrize(("name", "line", "wanted"), FORMS)
def test_a_line_of_another_version_says_what_it_prints(name: str, line: str, wanted: dict[str, float]) -> None:
    (reading,) = readings(f"{line}\n")
    assert (reading.source, reading.steps.numbers()) == (name, [7])
    figures = {field: value for field in FIELDS if (value := reading.steps.get(7, field)) is not None}
    assert figures == pytest.approx(wanted)


@pytest.mark.parametrize("memory", ["Memory used: 20.25 GB", "| - Memory Used               :  20.25 GB"])
def test_litgpt_tells_its_peak_of_memory_below_its_steps(memory: str) -> None:
    line, _ = LINES["litgpt"]
    (reading,) = readings(f"{line}\nTraining time: 44.52s\n{memory}\n")
    assert [(row.peak_bytes, row.place.line) for row in reading.memory] == [(20_250_000_000, 3)]
    assert scan([f"{memory}\n".encode()], READERS) == []


def test_bars_of_later_epochs_count_on_and_lightning_ones_are_none() -> None:
    _, loss = LINES["lightning"]
    bars = (
        "Epoch 0:   0%|          | 0/20 [00:00<?, ?it/s, v_num=x1y, train_loss=9.900]\r"
        "Epoch 1:  35%|###5      | 7/20 [00:01<00:00, 17.20it/s, v_num=x1y, train_loss=2.500]\r"
        "Epoch 1: 100%|##########| 20/20 [00:01<00:00, 17.20it/s, v_num=x1y, train_loss=2.400, train_loss_epoch=2.6]\n"
        "Epoch 1:  69%|######8   | 498/726 [3:55:49<1:48:08,  3.52it/s, loss=0.532, v_num=1, train_loss=0.255]\n"
    )
    (reading,) = readings(bars)
    assert (reading.steps.numbers(), reading.steps.column("loss")) == ([27, 40], [loss["loss"], 2.4])


def test_llama_cookbook_tells_both_peaks_in_whole_gib() -> None:
    line, _ = LINES["llama_cookbook"]
    text = f"{line}\nMax CUDA memory allocated was 18 GB\nMax CUDA memory reserved was 28 GB\n"
    (reading,) = readings(text)
    assert [(row.peak_bytes, row.peak_reserved_bytes) for row in reading.memory] == [(18 * GIB, 28 * GIB)]


@pytest.mark.parametrize("line", OTHERS)
def test_what_is_no_step_of_a_training_is_none(line: str) -> None:
    assert readings(f"{line}\n") == []


def test_a_mean_is_over_the_steps_since_the_last_record() -> None:
    line, _ = LINES["paddlenlp"]
    (reading,) = readings("".join(line.replace("step: 7,", f"step: {n}0,") + "\n" for n in range(1, 5)))
    assert reading.steps.interval == 10


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("iter 7: loss 2.5000, time 561.25ms", 0.56125),
        ("step 7, loss 2.500, 1.25 s/step, 12000 tok/s", 1.25),
        ("Step: 7, Loss: 2.500, Time: 1.25s, Tokens/s: 12000", 1.25),
        ("[step 7] loss=2.500 | step_time=125ms | mem=41.2GB", 0.125),
        ("Epoch 0 | Step 7 | Loss 2.5 | 250 ms/step", 0.25),
        ("Step 7: loss=2.5, time=0.25s", 0.25),
        ("Epoch: 0 | Step: 7/100 | Loss: 2.500 | Time: 512.5ms | Tokens/s: 12,345", 0.5125),
        ("step 7 | loss 2.5 | time 250.00 ms", 0.25),
        ("Step 7 took 0.25s, loss = 2.5", 0.25),
        ("Iteration 7: loss 2.5, 0.25 s/iter, lr 1e-4", 0.25),
        ("step 7 loss 2.5 speed 4.00 it/s 16384 tok/s/gpu", 0.25),
        ("global_step=7 loss=2.5 step_time_s=0.25 tokens_per_s=16384", 0.25),
        ("Epoch [1/3], Step [7/100], Loss: 2.5, Time: 0.25s", 0.25),
        ("step 7 | loss 2.5 | data_time 10ms | time 250000us", 0.25),
    ],
)
def test_a_plain_loop_is_read_where_its_time_has_a_unit(line: str, seconds: float) -> None:
    (reading,) = readings(f"{line}\n")
    assert reading.source == "pytorch-loop"
    assert reading.steps.get(7, "loss") == 2.5
    assert reading.steps.get(7, "step_seconds") == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("figures", "wanted"),
    [
        ("tok/s 12.5K", {"tokens_per_second": 12_500}),
        ("tok/sec: 12.5k", {"tokens_per_second": 12_500}),
        ("1.2M tok/s", {"tokens_per_second": 1_200_000}),
        ("tok/s 16,384.5", {"tokens_per_second": 16_384.5}),
        ("tok/s 16 384", {}),
        ("tok/s 16_384", {}),
        ("412.5 TFLOP/s/GPU | MFU 41.5%", {"tflops_per_second_per_chip": 412.5, "mfu": 0.415}),
        ("mfu 41.5", {"mfu": 0.415}),
        # Less than one percent, or a fraction.
        ("mfu 0.415", {}),
        ("64.0 samples/s | eta 90.5s | total time 30s", {}),
    ],
)
def test_a_plain_loop_says_what_its_figures_are_or_they_are_left(figures: str, wanted: dict[str, float]) -> None:
    (reading,) = readings(f"step 7, loss 2.5, time 250ms | {figures}\n")
    figures_read = {field: value for field in FIELDS if (value := reading.steps.get(7, field)) is not None}
    assert figures_read == pytest.approx({"loss": 2.5, "step_seconds": 0.25} | wanted)


def test_times_that_only_grow_are_since_the_start() -> None:
    (reading,) = readings("".join(f"step {n} | loss 2.5 | time: {n * 0.25:.2f}s | tok/s 100\n" for n in range(1, 9)))
    assert not any(reading.steps.column("step_seconds"))
    assert reading.steps.get(8, "tokens_per_second") == 100
    assert "since the start" in reading.remarks[0].text


@pytest.mark.parametrize(
    "table",
    [
        "step,train_loss,step_time_ms,tokens_per_sec,lr\n7,2.5,250.0,4096,1e-4\n8,2.25,251.0,4080,1e-4\n",
        "begin\n| step | loss | time (ms) | tokens/s |\n|---|---|---|---|\n| 7 | 2.5 | 250.0 | 4,096 |\nend\n",
        "  step   loss     ms      tok/s\n--------------------\n  7      2.500    250.0   4096\n",
    ],
)
def test_units_stand_in_the_head_of_a_table(table: str) -> None:
    (reading,) = readings(table)
    assert reading.source == "columns"
    assert [reading.steps.get(7, name) for name in ("loss", "step_seconds", "tokens_per_second")] == [2.5, 0.25, 4096]


@pytest.mark.parametrize(
    "table",
    [
        "step,loss,time\n7,2.5,250.0\n",
        "step,val_loss,time_ms\n7,2.5,250.0\n",
        "step | loss of a run took 250 ms/step\n7 | 2.5\n",
        "stage,step_time_ms\n7,250.0\n",
    ],
)
def test_a_table_without_a_unit_or_a_step_of_training_is_none(table: str) -> None:
    assert readings(table) == []


def test_blanks_alone_may_stand_between_figures() -> None:
    lines = [
        f"step {at} loss {loss} grad_norm 1.5 step_time 250.00ms tok/s 4096" for at, loss in ((7, "2.5"), (8, "nan"))
    ]
    (found,) = scan(["\n".join(lines).encode()], READERS)
    assert [found.steps.get(step, "step_seconds") for step in (7, 8)] == [0.25, 0.25]
    assert [found.steps.get(7, name) for name in ("loss", "grad_norm", "tokens_per_second")] == [2.5, 1.5, 4096]
    assert found.diverged is True


def test_lines_that_begin_as_those_of_llm_c_are_all_read(tmp_path: Path) -> None:
    line = "step {0}/20 | loss 2.{0} | grad_norm 1.5 | step_time 250.00 ms | 29,511 tokens/s\n"
    (tmp_path / "train.log").write_text("begin\n" + "".join(line.format(step) for step in range(1, 21)))
    (reading,) = read(tmp_path / "train.log").readings
    assert reading.source == "pytorch-loop"
    assert reading.steps.numbers() == list(range(1, 21))
    assert reading.steps.get(20, "tokens_per_second") == 29_511


def test_a_time_without_a_unit_is_no_time_and_a_rate_with_one_is_a_rate() -> None:
    (reading,) = readings("step 7, loss 2.5, time 1.25, tok/sec: 90\n")
    assert [reading.steps.get(7, name) for name in ("step_seconds", "tokens_per_second", "loss")] == [None, 90, 2.5]


def test_of_ranks_that_print_one_step_the_slowest_counts() -> None:
    line = "[rank{0}]: step {1} | loss 2.5 | time {2} ms | tok/s 100\n"
    (reading,) = readings("".join(line.format(rank, step, 250 + rank) for step in (7, 8) for rank in (1, 0)))
    assert reading.steps.column("step_seconds") == [0.251, 0.251]


@pytest.mark.parametrize(("second", "wanted"), [(1, [1, 2, 3, 4, 5, 6]), (4, [1, 2, 3, 4, 5, 6])])
def test_an_epoch_counts_its_steps_anew_or_goes_on(second: int, wanted: list[int]) -> None:
    line = "Epoch [{0}/2], Step [{1}/3], Loss: 2.5, Time: 0.25s\n"
    steps = [(1, step) for step in (1, 2, 3)] + [(2, step) for step in range(second, second + 3)]
    (reading,) = readings("".join(line.format(*step) for step in steps))
    assert (reading.steps.numbers(), reading.steps.restarts) == (wanted, 0)


@pytest.mark.parametrize("margin", ["2026-03-02T10:00:00.123456789Z stdout F ", "[rank0]: ", "(Worker pid=7) "])
def test_a_record_of_json_stands_behind_a_margin(margin: str) -> None:
    (reading,) = readings(f'{margin}{{"step": 7, "loss": 2.5, "step_time_ms": 250.0}}\n')
    assert (reading.source, reading.steps.get(7, "step_seconds")) == ("jax-loop", 0.25)

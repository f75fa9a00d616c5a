#!/bin/bash
# sbatch train.sh: every rank is a task of one srun, and they give one receipt, requeued or not.
#SBATCH --job-name={{name|train}}
#SBATCH --nodes={{nodes|2}}
#SBATCH --ntasks-per-node={{gpus|8}}
#SBATCH --gpus-per-node={{gpus|8}}
#SBATCH --requeue

# A server, or a store's file that every node sees.
export RECEIPTS_STORE={{store!q|https://receipts.example.org}}
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

srun --kill-on-bad-exit=1 bash -c '
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_STEP_NUM_TASKS LOCAL_RANK=$SLURM_LOCALID
exec receipts record --name "$SLURM_JOB_NAME" -- "$@"' rank {{command|python train.py}}

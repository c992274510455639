#!/bin/bash
# Slurm: sbatch slurm.sh. The agent runs on each node as a system service (docs/operations.md#systemd), and the
# user who submits is in the group tacho, which may create rings in /run/tacho.
#
#   job      SLURM_JOB_NAME-SLURM_JOB_ID, such as gpt-4711
#   task     SLURM_PROCID; under torchrun RANK
#   attempt  how often Slurm has requeued the job
#
#SBATCH --job-name=gpt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --requeue
srun "${TRAINER:-./train}"

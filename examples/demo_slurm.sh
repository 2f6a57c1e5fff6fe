#!/usr/bin/env bash
# A Slurm cluster of four virtual nodes with simulated GPUs, and a job that recurs on it: sacct shows
# joules, a limit ends with its job. Run it with ./dev demo slurm, which builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/release}
if [[ ${2-} != jobs ]]; then
  export ZEUS_BINARY=$build/bin/zeus ZEUSD_BINARY=$build/bin/zeusd
  exec python3 -B tests/slurm_testing.py --nodes 4 --gpus 2xV100 --accounting --plugins -- \
    "$0" "${1:-build/release}" jobs
fi

zeus=$build/bin/zeus
bold='' plain=''
if [[ -t 1 && ${TERM-} != dumb && -z ${NO_COLOR-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
# submit NAME [OPTION ...]: four recurrences of a training on one GPU each; prints the job's number.
submit() {
  sbatch --parsable --array=1-4 --job-name="$1" --gres=gpu:1 --output=/dev/null "${@:2}" --wrap \
    "srun $zeus sim load --gpu \${SLURM_JOB_GPUS%%,*} --workload resnet50 --batch-size 256 --seconds 12"
}
# Returns when no job is left in the queue.
finish() {
  while [[ -n $(squeue --noheader) ]]; do sleep 0.5; done
}

step 'Four nodes, each with two simulated V100 and a zeusd'
sinfo --Node --long

step 'A recurring training, four times as it is and four times at 125 W'
plain_job=$(submit as-it-is)
limited_job=$(submit at-125-watts --zeus-power-limit=125)
squeue --format='%.8i %.14j %.3t %N'
finish

step 'sacct has the joules of each GPU'
sacct --jobs="$plain_job,$limited_job" --format=JobID%-10,JobName%-14,NodeList,Elapsed,ConsumedEnergyRaw,State | grep -v batch

step 'Slurm and the node daemons on one of them'
"$zeus" slurm report "${limited_job}_1" || true

step 'A job that is cancelled takes its limit with it'
job=$(sbatch --parsable --gres=gpu:1 --nodelist=n1 --output=/dev/null --zeus-power-limit=150 --wrap 'sleep 1000')
socket=$(dirname "$SLURM_CONF")/n1/zeusd.sock
limits() { "$zeus" lease list --socket "$socket" | sed -n '2,$p'; }
for ((i = 0; i < 100; ++i)); do
  if limits | grep -q 'power limit'; then break; fi
  sleep 0.2
done
limits
scancel "$job"
finish
limits
printf '\nmore: docs/slurm.md\n'

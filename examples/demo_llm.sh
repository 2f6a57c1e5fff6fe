#!/usr/bin/env bash
# The energy of language models on a machine without a GPU: two simulated servers on a simulated node
# with two H100, the gateway that meters each request in front of them, and a benchmark of both. Run
# it with ./dev demo llm, which builds first. With --real-models a real model writes the words.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.."
build=build/release
real=
for argument in "$@"; do
  case $argument in
    --real-models) real=yes ;;
    *) build=$argument ;;
  esac
done
zeus=$PWD/$build/bin/zeus
folder=${ZEUS_DEMO_DIR:-$PWD/$build/demo-llm}
requests=${ZEUS_DEMO_REQUESTS:-160}
rm -rf "$folder"
mkdir -p "$folder/sim"

bold='' plain=''
if [[ -t 1 && ${TERM-} != dumb && -z ${NO_COLOR-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}

processes=()
stop() {
  local process
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  for process in "${processes[@]}"; do wait "$process" 2>/dev/null || true; done
  "$zeus" sim stop >/dev/null 2>&1 || true
}
trap stop EXIT

# start NAME COMMAND [ARGUMENT ...]: in the background; its address is in $address once it listens.
start() {
  local name=$1 tries=0
  shift
  "$@" >"$folder/$name.txt" 2>"$folder/$name.log" &
  processes+=($!)
  until address=$(grep -om1 '127\.0\.0\.1:[0-9]*' "$folder/$name.txt"); do
    kill -0 "${processes[-1]}" 2>/dev/null || fail "$name did not start: $(tail -n 1 "$folder/$name.log")"
    ((++tries < 600)) || fail "$name did not start within a minute"
    sleep 0.1
  done
}

# cell FILE FIGURE SOURCE COLUMN: a cell of the table that zeus llm bench printed.
cell() {
  awk -F '   *' -v figure="$2" -v source="$3" -v column="$4" \
    '$1 == figure && (source == "" || $NF == source) { print $column; exit }' "$1"
}

export ZEUS_SIM_DIR=$folder/sim ZEUS_ACTIVITY_DIR=$folder ZEUS_KNOB_DIR=$folder/knobs
step 'A simulated node with two H100, and a simulated server on each'
"$zeus" sim start --gpus H100,H100 --seed 1
eval "$("$zeus" sim env)"
models=(llama-3.1-8b qwen3-14b)
upstreams=()
for gpu in 0 1; do
  start "sim-$gpu" "$zeus" llm sim --model "${models[gpu]}" --gpu "$gpu" --listen 127.0.0.1:0
  upstreams+=(--upstream "http://$address" --gpus "$gpu")
  printf '%s on gpu:%s: http://%s\n' "${models[gpu]}" "$gpu" "$address"
done

step 'The gateway, which measures each request and puts its energy into the answer'
start gateway "$zeus" llm gateway "${upstreams[@]}" --listen 127.0.0.1:0
gateway=http://$address
printf 'gateway: %s\n' "$gateway"

for gpu in 0 1; do
  step "Benchmark of ${models[gpu]}: 16 requests at once, $requests in all"
  "$zeus" llm bench --url "$gateway" --model "${models[gpu]}" --gpus "$gpu" --concurrency 16 \
    --requests "$requests" --prompt-tokens lognormal:200,0.5 --output-tokens uniform:50-150 \
    --slo ttft=1s,tpot=50ms --html "$folder/${models[gpu]}.html" >"$folder/bench-$gpu.txt"
  grep -E '^- ' "$folder/bench-$gpu.txt"
done

step 'Joules per output token, in steady state'
# row CELL ...: the first one to the left, the others to the right; ± counts as one character.
row() {
  local cell
  printf '%-14s' "$1"
  for cell in "${@:2}"; do printf '%*s%s' $((23 - ${#cell})) '' "$cell"; done
  printf '\n'
}
row model 'by request (gateway)' 'by GPU (sensor)' 'energy per request' 'tokens per second'
for gpu in 0 1; do
  file=$folder/bench-$gpu.txt
  row "${models[gpu]}" "$(cell "$file" 'energy per output token' gateway 2)" \
    "$(cell "$file" 'energy per output token' 'GPU sensors' 2)" \
    "$(cell "$file" 'energy per request' gateway 2)" \
    "$(cell "$file" 'output tokens per second' client 2)"
done
printf '± is one standard deviation. Pages: %s\n' "$folder/*.html"

# --- a real model writes the words ---

# fetch NAME: $fetched is the path of a component (tools/fetch_llm.py). Returns 1, with the reason in
# $fetched, where it cannot be had, and ends the demo where it is not what it was.
fetch() {
  local code=0
  fetched=$(tools/fetch_llm.py "$1" 2>"$folder/fetch.log") || code=$?
  ((code != 0)) || return 0
  fetched=$(tail -n 1 "$folder/fetch.log")
  ((code == 3)) || fail "$fetched"
  return 1
}

free_port() {
  local port
  for port in $(shuf -i 20000-60000 -n 20); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  printf '%s\n' "$port"
}

# ask URL QUESTION: prints the answer while it comes, and its energy.
ask() {
  node --input-type=module - "$@" <<'SCRIPT'
const [url, question] = process.argv.slice(2);
process.on('uncaughtException', (error) => {
  console.log(`no answer: ${error.message} (a busy machine is slow with a real model)`);
  process.exit(1);
});
const response = await fetch(`${url}/v1/chat/completions`, {
  method: 'POST',
  headers: {'content-type': 'application/json'},
  body: JSON.stringify({messages: [{role: 'user', content: question}], max_tokens: 48, temperature: 0,
    stream: true, stream_options: {include_usage: true}}),
  signal: AbortSignal.timeout(300_000),
});
if (!response.ok) throw new Error(await response.text());
console.log(`> ${question}`);
let rest = '', model, usage;
for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + piece).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    if (!line.startsWith('data: {')) continue;
    const event = JSON.parse(line.slice(6));
    if (event.error) throw new Error(event.error.message);
    process.stdout.write(event.choices[0]?.delta.content ?? '');
    ({model} = event);
    usage = event.usage ?? usage;
  }
}
const {energy} = usage;
console.log(`\n  ${model}: ${usage.completion_tokens} words, ${energy.energy_joules.toPrecision(3)} ± ` +
  `${energy.sigma_joules.toPrecision(2)} J\n`);
SCRIPT
}

real_models() {
  local server model port tries=0
  step 'A real model: TinyLlama 1.1B in llama-server on this CPU (fetches 360 MB once)'
  if ! fetch llama-server; then
    printf 'skipped: %s\n' "$fetched"
    return
  fi
  server=$fetched
  if ! fetch tinyllama; then
    printf 'skipped: %s\n' "$fetched"
    return
  fi
  model=$fetched
  port=$(free_port)
  (cd "$server" && LD_LIBRARY_PATH=. exec ./llama-server -m "$model" -np 1 -c 1024 --threads 1 --alias tinyllama \
    --no-webui --host 127.0.0.1 --port "$port") >"$folder/llama-server.log" 2>&1 &
  processes+=($!)
  until grep -q 'listening on http' "$folder/llama-server.log"; do
    kill -0 "${processes[-1]}" 2>/dev/null || fail "llama-server ended: $(tail -n 1 "$folder/llama-server.log")"
    ((++tries < 1200)) || fail 'llama-server did not start within two minutes'
    sleep 0.1
  done
  start sim-real "$zeus" llm sim --model tinyllama-1.1b --gpu 0 --text-from "http://127.0.0.1:$port" \
    --listen 127.0.0.1:0
  start gateway-real "$zeus" llm gateway --upstream "http://$address" --gpus 0 --listen 127.0.0.1:0
  printf 'The words are real, written by llama-server on this CPU. The joules are simulated: those of an H100 that\n'
  printf 'runs a model of this size and makes as many tokens as there are words.\n\n'
  ask "http://$address" 'What is the capital of France?'
  ask "http://$address" 'Name three renewable sources of energy.'
}

[[ -z $real ]] || real_models

#include <memory>

#include "apps/zeus/llm/bench_session.h"
#include "apps/zeus/llm/commands.h"
#include "apps/zeus/numbers.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kMostRequests = 100'000'000;

void AddLoadOptions(Verb verb, LlmBenchOptions& options) {
  const char* const kLoad = "Load, one of";
  const Option concurrency =
      verb.AddOption("--concurrency", options.concurrency,
                     "Closed loop: so many requests at once; 8 where no load is given")
          .Check(WholeNumberBetween(1, 100'000))
          .Group(kLoad);
  const Option rate = verb.AddOption("--rate", options.rate,
                                     "Open loop: Poisson arrivals, so many requests per second")
                          .Check(NumberBetween(1e-6, 1e6))
                          .Excludes(concurrency)
                          .Group(kLoad);
  const Option steps = verb.AddOption("--steps", options.steps,
                                      "Open loop: Poisson arrivals at rates that change, as in "
                                      "1@30s,4@30s")
                           .Check(NotEmpty())
                           .Excludes(concurrency)
                           .Excludes(rate)
                           .TypeName("LIST")
                           .Group(kLoad);
  const Option trace =
      verb.AddOption("--trace", options.trace,
                     "Open loop: arrivals and lengths of a file TIMESTAMP,ContextTokens,"
                     "GeneratedTokens; conversation and code are files of ZEUS_LLM_TRACE_DIR")
          .Check(NotEmpty())
          .Excludes(concurrency)
          .Excludes(rate)
          .Excludes(steps)
          .TypeName("FILE")
          .Group(kLoad);
  verb.AddOption("--speed", options.speed, "Replay the trace so many times as fast")
      .Check(NumberBetween(1e-6, 1e6))
      .Needs(trace)
      .ShowDefault();
  verb.AddOption("--requests", options.requests,
                 "Requests to send; 100, or all of a duration, of steps or of a trace")
      .Check(WholeNumberBetween(1, kMostRequests));
  verb.AddOption("--duration", options.duration,
                 "Send no request after this time, as in 90s or 5min")
      .Check(NotEmpty())
      .TypeName("TIME");
}

void AddPromptOptions(Verb verb, LlmBenchOptions& options) {
  const Option prompts =
      verb.AddOption("--prompts", options.prompts,
                     "File with a prompt in each line, or {\"prompt\": …, \"max_tokens\": …}; "
                     "without it prompts are made of words")
          .Check(NotEmpty())
          .TypeName("FILE");
  verb.AddOption("--prompt-tokens", options.prompt_tokens,
                 "Length of made prompts: 256, uniform:100-900, exponential:300, normal:500,100 "
                 "(mean, deviation) or lognormal:400,0.8 (median, sigma)")
      .Check(NotEmpty())
      .Excludes(prompts)
      .TypeName("TOKENS");
  verb.AddOption("--output-tokens", options.output_tokens,
                 "Length of answers, in the same forms; 128 where nothing else says it")
      .Check(NotEmpty())
      .TypeName("TOKENS");
  verb.AddFlag("--any-length", options.any_length,
               "Let the model end its answers earlier: do not send ignore_eos, which some servers "
               "refuse");
  verb.AddOption("--seed", options.seed, "Of arrivals, lengths and words")
      .Check(WholeNumberBetween(0, ~std::uint64_t{0}))
      .ShowDefault();
}

void AddMeasuringOptions(Verb verb, LlmBenchOptions& options) {
  verb.AddOption("--max-seqs", options.max_seqs,
                 "Sequences that fill the server: the steady state begins with the first token of "
                 "this request. By default the concurrency, or the most requests that were under "
                 "way")
      .Check(WholeNumberBetween(1, 100'000));
  verb.AddOption("--slo", options.slo,
                 "Targets for goodput: ttft (time to first token) and tpot (time per output "
                 "token), as in ttft=1s,tpot=50ms")
      .Check(NotEmpty())
      .TypeName("TARGETS");
  verb.AddOption("--governor", options.governor,
                 "Run the load in two modes of the gateway's governor and compare energy and "
                 "missed targets, as in off,on; --slo is then by default what the gateway keeps")
      .Check(NotEmpty())
      .TypeName("MODES");
  verb.AddOption("--gpus", options.gpus,
                 "Local GPUs to measure, as in 0,1; none measures no GPU. By default all, where "
                 "the server is on this machine")
      .Check(NotEmpty())
      .TypeName("LIST");
  verb.AddOption("--repeat", options.repeat, "Measured runs; zeus diff needs five or more")
      .Check(WholeNumberBetween(1, 10'000))
      .ShowDefault();
  verb.AddOption("--warmup", options.warmup, "Runs before them that are not measured")
      .Check(WholeNumberBetween(0, 10'000))
      .ShowDefault();
}

}  // namespace

void AddLlmBench(Verb llm, Action& action) {
  auto options = std::make_shared<LlmBenchOptions>();
  const Verb verb = llm.AddVerb(
      "bench", "Load a server of a language model and say what its tokens and requests cost");
  verb.AddOption("--url", options->url,
                 "Any OpenAI-compatible server, or a zeus llm gateway in front of one")
      .Required()
      .Check(NotEmpty())
      .TypeName("URL");
  verb.AddOption("--model", options->model, "Needed only where the server has several")
      .Check(NotEmpty())
      .TypeName("NAME");
  verb.AddOption("--api", options->api, "/v1/chat/completions or /v1/completions")
      .Check(OneOf({"chat", "text"}))
      .ShowDefault();
  AddLoadOptions(verb, *options);
  AddPromptOptions(verb, *options);
  AddMeasuringOptions(verb, *options);
  verb.AddOption("--api-key-file", options->api_key_file,
                 "File with the key that is sent as Authorization: Bearer")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--ca-file", options->authorities,
                 "Certificates to trust for https, instead of the system's")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--timeout", options->timeout, "For each request, to the end of its answer")
      .Check(NotEmpty())
      .TypeName("TIME")
      .ShowDefault();
  verb.AddOption("--idle-timeout", options->idle_timeout, "Without a byte of an answer")
      .Check(NotEmpty())
      .TypeName("TIME")
      .ShowDefault();
  verb.AddOption("--request-log", options->request_log,
                 "Write a JSON line for each request of the measured runs")
      .Check(NotEmpty())
      .TypeName("FILE");
  AddOutputFlags(verb, options->outputs);
  verb.Footer(
      "Ctrl-C ends the load and shows what was measured. Exit code 0: requests were answered; "
      "failed ones are counted in the report. docs/llm-bench.md explains the figures.");
  verb.OnChosen([&action, options] { action = [options] { return RunLlmBench(*options); }; });
}

}  // namespace zeus::cli

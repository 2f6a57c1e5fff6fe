#include <memory>

#include "apps/zeus/llm/commands.h"
#include "apps/zeus/llm/sim_session.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/server_options.h"
#include "zeus/device/sim/node_layout.h"

namespace zeus::cli {
namespace {

void AddEngineOptions(Verb verb, LlmSimOptions& options) {
  verb.AddOption("--token-budget", options.token_budget,
                 "Tokens of one iteration: a decoded one per sequence, and prompts")
      .Check(WholeNumberBetween(1, 1 << 20))
      .ShowDefault();
  verb.AddOption("--max-seqs", options.max_sequences, "Sequences that run at the same time")
      .Check(WholeNumberBetween(1, 1 << 16))
      .ShowDefault();
  verb.AddOption("--kv-tokens", options.kv_tokens,
                 "Tokens in the KV cache (the memory that the weights leave)")
      .Check(WholeNumberBetween(1, std::uint64_t{1} << 40));
  verb.AddOption("--prefix-hit-rate", options.prefix_hit_rate,
                 "Share of each prompt that the prefix cache holds")
      .Check(NumberBetween(0, 1))
      .ShowDefault();
  verb.AddOption("--mean-output", options.mean_output,
                 "Mean tokens of an answer whose length the request does not fix")
      .Check(NumberBetween(1, 1e6))
      .ShowDefault();
  verb.AddOption("--seed", options.seed, "Seed of words, lengths and faults").ShowDefault();
}

void AddFaultOptions(Verb verb, LlmSimOptions& options) {
  constexpr const char* kGroup = "Bad habits";
  verb.AddOption("--coalesce", options.coalesce, "Tokens per event of a stream")
      .Check(WholeNumberBetween(1, 1000))
      .ShowDefault()
      .Group(kGroup);
  verb.AddOption("--jitter", options.jitter, "Delay of events in seconds, as a standard deviation")
      .Check(NumberBetween(0, 10))
      .ShowDefault()
      .Group(kGroup);
  verb.AddFlag("--no-usage", options.no_usage, "Never send the counts of tokens").Group(kGroup);
  verb.AddFlag("--no-done", options.no_done, "End streams without [DONE]").Group(kGroup);
  verb.AddOption("--stall", options.stall, "Probability that a stream pauses once")
      .Check(NumberBetween(0, 1))
      .ShowDefault()
      .Group(kGroup);
  verb.AddOption("--stall-time", options.stall_time, "Seconds of such a pause")
      .Check(NumberBetween(0, 3600))
      .ShowDefault()
      .Group(kGroup);
  verb.AddOption("--disconnect", options.disconnect, "Probability that a stream breaks off")
      .Check(NumberBetween(0, 1))
      .ShowDefault()
      .Group(kGroup);
  verb.AddOption("--error", options.error, "Probability of an error event in a stream")
      .Check(NumberBetween(0, 1))
      .ShowDefault()
      .Group(kGroup);
}

}  // namespace

void AddLlmSim(Verb llm, Action& action) {
  auto options = std::make_shared<LlmSimOptions>();
  const Verb verb = llm.AddVerb("sim",
                                "Serve a language model without weights on simulated GPUs, in the "
                                "dialects of OpenAI and Ollama");
  verb.AddOption("--model", options->model, "Its architecture: llama-3.1-8b, qwen3-14b, …")
      .Required()
      .Check(NotEmpty());
  verb.AddOption("--gpu", options->gpus, "GPUs of the node that share the model: 0 or 0,1,2,3")
      .Delimiter(',')
      .Check(WholeNumberBetween(0, sim::kMaxGpusPerNode - 1))
      .TypeName("INDEX[,INDEX]…");
  verb.AddOption("--name", options->node, "Name of the simulated node; else ZEUS_SIM_NODE")
      .ShowDefault();
  AddListenOption(verb, options->listen);
  verb.AddOption("--served-name", options->served_name, "Name of the model for clients (--model)");
  verb.AddFlag("--truth", options->truth,
               "Answer GET /zeus/truth/ID with the exact energy of a request, for scoring");
  verb.AddOption("--text-from", options->text_from,
                 "Server whose words become the answers: words real, joules simulated")
      .Check(NotEmpty())
      .TypeName("URL");
  AddShutdownTimeout(verb, options->shutdown_timeout, "answers");
  AddEngineOptions(verb, *options);
  AddFaultOptions(verb, *options);
  verb.Footer(
      "Prints \"listening on URL\" when it is ready. Its GPUs draw the power of the served work, "
      "which every NVML client sees. docs/llm.md describes the physics.");
  verb.OnChosen([options, &action] { action = [options] { return RunLlmSim(*options); }; });
}

}  // namespace zeus::cli

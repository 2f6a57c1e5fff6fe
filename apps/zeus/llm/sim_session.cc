#include "apps/zeus/llm/sim_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/device/sim/inference/model.h"
#include "zeus/device/sim/node_work.h"
#include "zeus/http/limits.h"
#include "zeus/http/server.h"
#include "zeus/inference/server/api.h"
#include "zeus/inference/server/served_engine.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kCheckPeriod = 500ms;

inference::ServedEngineOptions EngineOptions(const LlmSimOptions& options,
                                             const std::string& served_name) {
  return {.model_name = served_name,
          .engine = {.token_budget = options.token_budget,
                     .max_sequences = options.max_sequences,
                     .prefix_hit_rate = options.prefix_hit_rate,
                     .kv_tokens = options.kv_tokens},
          .faults = {.tokens_per_event = options.coalesce,
                     .jitter = Seconds(options.jitter),
                     .no_usage = options.no_usage,
                     .no_done = options.no_done,
                     .stall = options.stall,
                     .stall_time = Seconds(options.stall_time),
                     .disconnect = options.disconnect,
                     .error = options.error},
          .mean_output_tokens = options.mean_output,
          .seed = options.seed};
}

// The words are another model's where they come from another server.
std::string ServedName(const LlmSimOptions& options, const sim::LanguageModel& model) {
  if (!options.served_name.empty()) return options.served_name;
  return std::string(model.name) + (options.text_from.empty() ? "" : "+words-of-another");
}

// The engine completes no response of a server that is being destroyed, however this ends.
class StopAtEnd {
 public:
  explicit StopAtEnd(inference::ServedEngine& engine) : engine_(engine) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { engine_.Stop(); }

 private:
  inference::ServedEngine& engine_;
};

Status CheckGpus(std::vector<unsigned> gpus) {
  std::ranges::sort(gpus);
  const auto twice = std::ranges::adjacent_find(gpus);
  if (twice == gpus.end()) return Ok();
  return InvalidArgument(fmt::format("GPU {} was named twice", *twice));
}

}  // namespace

Result<int> RunLlmSim(const LlmSimOptions& options) {
  ZEUS_RETURN_IF_ERROR(CheckGpus(options.gpus));
  ZEUS_TRY(const sim::LanguageModel* const model, sim::FindLanguageModel(options.model));
  ZEUS_TRY(sim::OpenedNode opened, sim::OpenNode(options.node));
  const Clock& clock = *opened.clock;
  ZEUS_TRY(const auto signals, SignalWatch::Start(SignalWatch::Program::kService));
  const std::string name = ServedName(options, *model);
  ZEUS_TRY(const auto engine, inference::ServedEngine::Create(*model, opened.node, options.gpus,
                                                              clock, EngineOptions(options, name)));
  ZEUS_TRY(const auto api, inference::InferenceApi::Create(
                               {.model_name = name,
                                .truth = options.truth ? inference::InferenceApi::Truth::kShown
                                                       : inference::InferenceApi::Truth::kHidden,
                                .text_from = options.text_from},
                               *engine, clock));
  http::ConnectionCounts counts;
  const std::size_t connections = http::ConnectionsByOpenFiles();
  ZEUS_TRY(const auto server, http::Server::Start({.listen = options.listen,
                                                   .limits = {.connections = connections,
                                                              .per_address = connections,
                                                              .request_time = Seconds(600)}},
                                                  *api, counts, clock));
  const StopAtEnd stop(*engine);
  fmt::print("listening on {}\n", server->url());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  while (signals->WaitUntil(clock.Now() + kCheckPeriod, clock) != SignalWatch::Event::kStop)
    ZEUS_RETURN_IF_ERROR(engine->status());
  server->BeginShutdown();
  (void)server->WaitForShutdown(Seconds(options.shutdown_timeout));
  return 0;
}

}  // namespace zeus::cli

#include "apps/zeus/llm/bench_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "apps/zeus/lists.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/progress_bar.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/client/node/open_node.h"
#include "zeus/http/client.h"
#include "zeus/http/url.h"
#include "zeus/inference/benchmark/bench_report.h"
#include "zeus/inference/benchmark/benchmark.h"
#include "zeus/inference/benchmark/http_transport.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kDefaultRequests = 100;
constexpr std::size_t kDefaultConcurrency = 8;
constexpr std::size_t kLargestPromptFile = std::size_t{1} << 30;
constexpr std::size_t kLargestKey = 64 * 1024;
constexpr Seconds kTelemetryInterval{0.25};  // Clocks are read this often.
constexpr int kSignalExit = 128;

// The URL without the /v1 that base URLs of OpenAI's clients have.
Result<http::Url> ParseServer(const std::string& text) {
  ZEUS_TRY(http::Url url, http::ParseUrl(text));
  constexpr std::string_view kVersion = "/v1";
  if (url.scheme != http::Url::Scheme::kUnix && url.path.ends_with(kVersion))
    url.path.resize(url.path.size() - kVersion.size());
  return url;
}

std::string ClientUrl(const http::Url& url) {
  if (url.scheme == http::Url::Scheme::kUnix) return url.server();
  return url.server() + url.path;
}

// The load, and its description for people.
Result<std::string> ChooseArrivals(const LlmBenchOptions& options,
                                   inference::WorkloadOptions& workload) {
  if (options.rate) {
    workload.arrivals = inference::PoissonArrivals{*options.rate};
    return fmt::format("{:g} requests per second (Poisson)", *options.rate);
  }
  if (!options.steps.empty()) {
    ZEUS_TRY(auto steps, inference::ParseSteps(options.steps));
    workload.arrivals = inference::SteppedArrivals{std::move(steps)};
    return fmt::format("steps {}", options.steps);
  }
  if (!options.trace.empty()) {
    ZEUS_TRY(auto entries, inference::ReadTrace(options.trace));
    workload.arrivals = inference::TracedArrivals{std::move(entries), options.speed};
    return fmt::format("trace {} at {:g} times its speed", Printable(options.trace), options.speed);
  }
  const std::size_t concurrency = options.concurrency.value_or(kDefaultConcurrency);
  workload.arrivals = inference::ClosedLoop{concurrency};
  return fmt::format("{} at once", concurrency);
}

Result<inference::WorkloadOptions> MakeWorkload(const LlmBenchOptions& options, std::string& load) {
  inference::WorkloadOptions workload{.seed = options.seed};
  ZEUS_TRY(load, ChooseArrivals(options, workload));
  if (options.requests)
    workload.requests = *options.requests;
  else if (!options.duration.empty() || !options.steps.empty() || !options.trace.empty())
    workload.requests = std::numeric_limits<std::size_t>::max();
  else
    workload.requests = kDefaultRequests;
  if (!options.prompts.empty()) {
    ZEUS_TRY(const std::string lines, ReadSmallFile(options.prompts, kLargestPromptFile));
    auto prompts = inference::ParsePrompts(lines);
    if (!prompts.ok()) return std::move(prompts).error().While(Printable(options.prompts));
    workload.prompts = std::move(prompts).value();
    load += ", prompts of " + Printable(options.prompts);
  }
  if (!options.prompt_tokens.empty()) {
    load += ", prompts of " + options.prompt_tokens + " tokens";
    ZEUS_TRY(workload.prompt_tokens, inference::TokenCount::Parse(options.prompt_tokens));
  }
  if (!options.output_tokens.empty()) {
    load += ", answers of " + options.output_tokens + " tokens";
    ZEUS_TRY(workload.output_tokens, inference::TokenCount::Parse(options.output_tokens));
  }
  return workload;
}

Result<inference::BenchmarkOptions> MakeBenchmark(const LlmBenchOptions& options,
                                                  const std::string& key, std::string& load) {
  inference::BenchmarkOptions benchmark;
  ZEUS_TRY(benchmark.workload, MakeWorkload(options, load));
  benchmark.load.model = options.model;
  benchmark.load.api = options.api == "chat" ? inference::Api::kChat : inference::Api::kText;
  benchmark.load.exact_lengths = !options.any_length;
  if (!key.empty()) benchmark.load.headers.emplace_back("Authorization", "Bearer " + key);
  if (!options.duration.empty()) {
    ZEUS_TRY(benchmark.load.duration, inference::ParseTime(options.duration));
  }
  ZEUS_TRY(benchmark.load.request_timeout, inference::ParseTime(options.timeout));
  ZEUS_TRY(benchmark.load.idle_timeout, inference::ParseTime(options.idle_timeout));
  if (options.max_seqs) {
    benchmark.summary.saturation = *options.max_seqs;
  } else if (const auto* const loop =
                 std::get_if<inference::ClosedLoop>(&benchmark.workload.arrivals)) {
    benchmark.summary.saturation = loop->concurrency;
  }
  if (!options.slo.empty()) {
    ZEUS_TRY(benchmark.summary.targets, inference::ParseLatencyTargets(options.slo));
  }
  return benchmark;
}

Result<std::string> ReadApiKey(const std::string& file) {
  if (file.empty()) return std::string();
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestKey));
  const std::string key(Trim(text));
  if (key.empty()) return InvalidArgument(Printable(file) + " holds no key");
  return key;
}

// The local GPUs, where there are some to measure.
struct LocalGpus {
  std::unique_ptr<NodeMonitor> node{};
  std::vector<inference::MeasuredGpu> identities{};
  std::string absent_reason{};  // One clause, when none is measured.
};

Result<LocalGpus> OpenBenchGpus(const LlmBenchOptions& options, const http::Url& url,
                                Clock& clock) {
  LocalGpus gpus;
  const bool local = url.scheme == http::Url::Scheme::kUnix || http::IsLoopback(url.host);
  if (options.gpus == "none" || (options.gpus.empty() && !local)) {
    gpus.absent_reason = options.gpus.empty()
                             ? "the server is on another machine: its GPUs are not measured here"
                             : "no GPU is measured";
    return gpus;
  }
  NodeMonitorOptions wanted;
  wanted.cpus = false;
  wanted.rails = false;
  wanted.find_devices = client::OpenThisNode;
  wanted.share = false;  // The whole energy of the GPUs is wanted.
  wanted.telemetry_interval = kTelemetryInterval;
  if (!options.gpus.empty()) {
    ZEUS_TRY(wanted.gpus, ParseGpus(options.gpus));
  }
  auto opened = NodeMonitor::OpenThisMachine(clock, std::move(wanted));
  if (!opened.ok()) {
    if (!options.gpus.empty()) return std::move(opened).error();
    gpus.absent_reason = "no local GPU is measured: " + opened.error().message;
    return gpus;
  }
  gpus.node = std::move(opened).value();
  for (std::size_t i = 0; i < gpus.node->monitor().device_count(); ++i) {
    if (const Gpu* const gpu = gpus.node->gpu(i))
      gpus.identities.push_back({gpu->name(), gpu->identity().model, gpu->identity().uuid});
  }
  if (gpus.identities.empty()) {
    gpus.node.reset();
    gpus.absent_reason = "there is no local GPU whose energy can be read (see zeus doctor)";
  }
  return gpus;
}

// Switches the governor of a gateway, and back to the mode that it found. The client must outlive
// it.
class GovernorControl {
 public:
  // kNotSupported when the server has no governor.
  static Result<std::unique_ptr<GovernorControl>> Open(http::Client& client, Clock& clock) {
    std::unique_ptr<GovernorControl> control(new GovernorControl(client, clock));
    ZEUS_TRY(const Json found, control->Read());
    ZEUS_TRY(control->found_, GetField<std::string>(found, "mode"));
    const Json targets = found.value("targets", Json::object());
    const auto seconds = [&targets](const char* name) -> std::optional<Seconds> {
      const auto value = GetOptionalField<double>(targets, name);
      if (!value.ok() || !value.value()) return std::nullopt;
      return Seconds(*value.value());
    };
    control->targets_ = {.ttft = seconds("ttft_seconds"), .tpot = seconds("tpot_seconds")};
    return control;
  }
  ~GovernorControl() {
    if (present_ == found_) return;
    if (const Status back = Switch(found_); !back.ok())
      log::Warning("the gateway's governor stays {}: {}", present_, back.error().message);
  }
  GovernorControl(const GovernorControl&) = delete;
  GovernorControl& operator=(const GovernorControl&) = delete;

  const inference::LatencyTargets& targets() const { return targets_; }

  // Returns when the mode is in force on all GPUs.
  Status Switch(const std::string& mode) {
    constexpr Seconds kTimeout{10};
    constexpr Seconds kPause{0.05};
    ZEUS_TRY(const http::Reply reply, client_.Send({.method = http::Method::kPut,
                                                    .path = kPath,
                                                    .body = JsonText(Json{{"mode", mode}})}));
    if (reply.status != 200) return Refusal(reply);
    present_ = mode;
    const TimePoint deadline = clock_.Now() + kTimeout;
    while (true) {
      ZEUS_TRY(const Json state, Read());
      if (std::ranges::all_of(state.value("groups", Json::array()), [&mode](const Json& group) {
            return group.value("mode", "") == mode;
          }))
        return Ok();
      if (clock_.Now() >= deadline)
        return Error{ErrorCode::kUnavailable,
                     fmt::format("the gateway's governor does not become {}", mode)};
      clock_.SleepFor(kPause);
    }
  }

 private:
  static constexpr const char* kPath = "/zeus/governor";

  GovernorControl(http::Client& client, Clock& clock) : client_(client), clock_(clock) {}

  static Error Refusal(const http::Reply& reply) {
    const auto body = ParseJson(reply.body);
    std::string why = fmt::format("the server answers {} with {}", kPath, reply.status);
    if (body.ok() && body.value().is_object())
      if (const auto error = body.value().find("error");
          error != body.value().end() && error->is_object())
        why = error->value("message", why);
    return {ErrorCode::kNotSupported,
            fmt::format("--governor needs a zeus llm gateway with --slo at the URL: {}",
                        Printable(why))};
  }

  Result<Json> Read() {
    ZEUS_TRY(const http::Reply reply, client_.Send({.path = kPath}));
    if (reply.status != 200) return Refusal(reply);
    ZEUS_TRY(Json json, ParseJson(reply.body));
    if (!json.is_object() || !json.contains("mode")) return Refusal(reply);
    return json;
  }

  http::Client& client_;
  Clock& clock_;
  std::string found_{};
  std::string present_{};
  inference::LatencyTargets targets_{};
};

// The modes of --governor: two different ones, or none.
Result<std::vector<std::string>> ParseGovernorModes(const std::string& text) {
  std::vector<std::string> modes;
  if (text.empty()) return modes;
  for (const std::string_view part : SplitAtCommas(text)) modes.emplace_back(part);
  const auto known = [](const std::string& mode) {
    return mode == "off" || mode == "observe" || mode == "on";
  };
  if (modes.size() != 2 || modes[0] == modes[1] || !std::ranges::all_of(modes, known))
    return InvalidArgument(fmt::format(
        "--governor takes two modes of off, observe and on, as in off,on, not {}", Quote(text)));
  return modes;
}

// "no request was answered: connect: Connection refused".
Error NothingFinished(const inference::RunSummary& run) {
  std::string reasons;
  for (const auto& [kind, failure] : run.failures) {
    // Requests that ended with the benchmark say nothing about the server.
    if (kind == FailureName(inference::FailureKind::kInterrupted) && run.failures.size() > 1)
      continue;
    reasons += fmt::format("{}{} ({}): {}", reasons.empty() ? "" : "; ", kind, failure.count,
                           failure.first_message);
  }
  return {ErrorCode::kUnavailable,
          fmt::format("no request was answered: {}", reasons.empty() ? "none was sent" : reasons)};
}

// Runs the load once, until its end or a signal.
inference::BenchmarkRun RunWithProgress(const inference::BenchmarkParts& parts,
                                        const inference::BenchmarkOptions& benchmark,
                                        SignalWatch& signals) {
  const bool known = benchmark.workload.requests < std::numeric_limits<std::int64_t>::max();
  ProgressBar bar("requests", known ? static_cast<std::int64_t>(benchmark.workload.requests) : 1);
  std::size_t shown = 0;
  return RunBenchmark(parts, benchmark, [&](const inference::LoadProgress& progress) {
    const std::size_t done = progress.finished + progress.failed;
    if (known && done > shown) bar.Add(static_cast<std::int64_t>(done - shown));
    shown = done;
    return signals.stop_signal() == 0;
  });
}

// Writes the outputs; the exit code says how the load ended.
Result<int> FinishBench(const LlmBenchOptions& options, const inference::BenchReport& report,
                        int stop_signal) {
  if (report.runs.empty())
    return Error{ErrorCode::kUnavailable, "interrupted before a measured run began"};
  const inference::RunSummary& last = report.runs.back().summary;
  if (report.runs.size() == 1 && last.finished == 0) return NothingFinished(last);
  if (!options.request_log.empty()) {
    std::string lines;
    for (const inference::BenchmarkRun& run : report.baseline) lines += ToRequestLines(run);
    for (const inference::BenchmarkRun& run : report.runs) lines += ToRequestLines(run);
    ZEUS_RETURN_IF_ERROR(WriteWhole(options.request_log, lines));
  }
  ZEUS_RETURN_IF_ERROR(WriteOutputs(options.outputs, ToJson(report), ToReport(report)));
  return stop_signal != 0 ? kSignalExit + stop_signal : 0;
}

}  // namespace

Result<int> RunLlmBench(const LlmBenchOptions& options) {
  ZEUS_TRY(const std::vector<std::string> modes, ParseGovernorModes(options.governor));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  if (!options.request_log.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(options.request_log));
  ZEUS_TRY(const http::Url url, ParseServer(options.url));
  ZEUS_TRY(const std::string key, ReadApiKey(options.api_key_file));
  inference::BenchReport report{.command = {"zeus", "llm", "bench"},
                                .host = HostName(),
                                .url = ClientUrl(url),
                                .seed = options.seed,
                                .planned_runs = options.repeat};
  ZEUS_TRY(inference::BenchmarkOptions benchmark, MakeBenchmark(options, key, report.load));

  SystemClock clock;
  ZEUS_TRY(
      const auto signals,
      SignalWatch::Start(SignalWatch::Program::kInteractive));  // Before any thread is started.
  ZEUS_TRY(const auto client, http::Client::Create({.url = ClientUrl(url),
                                                    .token = key,
                                                    .authorities = options.authorities,
                                                    .keep_connection = true}));
  if (benchmark.load.model.empty()) {
    ZEUS_TRY(benchmark.load.model, inference::FindOnlyModel(*client));
  }
  report.model = benchmark.load.model;
  report.command.insert(report.command.end(), {"--model", report.model, "--load", report.load});
  ZEUS_TRY(const LocalGpus gpus, OpenBenchGpus(options, url, clock));
  report.gpus = gpus.identities;
  if (!gpus.absent_reason.empty()) report.remarks.push_back(gpus.absent_reason);
  std::optional<inference::GpuMeter> meter;
  if (gpus.node) meter.emplace(gpus.node->monitor());
  ZEUS_TRY(const auto transport, inference::HttpTransport::Create(
                                     clock, {.url = url, .authorities = options.authorities}));
  inference::GatewayRequests energies(*client);
  const inference::BenchmarkParts parts{.clock = clock,
                                        .transport = *transport,
                                        .meter = meter ? &*meter : nullptr,
                                        .energies = &energies};
  std::unique_ptr<GovernorControl> governor;
  if (!modes.empty()) {
    ZEUS_TRY(governor, GovernorControl::Open(*client, clock));
    if (options.slo.empty()) benchmark.summary.targets = governor->targets();
    report.command.insert(report.command.end(), {"--governor", options.governor});
  }
  // Modes take turns, so that a drift of the machine meets both.
  const unsigned turns = std::max<unsigned>(1, static_cast<unsigned>(modes.size()));
  for (unsigned i = 0; i < turns * (options.warmup + options.repeat) && signals->stop_signal() == 0;
       ++i) {
    const std::string mode = modes.empty() ? "" : modes[i % turns];
    if (governor) ZEUS_RETURN_IF_ERROR(governor->Switch(mode));
    auto run = RunWithProgress(parts, benchmark, *signals);
    run.governor = mode;
    if (i < turns * options.warmup) continue;
    (i % turns + 1 == turns ? report.runs : report.baseline).push_back(std::move(run));
  }
  return FinishBench(options, report, signals->stop_signal());
}

}  // namespace zeus::cli

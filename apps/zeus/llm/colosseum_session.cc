#include "apps/zeus/llm/colosseum_session.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "apps/zeus/http_server_frame.h"
#include "apps/zeus/llm/gateway_session.h"
#include "zeus/base/clock.h"
#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/ticker.h"
#include "zeus/base/version.h"
#include "zeus/colosseum/api/colosseum_api.h"
#include "zeus/colosseum/api/gateway_host.h"
#include "zeus/colosseum/arena.h"
#include "zeus/export/prometheus.h"
#include "zeus/http/readiness.h"
#include "zeus/store/open_repository.h"
#include "zeus/web/application.h"

namespace zeus::cli {
namespace {

colosseum::ArenaOptions MakeArenaOptions(const ColosseumOptions& options) {
  return {.most_duels = static_cast<std::size_t>(options.max_duels),
          .most_per_caller = static_cast<std::size_t>(options.max_duels_per_address),
          .longest_prompt = static_cast<std::size_t>(options.max_prompt),
          .question = {.most_tokens = static_cast<int>(options.max_tokens),
                       .temperature = options.temperature,
                       .top_p = options.top_p,
                       .top_k = static_cast<int>(options.top_k)},
          .pace = colosseum::FindPace(options.pace).value_or(colosseum::Pace::kTogether),
          .characters_per_second = options.characters_per_second,
          .store_text = options.store_text,
          .answer_time = Seconds(options.answer_timeout)};
}

// A gateway of our own for --upstream; null otherwise.
Result<std::unique_ptr<LlmGateway>> StartOwnGateway(const ColosseumOptions& options, Clock& clock) {
  if (options.upstreams.empty()) return std::unique_ptr<LlmGateway>();
  LlmGatewayOptions wanted;
  wanted.upstreams = options.upstreams;
  wanted.gpus = options.gpus;
  wanted.authorities = options.authorities;
  wanted.listen = "127.0.0.1:0";
  return LlmGateway::Start(wanted, clock);
}

Result<std::unique_ptr<colosseum::GatewayHost>> MakeHost(const ColosseumOptions& options,
                                                         const LlmGateway* own, Clock& clock) {
  colosseum::GatewayHostOptions host;
  host.gateway.url = own == nullptr ? options.gateway : own->url();
  if (own == nullptr) host.gateway.authorities = options.authorities;
  host.answers_at_once = static_cast<int>(2 * options.max_duels);
  auto made = colosseum::GatewayHost::Create(host, clock);
  if (!made.ok()) return std::move(made).error().While("--gateway");
  return made;
}

// Calls the arena's steps.
class ArenaThreads {
 public:
  ArenaThreads(colosseum::Arena& arena, const Clock& clock)
      : arena_(arena),
        steps_("zeus-duels", [&arena] { return arena.Step(); }),
        sweeps_("zeus-sweep", [&arena, &clock] {
          arena.Sweep();
          return clock.Now() + colosseum::Arena::kSweepPeriod;
        }) {
    arena_.WakeBy([this] { steps_.Wake(); });
  }
  ~ArenaThreads() { arena_.WakeBy(nullptr); }
  ArenaThreads(const ArenaThreads&) = delete;
  ArenaThreads& operator=(const ArenaThreads&) = delete;

 private:
  colosseum::Arena& arena_;
  Ticker steps_;
  Ticker sweeps_;
};

Result<int> ServeColosseum(const ColosseumOptions& options) {
  SystemClock clock;
  HttpServerFrame frame;
  ZEUS_RETURN_IF_ERROR(frame.Open(options, clock));
  ZEUS_TRY(const std::string database, DatabaseUrl(options));
  ZEUS_TRY(const Store store, OpenStore(database));
  ZEUS_RETURN_IF_ERROR(frame.WatchSignals(clock));
  ZEUS_TRY(const auto own_gateway, StartOwnGateway(options, clock));
  ZEUS_TRY(const auto host, MakeHost(options, own_gateway.get(), clock));
  colosseum::Arena arena(*store.duels, *host, clock, SystemEntropy, MakeArenaOptions(options));
  HttpMetrics metrics;
  http::LoginLimiter logins(clock);
  const web::Application application(
      {.program = "zeus llm colosseum",
       .version = Version(),
       .features = {"colosseum"},
       .token = frame.tokens ? web::TokenUse::kRequired : web::TokenUse::kNone,
       .origins = OriginOptions(options)});
  http::Readiness readiness([&store] { return store.duels->Ping(); }, clock);
  colosseum::ColosseumApi api(
      arena, metrics, frame.log.get(),
      {.access = {.tokens = frame.tokens.get(),
                  .logins = &logins,
                  .origins = OriginOptions(options)},
       .ready = [&readiness] { return readiness.Check(); },
       .more_metrics = [](MetricSet& set) { AddProcess(Version(), ProcessCpuTime(), set); },
       .version = Version(),
       .application = &application});
  ZEUS_TRY(const auto server,
           http::Server::Start(HttpOptions(options), api, metrics.connections(), clock));
  // The last object: nothing may push into responses when the server is destroyed.
  const ArenaThreads threads(arena, clock);
  return ServeUntilSignal(*server, frame, clock, options,
                          {.before_shutdown = [&arena] { arena.Stop(); }});
}

}  // namespace

Result<int> RunColosseum(const ColosseumOptions& options) {
  return RunServer([&options] { return ServeColosseum(options); });
}

}  // namespace zeus::cli

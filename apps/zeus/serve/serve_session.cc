#include "apps/zeus/serve/serve_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/http_server_frame.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/base/version.h"
#include "zeus/budget/budget_server.h"
#include "zeus/export/prometheus.h"
#include "zeus/http/server.h"
#include "zeus/job/local_job_service.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/server/api.h"
#include "zeus/store/open_repository.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kExpiryPeriod = 5s;
constexpr Seconds kRefreshPeriod = 5s;
constexpr Seconds kOwnerPeriod = 500ms;  // How often the owner is looked for.
constexpr Seconds kFollowPeriod = 60s;
constexpr Seconds kFollowedAhead = 24h;
constexpr std::size_t kLargestSchedule = std::size_t{64} << 20;

Result<std::vector<pipeline::RankClocks>> LoadSchedule(const std::string& file) {
  if (file.empty()) return std::vector<pipeline::RankClocks>();
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestSchedule));
  auto schedule = pipeline::ParseReferenceSchedule(text);
  if (!schedule.ok()) return std::move(schedule).error().While(Printable(file));
  return schedule;
}

Result<server::Usage> CountUsage(Store& store, const std::string& name_space) {
  ZEUS_TRY(const JobCounts jobs, store.jobs->Count(name_space));
  ZEUS_TRY(const std::int64_t plans, store.plans->Count(name_space));
  return server::Usage{.jobs = jobs.jobs, .trials = jobs.trials, .plans = plans};
}

// The services for pipelines.
struct Planning {
  LocalPlanService plans;
  PipelineSessions sessions;

  Planning(Store& store, const Clock& clock, const ServeOptions& options,
           std::vector<pipeline::RankClocks> schedule)
      : plans(*store.plans, clock,
              {.solving = {.solves_at_once = static_cast<int>(options.solves)},
               .most_instructions = static_cast<int>(options.max_instructions)}),
        sessions(*store.sessions, plans, clock,
                 {.schedule = std::move(schedule),
                  .forgotten_after = Seconds(options.session_timeout)}) {}
};

// Expires trials whose runs died, and deletes unused pipelines, every few seconds.
class Expiry {
 public:
  Expiry(LocalJobService& service, PipelineSessions& sessions, server::ServerMetrics& metrics,
         const Clock& clock)
      : service_(service),
        sessions_(sessions),
        metrics_(metrics),
        clock_(clock),
        ticker_("zeus-expiry", [this] { return Step(); }) {}

 private:
  TimePoint Step() {
    const Result<int> expired = service_.ExpireOverdueTrials();
    if (expired.ok())
      metrics_.CountExpired(expired.value());
    else
      log::Warning("looking for dead runs failed: {}", expired.error().message);
    if (const Result<int> forgotten = sessions_.DeleteUnused(); !forgotten.ok())
      log::Warning("forgetting old pipelines failed: {}", forgotten.error().message);
    return clock_.Now() + kExpiryPeriod;
  }

  LocalJobService& service_;
  PipelineSessions& sessions_;
  server::ServerMetrics& metrics_;
  const Clock& clock_;
  Ticker ticker_;
};

// A power budget, and the signal that it follows.
struct Budget {
  std::unique_ptr<budget::BudgetServer> server{};
  std::optional<ShiftGoal> follows{};
};

// Opens the power budget of the options; without one the server is null.
Result<Budget> OpenBudget(const ServeOptions& options, Store& store, const CarbonAccounting& carbon,
                          const Clock& clock) {
  Budget budget;
  if (options.budget.empty()) return budget;
  ZEUS_TRY(auto configuration, budget::ReadBudgetConfiguration(options.budget));
  if (configuration.follow) {
    budget.follows = configuration.follow->price ? ShiftGoal::kPrice : ShiftGoal::kCarbon;
    if (!carbon.knows(*budget.follows))
      return InvalidArgument(fmt::format("{}: follow needs a source: give --{} as well",
                                         Printable(options.budget),
                                         configuration.follow->price ? "price" : "carbon"));
  }
  ZEUS_TRY(budget.server,
           budget::BudgetServer::Open(std::move(configuration), *store.budget, clock));
  return budget;
}

// Tells the budget what carbon or prices are to be.
TimePoint FollowForecast(const Budget& budget, const CarbonAccounting& carbon, const Clock& clock) {
  const WallTime now = clock.WallNow();
  const auto forecast = carbon.ForecastFor(*budget.follows, now, Later(now, kFollowedAhead));
  if (forecast.ok()) {
    std::vector<budget::FollowStep> steps;
    for (const Signal::Step& step : forecast.value().signal.steps())
      steps.push_back({.from = step.from, .value = step.value});
    budget.server->Follow(std::move(steps), forecast.value().signal.end());
  } else {
    log::Warning("the power budget follows what was known: {}", forecast.error().message);
  }
  return clock.Now() + kFollowPeriod;
}

// Whether the process to which the server belongs has ended, of which we were a child. The death
// signal of prctl() would come at the end of the thread that started us, and a pipe would stay
// open in every process that the owner has forked.
bool OwnerHasEnded(const ServeOptions& options) {
  return options.owner && static_cast<std::uint64_t>(::getppid()) != *options.owner;
}

// Composes the parts of a server. NOLINTNEXTLINE(readability-function-size)
Result<int> Serve(const ServeOptions& options) {
  SystemClock clock;
  HttpServerFrame frame;
  ZEUS_RETURN_IF_ERROR(frame.Open(options, clock));
  ZEUS_TRY(const std::string database, DatabaseUrl(options));
  ZEUS_TRY(auto schedule, LoadSchedule(options.pipeline_schedule));
  ZEUS_TRY(Store store, OpenStore(database));
  ZEUS_RETURN_IF_ERROR(frame.WatchSignals(clock));
  CarbonOptions carbon_options = options.carbon;
  carbon_options.with_forecast = true;  // For trials that may wait.
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, carbon_options));
  // Runs that could not report while there was no server are not dead.
  LocalJobService service(
      *store.jobs, clock, SystemEntropy,
      {.absence = LeaseClock::Absence::kLeftOut, .boot_clock = CurrentBootTime});
  Planning planning(store, clock, options, std::move(schedule));
  ZEUS_TRY(const Budget power, OpenBudget(options, store, carbon, clock));
  const auto& budget = power.server;
  server::ServerMetrics metrics;
  http::LoginLimiter logins(clock);
  const auto usage = [&store](const std::string& name_space) {
    return CountUsage(store, name_space);
  };
  server::Quotas quotas(usage);
  for (const std::string& quota : options.quotas) ZEUS_RETURN_IF_ERROR(quotas.Add(quota));
  server::Readiness readiness([&store] { return store.jobs->Ping(); }, clock);
  server::JobFeed feed(service, clock);
  std::vector<std::string> features = {"jobs", "plans"};
  if (budget) features.emplace_back("budget");
  const web::Application application(
      {.program = "zeus serve",
       .version = Version(),
       .features = features,
       .token = frame.tokens ? web::TokenUse::kRequired : web::TokenUse::kNone,
       .origins = OriginOptions(options)});
  server::Api api(service, metrics, frame.log.get(),
                  {.plans = &planning.plans,
                   .feed = &feed,
                   .sessions = &planning.sessions,
                   .rank_timeout = Seconds(options.rank_timeout),
                   .budget = budget.get(),
                   .access = {.tokens = frame.tokens.get(),
                              .logins = &logins,
                              .origins = OriginOptions(options)},
                   .carbon = &carbon,
                   .clock = &clock,
                   .quotas = options.quotas.empty() ? nullptr : &quotas,
                   .usage = usage,
                   .ready = [&readiness] { return readiness.Check(); },
                   .more_metrics =
                       [&planning, &budget](MetricSet& set) {
                         server::AddSolveFigures(planning.plans.figures(), set);
                         if (budget) server::AddBudgetFigures(budget->figures(), set);
                         AddProcess(Version(), ProcessCpuTime(), set);
                       },
                   .version = Version(),
                   .application = &application});
  std::unique_ptr<Ticker> following;
  if (power.follows)
    following = std::make_unique<Ticker>("zeus-follow",
                                         [&] { return FollowForecast(power, carbon, clock); });
  std::unique_ptr<Ticker> sharing;
  if (budget) {
    sharing = std::make_unique<Ticker>("zeus-budget", [&budget] { return budget->Step(); });
    budget->OnUrgent([&sharing] { sharing->Wake(); });
  }
  ZEUS_TRY(const std::unique_ptr<http::Server> server,
           http::Server::Start(HttpOptions(options), api, metrics.requests().connections(), clock));
  const Expiry expiry(service, planning.sessions, metrics, clock);
  return ServeUntilSignal(*server, frame, clock, options,
                          {.period = options.owner ? kOwnerPeriod : kRefreshPeriod,
                           .must_end = [&options] { return OwnerHasEnded(options); },
                           // Callers that wait for a frontier may ask the next server.
                           .before_shutdown = [&planning] { planning.plans.Stop(); }});
}

}  // namespace

Result<int> RunServe(const ServeOptions& options) {
  return RunServer([&options] { return Serve(options); });
}

}  // namespace zeus::cli

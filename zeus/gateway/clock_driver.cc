#include "zeus/gateway/clock_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/metrics/metric_catalogue.h"

namespace zeus::gateway {
namespace {

constexpr Seconds kPeriod{0.25};
// Events that wait for the thread while a driver call hangs. Beyond it all are dropped.
constexpr std::size_t kMostEvents = 500'000;

constexpr const char* kSavedMeaning =
    "estimate of the governor's model: energy against the highest clock under the same load";

Json HertzOrNull(const std::optional<Hertz>& clock) {
  return clock ? FiniteOrNull(clock->value()) : Json();
}
Json SecondsOrNull(const std::optional<Seconds>& time) {
  return time ? FiniteOrNull(time->count()) : Json();
}

Json TargetsJson(const ServiceTargets& targets) {
  return {{"ttft_seconds", SecondsOrNull(targets.ttft)},
          {"tpot_seconds", SecondsOrNull(targets.tpot)},
          {"ttft_percentile", targets.ttft_percentile * 100},
          {"tpot_percentile", targets.tpot_percentile * 100},
          {"text", ToText(targets)}};
}

Json GroupJson(const GroupStatus& group) {
  return {{"upstream", group.upstream},
          {"gpus", group.gpus},
          {"mode", GovernorSwitchName(group.mode)},
          {"state", group.state},
          {"text", group.text},
          {"stands_still", group.stands_still},
          {"clock_hertz", HertzOrNull(group.clock)},
          {"wanted_clock_hertz", HertzOrNull(group.wanted)},
          {"locked_clock_hertz", HertzOrNull(group.locked)},
          {"lowest_clock_hertz", HertzOrNull(group.lowest)},
          {"highest_clock_hertz", HertzOrNull(group.highest)},
          {"floor_clock_hertz", group.wanted ? HertzOrNull(group.sums.floor) : Json()},
          {"in_flight", group.in_flight},
          {"clock_changes", group.changes},
          {"learned", group.learned},
          {"ttft_seconds", SecondsOrNull(group.sums.ttft)},
          {"tpot_seconds", SecondsOrNull(group.sums.tpot)},
          {"target_share", FiniteOrNull(group.sums.share)},
          {"requests", group.sums.finished},
          {"missed_requests", group.sums.missed},
          {"missed_because_of_governor", group.sums.added},
          {"energy_joules", FiniteOrNull(group.sums.used.value())},
          {"saved_joules", FiniteOrNull(group.sums.saved.value())},
          {"saved_meaning", kSavedMeaning}};
}

void AddGroupMetrics(const GroupStatus& group, MetricSet& set) {
  const Labels labels{{"gpus", group.gpus}};
  const auto with = [&labels](std::string_view name, const std::string& value) {
    Labels more = labels;
    more.emplace_back(name, value);
    return more;
  };
  set.Add(metrics::kGovernorState, with("state", group.state), 1);
  if (group.wanted) set.Add(metrics::kGovernorClock, labels, group.wanted->value());
  set.Add(metrics::kGovernorChanges, labels, static_cast<double>(group.changes));
  const GovernorStatus& sums = group.sums;
  set.Add(metrics::kGovernorRequests, with("outcome", "kept"),
          static_cast<double>(sums.finished - sums.missed));
  set.Add(metrics::kGovernorRequests, with("outcome", "missed"),
          static_cast<double>(sums.missed - sums.added));
  set.Add(metrics::kGovernorRequests, with("outcome", "missed_by_governor"),
          static_cast<double>(sums.added));
  set.Add(metrics::kGovernorSaved, labels, sums.saved.value());
}

std::string SummaryOf(const GroupStatus& group, GovernorSwitch furthest) {
  const GovernorStatus& sums = group.sums;
  std::string text = fmt::format("governor of {}: ", group.gpus);
  const Joules otherwise = furthest == GovernorSwitch::kOn ? sums.used + sums.saved : sums.used;
  if (sums.used <= Joules(0)) {
    text += "no energy was measured";
  } else {
    text += fmt::format("{} about {} of {} ({:.0f} %) against the highest clock, an estimate",
                        furthest == GovernorSwitch::kOn ? "saved" : "would have saved",
                        EnergyText(sums.saved), EnergyText(otherwise),
                        otherwise > Joules(0) ? 100 * sums.saved.value() / otherwise.value() : 0.0);
  }
  text += fmt::format("; {} of {} requests missed a target, {} of them because of the governor",
                      sums.missed, sums.finished, sums.added);
  return text;
}

}  // namespace

Result<GovernorSwitch> ParseGovernorSwitch(std::string_view text) {
  for (const GovernorSwitch mode :
       {GovernorSwitch::kOff, GovernorSwitch::kObserve, GovernorSwitch::kOn})
    if (text == GovernorSwitchName(mode)) return mode;
  return InvalidArgument(fmt::format("a governor is off, observe or on, not {}", Quote(text)));
}

Result<std::unique_ptr<ClockDriver>> ClockDriver::Create(ClockDriverOptions options,
                                                         const Clock& clock) {
  if (options.groups.empty())
    return InvalidArgument("a governor needs the GPUs of an upstream: name them with --gpus");
  return std::unique_ptr<ClockDriver>(new ClockDriver(std::move(options), clock));
}

ClockDriver::ClockDriver(ClockDriverOptions options, const Clock& clock)
    : targets_(options.targets),
      furthest_(options.mode),
      clock_(clock),
      store_(options.knowledge_folder
                 ? std::optional<EngineKnowledgeStore>(*options.knowledge_folder)
                 : std::nullopt),
      present_(options.mode),
      wanted_(options.mode) {
  for (GovernedGpus& gpus : options.groups) {
    places_.resize(std::max(places_.size(), gpus.upstream + 1));
    places_[gpus.upstream] = groups_.size();
    groups_.push_back(
        std::make_unique<GovernedGroup>(std::move(gpus), targets_, store_ ? &*store_ : nullptr));
  }
  Publish();
}

ClockDriver::~ClockDriver() {
  if (const Status stopped = Stop(); !stopped.ok()) log::Failure("{}", stopped.error().message);
}

void ClockDriver::StartThread() {
  thread_ = std::make_unique<Ticker>("zeus-governor", [this] {
    try {
      return Step();
    } catch (const std::exception& error) {
      log::Warning("the governor skips a decision: {}", Printable(error.what()));
      return clock_.Now() + kPeriod;
    }
  });
}

void ClockDriver::OnRequest(RequestEvent event) {
  if (event.upstream >= places_.size() || !places_[event.upstream]) return;
  const bool arrived = event.kind == RequestEvent::Kind::kArrived;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kMostEvents) {
      queue_.clear();
      overflowed_ = true;
    }
    queue_.push_back(std::move(event));
  }
  // A request may need a higher clock at once; tokens and ends do not.
  if (arrived && thread_) thread_->Wake();
}

TimePoint ClockDriver::Step() {
  std::vector<RequestEvent> events;
  bool overflowed = false;
  {
    const std::lock_guard lock(mutex_);
    events.swap(queue_);
    overflowed = std::exchange(overflowed_, false);
  }
  if (overflowed)
    for (const auto& group : groups_) group->ForgetRequests();
  HandOver(events);
  const TimePoint now = clock_.Now();
  const GovernorSwitch mode = wanted_;
  const bool due = now >= next_ || mode != present_;
  present_ = mode;
  bool decided = due;
  for (const auto& group : groups_) {
    if (!due && !group->WantsDecision()) continue;
    group->Decide(now, mode);
    decided = true;
  }
  if (due) next_ = now + kPeriod;
  if (decided) Publish();
  return next_;
}

void ClockDriver::HandOver(const std::vector<RequestEvent>& events) {
  for (const RequestEvent& event : events) groups_[*places_[event.upstream]]->OnRequest(event);
}

Status ClockDriver::Stop() {
  thread_.reset();
  if (std::exchange(stopped_, true)) return Ok();
  Status first = Ok();
  for (const auto& group : groups_)
    if (Status ended = group->End(); !ended.ok() && first.ok()) first = std::move(ended);
  Publish();
  return first;
}

void ClockDriver::Publish() {
  std::vector<GroupStatus> all;
  all.reserve(groups_.size());
  for (const auto& group : groups_) all.push_back(group->status());
  const std::lock_guard lock(mutex_);
  published_ = std::move(all);
}

std::vector<GroupStatus> ClockDriver::Published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

std::optional<Hertz> ClockDriver::LockedClock(std::size_t upstream) const {
  if (upstream >= places_.size() || !places_[upstream]) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return published_[*places_[upstream]].locked;
}

Status ClockDriver::Switch(GovernorSwitch mode) {
  if (mode > furthest_)
    return Error{ErrorCode::kConflict,
                 "this gateway was started with --slo-observe and touches no clock: start it "
                 "without that option"};
  wanted_ = mode;
  if (thread_) thread_->Wake();
  return Ok();
}

Json ClockDriver::ToJson() const {
  Json groups = Json::array();
  for (const GroupStatus& group : Published()) groups.push_back(GroupJson(group));
  return {{"mode", GovernorSwitchName(wanted_)},
          {"furthest_mode", GovernorSwitchName(furthest_)},
          {"targets", TargetsJson(targets_)},
          {"groups", std::move(groups)}};
}

void ClockDriver::AddMetrics(MetricSet& set) const {
  for (const GroupStatus& group : Published()) AddGroupMetrics(group, set);
}

std::vector<std::string> ClockDriver::Announcement() const {
  std::vector<std::string> lines;
  for (const GroupStatus& group : Published())
    lines.push_back(fmt::format("governor of {}: {} {}", group.gpus,
                                furthest_ == GovernorSwitch::kOn
                                    ? "the lowest clock that keeps"
                                    : "observes, without touching the clock, what would keep",
                                zeus::ToText(targets_)));
  return lines;
}

std::vector<std::string> ClockDriver::Summary() const {
  std::vector<std::string> lines;
  for (const GroupStatus& group : Published()) lines.push_back(SummaryOf(group, furthest_));
  return lines;
}

}  // namespace zeus::gateway

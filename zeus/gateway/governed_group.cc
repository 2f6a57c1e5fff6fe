#include "zeus/gateway/governed_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus::gateway {
namespace {

constexpr Seconds kSavePeriod{300};  // How often knowledge is kept.
// Names of models that are counted; clients can make up names.
constexpr std::size_t kMostModels = 64;

void AddStatus(const GovernorStatus& more, GovernorStatus& sums) {
  sums.finished += more.finished;
  sums.missed += more.missed;
  sums.added += more.added;
  sums.used += more.used;
  sums.saved += more.saved;
  sums.ttft = more.ttft;
  sums.tpot = more.tpot;
  sums.share = more.share;
  sums.floor = more.floor;
}

// Whether a governor that decides so knows its engine.
bool ShowsKnowledge(ClockReason reason) {
  return reason == ClockReason::kSweep || reason == ClockReason::kTargets ||
         reason == ClockReason::kLeastEnergy || reason == ClockReason::kMissed;
}

}  // namespace

const char* GovernorSwitchName(GovernorSwitch mode) {
  switch (mode) {
    case GovernorSwitch::kOff:
      return "off";
    case GovernorSwitch::kObserve:
      return "observe";
    case GovernorSwitch::kOn:
      return "on";
  }
  return "off";
}

GovernedGroup::GovernedGroup(GovernedGpus gpus, const ServiceTargets& targets,
                             const EngineKnowledgeStore* store)
    : gpus_(std::move(gpus)), targets_(targets), store_(store) {
  status_.upstream = gpus_.upstream_name;
  status_.gpus = gpus_.gpus;
  Wait();
}

// Requests.

void GovernedGroup::OnRequest(const RequestEvent& event) {
  switch (event.kind) {
    case RequestEvent::Kind::kArrived:
      in_flight_[event.id] = {.arrival = event.time, .prompt_tokens = event.tokens};
      if (models_.size() < kMostModels || models_.contains(event.model)) ++models_[event.model];
      if (governor_) governor_->OnArrival(event.time, event.id, event.tokens);
      return;
    case RequestEvent::Kind::kTokens: {
      const auto found = in_flight_.find(event.id);
      if (found == in_flight_.end()) return;
      if (found->second.tokens == 0) found->second.first = event.time;
      found->second.last = event.time;
      found->second.tokens += event.tokens;
      if (governor_) governor_->OnTokens(event.time, event.id, static_cast<unsigned>(event.tokens));
      return;
    }
    case RequestEvent::Kind::kEnded:
      in_flight_.erase(event.id);
      if (!governor_) return;
      if (event.tokens > 0) governor_->OnPromptTokens(event.id, event.tokens);
      governor_->OnEnd(event.time, event.id);
      return;
  }
}

// Tells a new governor of the requests in flight, in the order of time.
void GovernedGroup::RetellRequests() {
  std::vector<std::tuple<TimePoint, InferenceRequestId, unsigned>> events;
  for (const auto& [id, request] : in_flight_) {
    events.emplace_back(request.arrival, id, 0);
    if (request.tokens > 0) events.emplace_back(request.first, id, 1);
    if (request.tokens > 1)
      events.emplace_back(request.last, id, static_cast<unsigned>(request.tokens) - 1);
  }
  std::ranges::sort(events);
  for (const auto& [time, id, tokens] : events) {
    if (tokens == 0)
      governor_->OnArrival(time, id, in_flight_[id].prompt_tokens);
    else
      governor_->OnTokens(time, id, tokens);
  }
}

void GovernedGroup::ForgetRequests() {
  DropGovernor();
  in_flight_.clear();
}

bool GovernedGroup::WantsDecision() const {
  return mode_ == GovernorSwitch::kOn && governor_ && governor_->WantsDecision();
}

// Governors.

EngineName GovernedGroup::Engine() const {
  const auto most = std::ranges::max_element(
      models_, [](const auto& one, const auto& other) { return one.second < other.second; });
  return {.model = most == models_.end() ? std::string() : most->first,
          .gpus = gpus_.gpu_model,
          .highest = status_.highest.value_or(Hertz(0))};
}

void GovernedGroup::KeepKnowledge() {
  if (!governor_ || !status_.learned) return;
  knowledge_ = governor_->knowledge();
  if (store_ == nullptr) return;
  if (const Status saved = store_->Save(Engine(), *knowledge_); !saved.ok())
    log::Warning("the governor's knowledge of {} is not kept for the next start: {}",
                 Printable(Engine().model), saved.error().message);
}

void GovernedGroup::DropGovernor() {
  KeepKnowledge();
  if (governor_ && mode_ != GovernorSwitch::kOff) AddStatus(governor_->status(), sums_);
  governor_.reset();
}

void GovernedGroup::ChangeMode(GovernorSwitch mode) {
  DropGovernor();
  if (const Status released = gpus_.knob->Release(); !released.ok())
    log::Failure("{}", released.error().message);
  mode_ = status_.mode = mode;
  status_.locked.reset();
  status_.wanted.reset();
  confirmed_ = false;
  refused_.reset();
  Wait();
}

bool GovernedGroup::MakeGovernor() {
  auto clocks = gpus_.knob->Supported();
  if (!clocks.ok()) {
    StandStill(fmt::format("The governor stands still: {}.", clocks.error().message));
    return false;
  }
  status_.lowest = clocks.value().front();
  status_.highest = clocks.value().back();
  if (!knowledge_ && store_ != nullptr && !std::exchange(store_asked_, true)) {
    knowledge_ = store_->Find(Engine());
    status_.learned = knowledge_.has_value();
  }
  auto governor = ClockGovernor::Create(
      {.targets = targets_,
       .clocks = std::move(clocks).value(),
       .mode = mode_ == GovernorSwitch::kOn ? GovernorMode::kActive : GovernorMode::kObserver,
       .knowledge = knowledge_});
  if (!governor.ok()) {
    StandStill(fmt::format("The governor stands still: {}.", governor.error().message));
    return false;
  }
  governor_.emplace(std::move(governor).value());
  RetellRequests();
  return true;
}

// Decisions.

void GovernedGroup::Wait() {
  status_.state = "waiting";
  status_.stands_still = false;
  status_.text = fmt::format(
      "The governor waits until requests have shown that no other program has locked "
      "the clock of {}.",
      gpus_.gpus);
}

void GovernedGroup::StandStill(const std::string& sentence) {
  status_.state = ClockReasonName(ClockReason::kForeign);
  status_.text = sentence;
  status_.locked.reset();
  // Once, until it works again: the reason may name a clock that changes.
  if (!std::exchange(status_.stands_still, true)) log::Warning("{}: {}", gpus_.gpus, sentence);
}

std::optional<std::string> GovernedGroup::FindObstacle() {
  if (refused_) return std::exchange(refused_, std::nullopt);
  if (confirmed_ && mode_ == GovernorSwitch::kOn) return std::nullopt;
  const auto ours = gpus_.knob->IsOurs();
  if (!ours.ok()) return ours.error().message;
  confirmed_ = confirmed_ || ours.value();
  return std::nullopt;
}

void GovernedGroup::Decide(TimePoint now, GovernorSwitch mode) {
  if (mode != mode_) ChangeMode(mode);
  GovernorSample sample{.time = now, .energy = gpus_.energy()};
  if (const auto present = gpus_.knob->Present(); present.ok()) sample.clock = present.value();
  status_.clock = sample.clock;
  sample.foreign = FindObstacle();
  if (!confirmed_ && !sample.foreign) {
    if (!status_.stands_still) Wait();
    return;
  }
  if (!governor_) {
    if (sample.foreign)
      return StandStill(fmt::format("The governor stands still: {}.", *sample.foreign));
    if (!MakeGovernor()) return;
  }
  Apply(governor_->Decide(sample));
  if (now < next_save_) return;
  if (next_save_ != TimePoint()) KeepKnowledge();
  next_save_ = now + kSavePeriod;
}

void GovernedGroup::Apply(const ClockDecision& decision) {
  status_.wanted = decision.clock;
  if (ShowsKnowledge(decision.reason)) status_.learned = true;
  if (decision.reason == ClockReason::kForeign) {
    StandStill(decision.text);
    if (mode_ == GovernorSwitch::kOn) {
      confirmed_ = false;
      gpus_.knob->Disown();
    }
    return;
  }
  if (std::exchange(status_.stands_still, false))
    log::Info("the governor of {} works again", gpus_.gpus);
  status_.state = mode_ == GovernorSwitch::kOff ? "off" : ClockReasonName(decision.reason);
  status_.text = mode_ == GovernorSwitch::kOff ? "The governor is switched off." : decision.text;
  if (!decision.lock) return;
  if (const Status locked = gpus_.knob->Lock(*decision.lock); !locked.ok()) {
    refused_ = locked.error().message;
    confirmed_ = false;
    status_.locked.reset();
    return;
  }
  status_.locked = *decision.lock;
  ++status_.changes;
}

Status GovernedGroup::End() {
  DropGovernor();
  status_.state = "off";
  status_.text = "The governor has ended.";
  status_.locked.reset();
  return gpus_.knob->Release();
}

GroupStatus GovernedGroup::status() const {
  GroupStatus status = status_;
  status.in_flight = in_flight_.size();
  status.sums = sums_;
  if (governor_) {
    GovernorStatus present = governor_->status();
    if (mode_ == GovernorSwitch::kOff)
      present = {.ttft = present.ttft, .tpot = present.tpot, .floor = present.floor};
    AddStatus(present, status.sums);
  }
  return status;
}

}  // namespace zeus::gateway

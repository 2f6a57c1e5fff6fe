#include "zeus/daemon/api/budget_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/http/url.h"

namespace zeus::daemon {
namespace {

using namespace std::chrono_literals;
using wire::LeaseView;

constexpr const char* kLeaseName = "power budget";
constexpr Seconds kFirstTtl = 20s;  // The lease before the first grant has it.
constexpr Seconds kRetry = 2s;      // After a report without an answer.
constexpr Seconds kLongestSetting = 10s;
constexpr Seconds kRoundTrip = 1s;  // A renewal may take so long without a new lease.

wire::KnobKey LimitOf(const std::string& device) {
  return {.device = device, .knob = wire::LeaseKnob::kGpuPowerLimit};
}

std::optional<Watts> WattsOf(const std::optional<wire::KnobValue>& value) {
  if (!value) return std::nullopt;
  const auto* setting = std::get_if<Setting>(&*value);
  if (setting == nullptr) return std::nullopt;
  const auto* watts = std::get_if<Watts>(setting);
  return watts == nullptr ? std::nullopt : std::optional(*watts);
}

std::optional<PowerRange> RangeOf(const std::optional<KnobFacts>& facts) {
  if (!facts || !facts->choices) return std::nullopt;
  const auto* lowest = std::get_if<Watts>(&facts->choices->lowest);
  const auto* highest = std::get_if<Watts>(&facts->choices->highest);
  if (lowest == nullptr || highest == nullptr) return std::nullopt;
  return PowerRange{.min = *lowest, .max = *highest};
}

// The power limit of a device that a lease asks for.
std::optional<Watts> CapIn(const LeaseView& lease, const std::string& device) {
  for (const wire::KnobView& knob : lease.knobs) {
    if (knob.request.key.device != device) continue;
    const auto* cap = std::get_if<wire::AtMost>(&knob.request.demand);
    const auto* watts = cap == nullptr ? nullptr : std::get_if<Watts>(&cap->value);
    if (watts != nullptr) return *watts;
  }
  return std::nullopt;
}

// The sentence of an error, or the beginning of whatever else was answered.
std::string ReasonIn(const std::string& body) {
  constexpr std::size_t kMost = 300;
  const auto json = ParseJson(body);
  std::string reason = body;
  if (json.ok() && json.value().is_object() && json.value().contains("error") &&
      json.value()["error"].is_object())
    reason = json.value()["error"].value("message", "");
  return Printable(reason.substr(0, kMost));
}

budget::JobReport ReportJob(const JobBook::View& job) {
  const auto label = [&](const char* name) {
    const auto found = job.spec.labels.find(name);
    return found == job.spec.labels.end() ? std::string() : found->second;
  };
  budget::JobReport report{.id = job.spec.id};
  report.name = label("name");
  report.partition = label("partition");
  const auto slowdown = ParseDouble(label("max_slowdown"));
  if (slowdown.ok() && slowdown.value() >= 1) report.max_slowdown = slowdown.value();
  if (auto curve = budget::ParseCurveText(label("power_curve")); curve.ok())
    report.curve = std::move(curve).value();
  report.devices.assign(job.spec.devices.begin(), job.spec.devices.end());
  return report;
}

}  // namespace

BudgetAgent::BudgetAgent(Daemon& daemon, Send send, Options options)
    : daemon_(daemon),
      send_(std::move(send)),
      options_(std::move(options)),
      lease_(fmt::format("{:x}", SystemEntropy())),
      random_(SystemEntropy()) {}

std::optional<LeaseView> BudgetAgent::OwnLease() const {
  for (const LeaseView& view : daemon_.book().List(DaemonItself(), EverythingGranted()))
    if (view.name == kLeaseName && view.subject == DaemonItself().subject &&
        view.lease_class == wire::LeaseClass::kSite && view.state != wire::LeaseState::kRestoring &&
        view.state != wire::LeaseState::kEnded)
      return view;
  return std::nullopt;
}

Status BudgetAgent::Begin() {
  const auto before = OwnLease();
  for (const NodeDevice& device : daemon_.devices().gpus()) {
    const auto range = RangeOf(daemon_.desk().Find(LimitOf(device.id)));
    if (!range) {
      log::Warning("{} has no power limit: its draw is not part of the power budget", device.name);
      continue;
    }
    const Watts fallback =
        std::clamp(options_.fallback.value_or(range->min), range->min, range->max);
    if (options_.fallback && *options_.fallback != fallback)
      log::Warning(
          "{} cannot be limited to the fallback of {}: its limits go from {} to {}, so it "
          "falls back to {}",
          device.name, PowerText(*options_.fallback), PowerText(range->min), PowerText(range->max),
          PowerText(fallback));
    caps_.push_back({.device = device.id, .cap = fallback, .fallback = fallback});
    if (!before) continue;
    // The lease of the daemon's last run goes on until it has expired.
    caps_.back().cap = CapIn(*before, device.id).value_or(fallback);
  }
  if (caps_.empty())
    return Error{ErrorCode::kNotSupported, "no GPU of this node has a power limit to be budgeted"};
  Tell();
  if (before) return Ok();
  return Hold(caps_, kFirstTtl);
}

Status BudgetAgent::WaitUntilHeld(const std::string& lease) {
  for (const budget::DeviceCap& cap : caps_)
    if (!daemon_.desk().WaitUntilSettled(LimitOf(cap.device), kLongestSetting))
      return Error{ErrorCode::kUnavailable, cap.device + " does not take its power limit"};
  const auto found = daemon_.book().View(DaemonItself(), EverythingGranted(), lease);
  const auto* view = std::get_if<LeaseView>(&found);
  if (view == nullptr) return Error{ErrorCode::kUnavailable, "the lease of the budget is gone"};
  const auto settled = daemon_.Settled(*view);
  if (!settled) return Error{ErrorCode::kUnavailable, "the power limits are not set yet"};
  return *settled;
}

// Makes the caps hold for `left`, and the fallback after that.
Status BudgetAgent::Hold(const std::vector<budget::DeviceCap>& caps, Seconds left) {
  std::vector<wire::KnobRequest> requests;
  std::vector<wire::KnobRequest> fallback;
  for (const budget::DeviceCap& cap : caps) {
    requests.push_back({.key = LimitOf(cap.device), .demand = wire::AtMost{cap.cap}});
    fallback.push_back({.key = LimitOf(cap.device), .demand = wire::AtMost{cap.fallback}});
  }
  const auto own = OwnLease();
  if (own && !own->fell_back && caps == caps_ && ttl_ > 0s && left >= ttl_) {
    const auto beaten = daemon_.book().Heartbeat(DaemonItself(), EverythingGranted(), own->id);
    if (!std::holds_alternative<wire::LeaseRefusal>(beaten)) return Ok();
  }
  ttl_ = std::max(Seconds(1), left - kRoundTrip);
  const auto made =
      own ? daemon_.book().Replace(DaemonItself(), EverythingGranted(), own->id, requests,
                                   LeaseBook::Renewal{.ttl = ttl_, .fallback = fallback})
          : daemon_.Create(DaemonItself(), EverythingGranted(),
                           {.name = kLeaseName,
                            .holder = wire::HolderKind::kTtl,
                            .ttl = ttl_,
                            .lease_class = wire::LeaseClass::kSite,
                            .requests = requests,
                            .fallback = fallback});
  if (const auto* refusal = std::get_if<wire::LeaseRefusal>(&made)) return wire::ToError(*refusal);
  caps_ = caps;
  daemon_.DeadlinesChanged();
  return WaitUntilHeld(std::get<LeaseView>(made).id);
}

std::optional<budget::DeviceReport> BudgetAgent::ReportDevice(
    const budget::DeviceCap& held, const std::optional<LeaseView>& own) const {
  const wire::KnobKey knob = LimitOf(held.device);
  const auto range = RangeOf(daemon_.desk().Find(knob));
  const NodeDevice* device = daemon_.devices().Find(held.device);
  if (!range || device == nullptr || device->gpu == nullptr) return std::nullopt;
  const auto latest = daemon_.desk().Latest(knob);
  const Watts enforced = latest ? WattsOf(latest->enforced).value_or(range->max) : range->max;
  const Watts lent = own && own->fell_back ? held.fallback : held.cap;
  // Another program may have set more, which is respected; and without a lease anybody may.
  budget::DeviceReport report{.id = held.device,
                              .model = device->gpu->identity().model,
                              .lowest = range->min,
                              .highest = range->max,
                              .cap = own ? std::max(lent, enforced) : range->max,
                              .fallback = own ? held.fallback : range->max};
  if (!device->recorded) return report;
  const auto present = daemon_.recorder().monitor().Now(*device->recorded);
  if (present.power.ok()) report.power = std::max(Watts(0), present.power.value());
  if (present.utilization.ok())
    report.utilization = std::clamp(present.utilization.value().compute, 0.0, 1.0);
  return report;
}

budget::NodeReport BudgetAgent::MakeReport() {
  daemon_.ReadingsWanted();
  budget::NodeReport report = lease_.BeginReport();
  report.node = options_.node;
  const auto own = OwnLease();
  report.guarded = options_.guarded && own.has_value();
  for (const budget::DeviceCap& held : caps_)
    if (auto device = ReportDevice(held, own)) report.devices.push_back(*std::move(device));
  for (const JobBook::View& job : daemon_.jobs().List())
    if (!job.ended) report.jobs.push_back(ReportJob(job));
  return report;
}

// A server takes a new node into its budget first and grants at its second report, so the first
// failure is not worth a line in the log.
TimePoint BudgetAgent::NoGrant(const std::string& why) {
  trouble_ = why;
  if (++failures_ > 1 && std::exchange(warned_, why) != why)
    log::Warning("power budget: {}; {}", why,
                 granted_ ? "after its grant the node keeps to its fallback"
                          : "no grant has come yet, so its GPUs stay at their fallback");
  Tell();
  return daemon_.clock().Now() + kRetry * random_.Uniform(0.9, 1.1);
}

void BudgetAgent::Tell() {
  const auto own = OwnLease();
  daemon_.SetBudgetState({.server = options_.server,
                          .node = options_.node,
                          .granted = granted_,
                          .fallback = !granted_ || !own || own->fell_back,
                          .trouble = trouble_});
}

TimePoint BudgetAgent::Step() {
  Clock& clock = daemon_.clock();
  const budget::NodeReport report = MakeReport();
  const TimePoint sent_at = clock.Now();
  const auto reply = send_({.method = http::Method::kPost,
                            .path = "/v1/nodes/" + http::PercentEncoded(options_.node) + "/report",
                            .body = JsonText(ToJson(report))});
  const auto again = [&](Seconds after) { return clock.Now() + after * random_.Uniform(0.9, 1.1); };
  if (!reply.ok()) return NoGrant(reply.error().message);
  if (reply.value().status != 200) {
    return NoGrant(fmt::format("{} answered {}: {}", options_.server, reply.value().status,
                               ReasonIn(reply.value().body)));
  }
  const auto json = ParseJson(reply.value().body);
  const auto grant = json.ok() ? budget::ParseGrant(json.value()) : json.error();
  if (!grant.ok()) return NoGrant("the server's grant makes no sense: " + grant.error().message);
  const auto left = lease_.Accept(grant.value(), sent_at, clock.Now());
  if (!left) return again(grant.value().next_report);
  const bool changed = grant.value().caps != caps_;
  if (const Status held = Hold(grant.value().caps, *left); !held.ok())
    return NoGrant(held.error().message);
  granted_ = sent_at;
  failures_ = 0;
  trouble_.clear();
  warned_.clear();
  Tell();
  lease_.NoteApplied(grant.value().number);
  // The sooner a change is confirmed, the sooner its watts are another's.
  return changed ? clock.Now() : again(grant.value().next_report);
}

}  // namespace zeus::daemon

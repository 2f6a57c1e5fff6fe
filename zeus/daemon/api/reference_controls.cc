#include <fmt/format.h>

#include <memory>
#include <utility>

#include "zeus/daemon/api/implicit_leases.h"
#include "zeus/daemon/api/reference_routes.h"

// The reference's requests that change something. Each is a change of the caller's implicit lease.
namespace zeus::daemon {
namespace {

using wire::LeaseKnob;
using wire::LeaseRefusal;
using wire::LeaseState;
using Change = ImplicitLeases::Change;
using Changes = std::vector<Change>;

// Statuses as the reference has them, and 409, 429 for what it does not know.
int StatusFor(LeaseRefusal::Kind kind) {
  const int status = wire::StatusOf(kind);
  return status == 404 || status == 422 ? 400 : status;
}

// A lease that was changed, and the device that it is about.
struct Pending {
  const NodeDevice* device;
  std::string lease;
};

// The answer when all leases are as they should be; nullopt while some are not.
std::optional<http::Answer> LookAt(Daemon& daemon, const std::vector<Pending>& pending,
                                   AnswersByDevice answers) {
  for (const Pending& one : pending) {
    const auto found = daemon.book().View(DaemonItself(), EverythingGranted(), one.lease);
    const auto* view = std::get_if<wire::LeaseView>(&found);
    if (view == nullptr) continue;  // It has ended and is forgotten.
    if (view->state == LeaseState::kApplying || view->state == LeaseState::kRestoring)
      return std::nullopt;
    if (const auto trouble = daemon.book().TroubleOf(one.lease))
      answers.Fail(one.device->index, *trouble);
  }
  return answers.failed() ? answers.Failure() : http::Answer{};
}

http::Answer AnswerWhenSet(Daemon& daemon, std::vector<Pending> pending,
                           const AnswersByDevice& answers) {
  std::vector<std::string> topics;
  for (const Pending& one : pending) topics.push_back(one.lease);
  const auto give_up = [pending, answers] {
    AnswersByDevice late = answers;
    for (const Pending& one : pending)
      late.Fail(one.device->index, 500, "the device did not take the setting in time");
    return late.Failure();
  };
  return daemon.waiting().Wait(
      {.topics = std::move(topics),
       .look = [&daemon, pending, answers] { return LookAt(daemon, pending, answers); },
       .give_up = give_up,
       .timeout = daemon.options().longest_apply});
}

// Failures of a request that nobody waits for.
void Record(Daemon& daemon, const Call& call, const NodeDevice& device,
            const LeaseRefusal& refusal) {
  AuditEntry entry{.event = "refused",
                   .subject = call.caller->subject,
                   .executable = call.caller->executable,
                   .reason = call.request.target,
                   .outcome = fmt::format("{}: {}", device.name, refusal.message)};
  if (call.caller->process) entry.pid = call.caller->process->pid;
  daemon.audit().AppendRefusal(std::move(entry));
}

class Controls {
 public:
  explicit Controls(Daemon& daemon) : daemon_(daemon), leases_(daemon) {}

  // `changes` says what to change on one device.
  template <class ChangesOf>
  http::Answer Apply(const Call& call, ChangesOf changes) {
    if (!call.Query("gpu_ids")) return ToAnswer(InvalidArgument("gpu_ids: is missing"));
    const auto devices = NumberedDevices(call, "gpu_ids", daemon_.devices().gpus());
    if (!devices.ok()) return ToAnswer(devices.error());
    const auto block = BoolParameter(call, "block");
    if (!block.ok()) return ToAnswer(block.error());
    if (!block.value()) return ToAnswer(InvalidArgument("block: is missing: true or false"));
    AnswersByDevice answers;
    std::vector<Pending> pending;
    for (const NodeDevice* device : devices.value()) {
      const auto changed = leases_.Apply(call, device->id, changes(*device));
      if (const auto* refusal = std::get_if<LeaseRefusal>(&changed)) {
        answers.Fail(device->index, StatusFor(refusal->kind), refusal->message);
        if (!*block.value()) Record(daemon_, call, *device, *refusal);
      } else if (const std::string& lease = std::get<std::string>(changed); !lease.empty()) {
        pending.push_back({.device = device, .lease = lease});
      }
    }
    if (!*block.value()) return {};
    return AnswerWhenSet(daemon_, std::move(pending), answers);
  }

  http::Answer SetPowerLimit(const Call& call);
  http::Answer SetPersistence(const Call& call);
  http::Answer LockClocks(const Call& call, LeaseKnob knob);
  http::Answer ResetClocks(const Call& call, const std::vector<LeaseKnob>& knobs);

 private:
  // Whether the knob would be at this value without any lease.
  bool IsBaseline(const wire::KnobKey& knob, const wire::KnobValue& value) const;

  Daemon& daemon_;
  ImplicitLeases leases_;
};

bool Controls::IsBaseline(const wire::KnobKey& knob, const wire::KnobValue& value) const {
  const auto report = daemon_.desk().Latest(knob);
  if (!report || report->released || !report->baseline) return false;
  const auto* before = std::get_if<Setting>(&*report->baseline);
  const auto* wanted = std::get_if<Setting>(&value);
  return before != nullptr && wanted != nullptr && SameSetting(*before, *wanted);
}

http::Answer Controls::SetPowerLimit(const Call& call) {
  if (!call.Query("power_limit_mw")) return ToAnswer(InvalidArgument("power_limit_mw: is missing"));
  const auto milliwatts = WholeParameter(call, "power_limit_mw", 0, 1'000'000'000);
  if (!milliwatts.ok()) return ToAnswer(milliwatts.error());
  const Setting limit = Watts::FromMilli(static_cast<double>(milliwatts.value()));
  return Apply(call, [&](const NodeDevice& device) {
    Change change{.knob = LeaseKnob::kGpuPowerLimit};
    if (!IsBaseline({.device = device.id, .knob = change.knob}, limit))
      change.demand = wire::Exactly{limit};
    return Changes{change};
  });
}

http::Answer Controls::LockClocks(const Call& call, LeaseKnob knob) {
  for (const char* name : {"min_clock_mhz", "max_clock_mhz"})
    if (!call.Query(name)) return ToAnswer(InvalidArgument(fmt::format("{}: is missing", name)));
  const auto lowest = WholeParameter(call, "min_clock_mhz", 0, 1'000'000);
  if (!lowest.ok()) return ToAnswer(lowest.error());
  const auto highest = WholeParameter(call, "max_clock_mhz", 0, 1'000'000);
  if (!highest.ok()) return ToAnswer(highest.error());
  const wire::InRange range{.lowest = Hertz::FromMega(static_cast<double>(lowest.value())),
                            .highest = Hertz::FromMega(static_cast<double>(highest.value()))};
  return Apply(call, [&](const NodeDevice&) { return Changes{{.knob = knob, .demand = range}}; });
}

http::Answer Controls::ResetClocks(const Call& call, const std::vector<LeaseKnob>& knobs) {
  return Apply(call, [&](const NodeDevice&) {
    Changes changes;
    for (const LeaseKnob knob : knobs) changes.push_back({.knob = knob});
    return changes;
  });
}

http::Answer Controls::SetPersistence(const Call& call) {
  const auto enabled = BoolParameter(call, "enabled");
  if (!enabled.ok()) return ToAnswer(enabled.error());
  if (!enabled.value()) return ToAnswer(InvalidArgument("enabled: is missing: true or false"));
  Change change{.knob = LeaseKnob::kPersistence};
  if (*enabled.value()) change.demand = wire::SwitchedOn{};
  return Apply(call, [&](const NodeDevice&) { return Changes{change}; });
}

}  // namespace

void AddReferenceControls(Daemon& daemon, RouteTable& table) {
  const auto controls = std::make_shared<Controls>(daemon);
  const auto add = [&](std::string_view pattern, std::string_view summary,
                       std::vector<std::string_view> query, auto handler) {
    table.Add(
        {.method = "POST",
         .pattern = pattern,
         .handler = [controls, handler](const Call& call) { return handler(*controls, call); },
         .summary = summary,
         .query = std::move(query),
         .statuses = {200, 400, 409, 500},
         .scope = Scope::kGpuControl,
         .group = ApiGroup::kGpuControl,
         .work = http::Work::kImmediate});
  };
  const std::vector<std::string_view> range = {"gpu_ids", "min_clock_mhz", "max_clock_mhz",
                                               "block"};
  add("/gpu/set_power_limit", "Set power limits", {"gpu_ids", "power_limit_mw", "block"},
      [](Controls& all, const Call& call) { return all.SetPowerLimit(call); });
  add("/gpu/set_persistence_mode", "Keep the driver loaded, or not",
      {"gpu_ids", "enabled", "block"},
      [](Controls& all, const Call& call) { return all.SetPersistence(call); });
  add("/gpu/set_gpu_locked_clocks", "Keep graphics clocks in a range", range,
      [](Controls& all, const Call& call) {
        return all.LockClocks(call, LeaseKnob::kGraphicsClock);
      });
  add("/gpu/set_mem_locked_clocks", "Keep memory clocks in a range", range,
      [](Controls& all, const Call& call) {
        return all.LockClocks(call, LeaseKnob::kMemoryClock);
      });
  add("/gpu/reset_gpu_locked_clocks", "Unlock graphics clocks", {"gpu_ids", "block"},
      [](Controls& all, const Call& call) {
        return all.ResetClocks(call, {LeaseKnob::kGraphicsClock});
      });
  add("/gpu/reset_mem_locked_clocks", "Unlock memory clocks", {"gpu_ids", "block"},
      [](Controls& all, const Call& call) {
        return all.ResetClocks(call, {LeaseKnob::kMemoryClock});
      });
  add("/gpu/reset_locked_clocks", "Unlock all clocks", {"gpu_ids", "block"},
      [](Controls& all, const Call& call) {
        return all.ResetClocks(call, {LeaseKnob::kGraphicsClock, LeaseKnob::kMemoryClock});
      });
}

}  // namespace zeus::daemon

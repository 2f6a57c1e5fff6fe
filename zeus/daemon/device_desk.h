#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/daemon/access_rules.h"
#include "zeus/daemon/audit_log.h"
#include "zeus/daemon/knob_desk.h"
#include "zeus/device/knobs/knob_actuator.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/device/node.h"

namespace zeus::daemon {

// Makes the knobs of all devices agree with the claims on them. Each device has a worker thread, so
// one that hangs stops no other. A knob is taken in the journal before it is first turned, and
// given back when its last claim is gone; what cannot be put back is tried again until it is. Every
// value is read back after it was written, and every `check_period`, to see what other programs do.
// Thread-safe. The referenced objects must outlive it.
class DeviceDesk final : public KnobDesk {
 public:
  struct Options {
    ForeignPolicy foreign = ForeignPolicy::kRespect;
    Seconds check_period{5};
    Seconds retry_period{5};                         // For knobs that could not be put back.
    Seconds longest_call{10};                        // A device whose driver takes longer is stuck.
    std::map<wire::LeaseKnob, KnobBounds> bounds{};  // For everybody.
    std::optional<bool>
        may_raise{};  // Above the value that was found; nullopt: by the machine's policy.
    // For tests: replaces the actuator of a knob, or wraps it.
    std::function<std::unique_ptr<KnobActuator>(std::unique_ptr<KnobActuator>)> wrap{};
    // Called after every call into a driver, with the device's name; on the worker's thread.
    std::function<void(const std::string& device, Seconds duration)> called{};
    // Called with what a worker did, for streams and metrics; on the worker's thread.
    std::function<void(const wire::KnobKey&, const KnobReport&)> reported{};
  };

  // Does not touch a device before Start(). `audit` may be null.
  DeviceDesk(Clock& clock, const Node& node, KnobJournal& journal, AuditLog* audit,
             Options options);
  ~DeviceDesk() override;  // Workers end; knobs stay as they are, and the journal knows them.

  // Repairs what earlier processes left, then serves the claims of `source`.
  Status Start(ClaimSource& source);

  std::optional<KnobFacts> Find(const wire::KnobKey& knob) const override;
  void Wake(const wire::KnobKey& knob) override;
  Status Ready(const std::string& device) const override;

  // Looks at all knobs of a device now: after a sign that it lives or was changed.
  void Refresh(const std::string& device);

  // All knobs of all devices, for GET /v1/node.
  std::vector<KnobFacts> Knobs() const;
  std::optional<KnobReport> Latest(const wire::KnobKey& knob) const;

  // Waits until the worker has heeded the present claims on the knob, or `timeout` has passed.
  bool WaitUntilSettled(const wire::KnobKey& knob, Seconds timeout) const;
  // Waits until all knobs are released, for the end of the daemon.
  bool WaitUntilReleased(Seconds timeout) const;

  // Puts the knobs of a device back, closes what holds it, and asks and writes nothing until the
  // maintenance ends: by EndMaintenance() or after `duration`. kUnavailable when the driver cannot
  // be closed; the knobs are back all the same.
  Status BeginMaintenance(const std::string& device, Seconds duration);
  Status EndMaintenance(const std::string& device);

  void SetForeignPolicy(ForeignPolicy policy);
  void SetBounds(std::map<wire::LeaseKnob, KnobBounds> bounds);

  struct DeviceState {
    std::string device{};  // UUID, or the name that KnobKey uses.
    std::string name{};    // "gpu:0"
    bool stuck = false;
    bool lost = false;
    std::optional<Seconds> maintenance_left{};
    std::uint64_t foreign_changes = 0;
    std::size_t restore_pending = 0;
  };
  std::vector<DeviceState> Devices() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace zeus::daemon

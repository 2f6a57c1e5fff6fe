#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/daemon/resolver.h"
#include "zeus/wire/node/lease.h"

// The seam between leases, which know no device, and the workers of devices, which know no lease.
// Writing is level-triggered: a worker asks which claims hold on a knob, makes the device agree,
// and says what came of it. Neither side ever sends a value to the other.
namespace zeus::daemon {

// All claims on a knob at one moment.
struct Claims {
  std::uint64_t version = 0;  // Grows with every change of the claims on this knob.
  std::vector<Claim> claims{};
};

// The state of a knob when its worker last looked at it.
struct KnobReport {
  std::uint64_t version = 0;  // The version of the claims that were heeded.
  std::optional<wire::KnobValue> baseline{};
  std::optional<wire::KnobValue> enforced{};  // As the device reports it.
  Resolution resolution{};
  std::optional<Error> trouble{};  // Why the device does not agree with the claims.
  bool foreign = false;            // Another program turned it, and that is respected.
  bool suspended = false;          // The device is lost, or in maintenance: nothing is written.
  bool released = false;           // There are no claims, and the knob is at its baseline.
};

// The side of the leases. Thread-safe; called from the workers.
class ClaimSource {
 public:
  virtual ~ClaimSource() = default;
  virtual Claims ClaimsOn(const wire::KnobKey& knob) const = 0;
  virtual void Settled(const wire::KnobKey& knob, const KnobReport& report) = 0;
};

// The facts about a knob that the daemon lends.
struct KnobFacts {
  wire::KnobKey key{};
  std::string device_name{};             // "gpu:0", for people.
  std::optional<KnobChoices> choices{};  // nullopt for persistence.
  std::optional<Watts> default_limit{};  // The driver's, for the power limit of a GPU.
  std::optional<Persistence> mode{};     // For persistence: as it was seen last.
};

// The side of the devices. Thread-safe.
class KnobDesk {
 public:
  virtual ~KnobDesk() = default;
  // nullopt for a device or a knob that this machine does not have.
  virtual std::optional<KnobFacts> Find(const wire::KnobKey& knob) const = 0;
  // The claims on the knob have changed. Does not wait for the device.
  virtual void Wake(const wire::KnobKey& knob) = 0;
  // Ok, or why nothing can be set on the device now: it is stuck, lost or in maintenance, its queue
  // is full, or the journal cannot be used. kUnavailable.
  virtual Status Ready(const std::string& device) const = 0;
};

}  // namespace zeus::daemon

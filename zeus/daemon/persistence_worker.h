#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "zeus/daemon/knob_desk.h"
#include "zeus/daemon/knob_worker.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus::daemon {

// Keeps a GPU's driver loaded (persistence mode) while a lease asks for it or another knob of the
// GPU is turned, since a driver forgets its settings when its last client leaves. It is journalled
// as a knob of its own, before the others are taken, and put back after them: so no release of one
// knob takes the mode from another. A mode that was on already needs no entry. Used by one thread.
class PersistenceWorker {
 public:
  PersistenceWorker(wire::KnobKey key, std::unique_ptr<KnobActuator> actuator, DeskPlaces places);

  // As those of KnobWorker.
  Status AdoptLeftover();
  Status RepairLeftover();

  // `needed`: another knob of the GPU is turned, or will be. A mode that is only needed, and not
  // claimed, is never a reason for trouble.
  KnobReport Serve(const Claims& claims, bool needed, const KnobRules& rules);

  // As it was seen last.
  std::optional<Persistence> mode() const { return mode_; }
  bool holding() const { return taken_ || found_on_; }
  bool taken() const { return taken_.has_value(); }
  bool lost() const { return lost_; }
  bool restore_pending() const { return restore_pending_; }
  std::uint64_t foreign_changes() const { return foreign_changes_; }

 private:
  struct Taken {
    KnobState before{};
    std::optional<Joules> mark{};
    std::uint64_t reloads = 0;
    bool on = false;  // The driver accepted it.
  };

  Status Hold(const Claims& claims, const KnobRules& rules, KnobReport& report);
  Status SwitchOn(const Claims& claims);
  Status PutBack();
  Status Forget();
  Status RemoveEntry();
  Result<Persistence> ReadMode();
  bool Reloaded();
  void WaitForAudit() const;
  void Audit(AuditEntry entry, const Status& outcome) const;

  const wire::KnobKey key_;
  const std::unique_ptr<KnobActuator> actuator_;
  const DeskPlaces places_;

  std::optional<Taken> taken_;
  std::optional<Persistence> mode_{};
  bool found_on_ = false;  // It was on before it was needed: there is nothing to put back.
  bool foreign_ = false;   // Another program switched it off.
  int reasserts_ = 0;
  std::optional<TimePoint> last_reassert_{};
  bool repaired_ = false;
  bool found_told_ = false;
  bool entry_left_ = false;  // Forget() could not remove the entry of the journal.
  bool lost_ = false;
  bool restore_pending_ = false;
  std::uint64_t foreign_changes_ = 0;
};

}  // namespace zeus::daemon

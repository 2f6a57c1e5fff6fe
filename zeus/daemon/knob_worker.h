#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/daemon/access_rules.h"
#include "zeus/daemon/audit_log.h"
#include "zeus/daemon/grant.h"
#include "zeus/daemon/knob_desk.h"
#include "zeus/device/knobs/knob_actuator.h"
#include "zeus/device/knobs/knob_journal.h"

namespace zeus::daemon {

// The objects that all workers share; `audit` may be null.
struct DeskPlaces {
  Clock& clock;
  KnobJournal& journal;
  AuditLog* audit = nullptr;
};

// The rules for one knob at one moment.
struct KnobRules {
  ForeignPolicy foreign = ForeignPolicy::kRespect;
  KnobBounds bounds{};
  bool may_raise = false;    // Above the setting that was found.
  bool maintenance = false;  // The knob is to be put back and left alone.
};

// "150 W", "600 MHz to 900 MHz", "on"
std::string ToText(const wire::KnobValue& value);

// The choices that the bounds for everybody leave: at least the one next to them.
KnobChoices Bounded(KnobChoices choices, const KnobBounds& bounds);

// Makes one knob agree with the claims on it: takes it in the journal before it is first turned,
// notes each setting before the device learns of it, and puts the knob back when its last claim is
// gone. Killed at any moment, it leaves a journal from which the knob can be repaired. Used by one
// thread, its device's.
class KnobWorker {
 public:
  // Notices of other programs that turn the knob, by KnobRules::foreign. A setting above the cap of
  // a site, such as a power budget has, is lowered again whatever the policy and however often.
  static constexpr Seconds kBetweenReasserts{10};
  static constexpr int kMostReasserts = 3;
  // A disk that hangs must not keep knobs turned.
  static constexpr Seconds kLongestAuditWait{0.5};

  KnobWorker(wire::KnobKey key, std::unique_ptr<KnobActuator> actuator, KnobChoices choices,
             DeskPlaces places);

  // Takes over what a dead owner left, where claims on the knob have outlived it: the setting stays
  // in force, and the baseline is the owner's.
  Status AdoptLeftover();
  // Puts back what a dead owner left. Until that succeeds the knob is not turned.
  Status RepairLeftover();

  KnobReport Serve(const Claims& claims, const KnobRules& rules);

  const KnobChoices& choices() const { return choices_; }
  bool taken() const { return taken_.has_value(); }
  bool lost() const { return lost_; }
  // The last claim is gone, and the knob is not back yet.
  bool restore_pending() const { return restore_pending_; }
  std::uint64_t foreign_changes() const { return foreign_changes_; }

 private:
  // Since the knob was taken in the journal.
  struct Taken {
    KnobState before{};
    std::vector<Setting> ours{};             // Settings that may be in force, the latest last.
    std::vector<Setting> noted{};            // Those that the journal knows.
    std::optional<wire::KnobValue> value{};  // nullopt: the baseline.
    bool written = false;                    // The device accepted a setting.
    bool uncertain = false;                  // The last write failed: it is to be repeated.
    std::optional<Joules> mark{};
    std::uint64_t reloads = 0;
    std::optional<Setting> foreign{};  // Set by another program, and in force.
    int reasserts = 0;
    std::optional<TimePoint> last_reassert{};
  };

  Status Hold(const Claims& claims, const KnobRules& rules, KnobReport& report);
  Status Take(const KnobState& present, const Claims& claims, const KnobRules& rules);
  Status PutBack();
  Status Forget();
  Status RemoveEntry();
  Result<KnobState> ReadPresent();
  Status NoticeReload(const KnobState& present);
  void NoticeForeign(const KnobState& present);
  bool MayReassert(const KnobRules& rules, bool above_budget);
  Status TurnTo(const Resolution& resolution, const Claims& claims);
  Status Note(const Setting& target);
  Status Write(const std::optional<wire::KnobValue>& value);
  void SettleAfterFailure(const Error& error);
  Status CheckCeiling(const Claims& claims, const Resolution& resolution,
                      const KnobRules& rules) const;
  KnobChoices Allowed(const std::optional<Setting>& ceiling, const KnobRules& rules) const;
  std::optional<wire::KnobValue> Enforced();
  std::string TextOf(const std::optional<wire::KnobValue>& value) const;
  void WaitForAudit() const;
  void Audit(AuditEntry entry, const Status& outcome) const;

  const wire::KnobKey key_;
  const std::unique_ptr<KnobActuator> actuator_;
  const KnobChoices choices_;
  const DeskPlaces places_;
  const std::string name_;

  std::optional<Taken> taken_;
  bool repaired_ = false;
  bool found_told_ = false;  // The log has the line about what is to be repaired.
  bool entry_left_ = false;  // Forget() could not remove the entry of the journal.
  bool lost_ = false;
  bool was_lost_ = false;  // Since it was taken.
  bool restore_pending_ = false;
  std::uint64_t foreign_changes_ = 0;
  TimePoint began_{};     // The present Serve().
  std::string leases_{};  // Those that claimed the knob last, for the audit log.
  std::string subject_{};
};

}  // namespace zeus::daemon

#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/daemon/device_desk.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::daemon::testing {

// Time that moves only by calls, for several threads: a sleep is a jump. Thread-safe.
class JumpingClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Seconds(now_)); }
  WallTime WallNow() const override { return WallTime(std::chrono::days(20'000)); }
  void SleepUntil(TimePoint deadline) override {
    double now = now_;
    while (now < deadline.time_since_epoch().count() &&
           !now_.compare_exchange_weak(now, deadline.time_since_epoch().count())) {
    }
  }
  void Advance(Seconds by) { SleepUntil(Now() + by); }

 private:
  std::atomic<double> now_{0};
};

// The claims of leases, without leases. Thread-safe.
class FakeClaims final : public ClaimSource {
 public:
  Claims ClaimsOn(const wire::KnobKey& knob) const override {
    const std::lock_guard lock(mutex_);
    const auto found = claims_.find(knob);
    return found == claims_.end() ? Claims{} : found->second;
  }
  void Settled(const wire::KnobKey& knob, const KnobReport& report) override {
    {
      const std::lock_guard lock(mutex_);
      reports_[knob].push_back(report);
    }
    reported_.notify_all();
  }
  // Waits for a report that says why the knob does not agree with its claims.
  std::string WaitForTrouble(const wire::KnobKey& knob) {
    std::unique_lock lock(mutex_);
    const auto troubled = [&] {
      return !reports_[knob].empty() && reports_[knob].back().trouble.has_value();
    };
    const bool came = reported_.wait_for(lock, Seconds(20), troubled);
    return came ? reports_[knob].back().trouble->message : "";
  }

  void Set(const wire::KnobKey& knob, std::vector<Claim> claims) {
    const std::lock_guard lock(mutex_);
    Claims& present = claims_[knob];
    ++present.version;
    present.claims = std::move(claims);
  }
  std::vector<KnobReport> reports(const wire::KnobKey& knob) const {
    const std::lock_guard lock(mutex_);
    const auto found = reports_.find(knob);
    return found == reports_.end() ? std::vector<KnobReport>() : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable reported_;
  std::map<wire::KnobKey, Claims> claims_;
  std::map<wire::KnobKey, std::vector<KnobReport>> reports_;
};

inline Claim ClaimOf(const char* lease, wire::Demand demand) {
  return {.lease = lease, .name = lease, .subject = "uid:1001", .demand = std::move(demand)};
}
inline Claim Exactly(const char* lease, const Setting& value) {
  return ClaimOf(lease, wire::Exactly{value});
}
inline Claim AtMost(const char* lease, const Setting& value) {
  return ClaimOf(lease, wire::AtMost{value});
}

// A door in an actuator's calls: closed, it stops the worker inside of the call.
class Gate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = false;
    }
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    if (closed_) ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_; });
  }
  // Waits until a worker stands before the closed door.
  bool WaitUntilReached() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, Seconds(20), [this] { return inside_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int inside_ = 0;
};

// Calls `before` with the name of each call that reaches the device; its error is that of the call.
class SteppedActuator final : public KnobActuator {
 public:
  using Before = std::function<Status(const char* call, const KnobDevice& device)>;

  SteppedActuator(std::unique_ptr<KnobActuator> actuator, Before before)
      : actuator_(std::move(actuator)), before_(std::move(before)) {}

  const KnobDevice& device() const override { return actuator_->device(); }
  KnobKind kind() const override { return actuator_->kind(); }
  Watts max_power() const override { return actuator_->max_power(); }
  Result<KnobChoices> Choices() override { return actuator_->Choices(); }
  Result<KnobState> Read() override {
    ZEUS_RETURN_IF_ERROR(before_("read", device()));
    return actuator_->Read();
  }
  Result<std::optional<Setting>> InForce() override { return actuator_->InForce(); }
  void Prepare() override { actuator_->Prepare(); }
  Status Apply(const Setting& setting) override {
    ZEUS_RETURN_IF_ERROR(before_("apply", device()));
    ZEUS_RETURN_IF_ERROR(actuator_->Apply(setting));
    return before_("applied", device());
  }
  Status ApplyRange(const ClockRange& range) override {
    ZEUS_RETURN_IF_ERROR(before_("apply", device()));
    ZEUS_RETURN_IF_ERROR(actuator_->ApplyRange(range));
    return before_("applied", device());
  }
  Status PutBack(const KnobState& state) override {
    ZEUS_RETURN_IF_ERROR(before_("put back", device()));
    ZEUS_RETURN_IF_ERROR(actuator_->PutBack(state));
    return before_("was put back", device());
  }
  Result<std::string> PutToDefault() override { return actuator_->PutToDefault(); }
  std::optional<Joules> EpochMark() override { return actuator_->EpochMark(); }
  std::uint64_t ReloadsSeen() override { return actuator_->ReloadsSeen(); }

 private:
  const std::unique_ptr<KnobActuator> actuator_;
  const Before before_;
};

// Two V100s of 250 W, a journal, claims, and a desk once it is opened.
class DeskWorld {
 public:
  static constexpr Seconds kTimeout{20};  // Reached only by a failure.

  DeskWorld() {
    for (unsigned index = 0; index < 2; ++index)
      node_.gpus.push_back(std::make_unique<sim::SimulatedGpu>(
          clock_, sim::testing::Model("V100"),
          sim::SimulatedGpu::Options{.seed = index + 1, .index = index}));
    options_.may_raise = false;
    clock_.Advance(Seconds(100));  // Counters that were never read do not show a reload.
  }

  void Open() {
    desk_ = std::make_unique<DeviceDesk>(clock_, node_, journal_, audit_.get(), options_);
    const Status started = desk_->Start(claims_);
    EXPECT_TRUE(started.ok());
  }
  void Close() { desk_.reset(); }

  sim::SimulatedGpu& gpu(std::size_t index = 0) {
    return static_cast<sim::SimulatedGpu&>(*node_.gpus.at(index));
  }
  wire::KnobKey Key(wire::LeaseKnob knob = wire::LeaseKnob::kGpuPowerLimit, std::size_t index = 0) {
    return {.device = gpu(index).identity().uuid, .knob = knob};
  }
  Watts Requested(std::size_t index = 0) {
    return gpu(index).CurrentPowerLimit().value().requested;
  }

  void Claim(const wire::KnobKey& knob, std::vector<daemon::Claim> claims) {
    claims_.Set(knob, std::move(claims));
    desk_->Wake(knob);
  }
  // Sets the claims and returns what the worker says then.
  KnobReport Settle(const wire::KnobKey& knob, std::vector<daemon::Claim> claims) {
    Claim(knob, std::move(claims));
    return Look(knob);
  }
  KnobReport Look(const wire::KnobKey& knob) {
    desk_->Wake(knob);
    EXPECT_TRUE(desk_->WaitUntilSettled(knob, kTimeout));
    return desk_->Latest(knob).value_or(KnobReport{});
  }
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (const AuditEntry& entry : audit_->After(0, 1000, "")) events.push_back(entry.event);
    return events;
  }
  std::size_t JournalEntries() { return journal_.List().value().size(); }

  JumpingClock clock_;
  zeus::testing::TemporaryDirectory folder_;
  KnobJournal journal_{clock_, folder_.path()};
  Node node_;
  std::unique_ptr<AuditLog> audit_ = AuditLog::Open("", clock_).value();
  FakeClaims claims_;
  DeviceDesk::Options options_;
  std::unique_ptr<DeviceDesk> desk_;  // The last member: it uses the others.
};

}  // namespace zeus::daemon::testing

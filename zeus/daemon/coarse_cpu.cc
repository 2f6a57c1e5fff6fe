#include "zeus/daemon/coarse_cpu.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace zeus::daemon {
namespace {

class CoarseReadings {
 public:
  CoarseReadings(EnergyMeter& meter, const Clock& clock, std::function<Seconds()> period)
      : meter_(meter), clock_(clock), period_(std::move(period)) {}

  Result<EnergyReading> Energy() {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    if (latest_ && now - read_at_ < period_()) return *latest_;
    ZEUS_TRY(latest_, meter_.Energy());
    read_at_ = now;
    return *latest_;
  }

 private:
  EnergyMeter& meter_;
  const Clock& clock_;
  const std::function<Seconds()> period_;
  std::mutex mutex_;
  std::optional<EnergyReading> latest_{};  // Guarded by mutex_, as is the next.
  TimePoint read_at_{};
};

class CoarseMeter final : public EnergyMeter {
 public:
  CoarseMeter(EnergyMeter& meter, const Clock& clock, std::function<Seconds()> period)
      : meter_(meter), readings_(meter, clock, std::move(period)) {}

  const std::string& name() const override { return meter_.name(); }
  Result<EnergyReading> Energy() override { return readings_.Energy(); }
  Result<Watts> Power() override { return meter_.Power(); }
  std::optional<Seconds> LongestReadInterval() const override {
    return meter_.LongestReadInterval();
  }

 private:
  EnergyMeter& meter_;
  CoarseReadings readings_;
};

class CoarseCpu final : public CpuPackage {
 public:
  CoarseCpu(std::unique_ptr<CpuPackage> cpu, const Clock& clock, std::function<Seconds()> period)
      : cpu_(std::move(cpu)), readings_(*cpu_, clock, period) {
    if (EnergyMeter* dram = cpu_->dram()) dram_.emplace(*dram, clock, std::move(period));
  }

  const std::string& name() const override { return cpu_->name(); }
  Result<EnergyReading> Energy() override { return readings_.Energy(); }
  Result<Watts> Power() override { return cpu_->Power(); }
  std::optional<Seconds> LongestReadInterval() const override {
    return cpu_->LongestReadInterval();
  }
  const CpuIdentity& identity() const override { return cpu_->identity(); }
  EnergyMeter* dram() override { return dram_ ? &*dram_ : nullptr; }
  KnobLender* lender() override { return cpu_->lender(); }
  Result<PowerLimit> CurrentPowerLimit() override { return cpu_->CurrentPowerLimit(); }
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override {
    return cpu_->SetPowerLimitWithoutJournal(limit);
  }

 private:
  const std::unique_ptr<CpuPackage> cpu_;
  CoarseReadings readings_;
  std::optional<CoarseMeter> dram_{};
};

}  // namespace

std::unique_ptr<CpuPackage> MakeCoarse(std::unique_ptr<CpuPackage> cpu, const Clock& clock,
                                       std::function<Seconds()> period) {
  return std::make_unique<CoarseCpu>(std::move(cpu), clock, std::move(period));
}

}  // namespace zeus::daemon

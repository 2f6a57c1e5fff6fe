#pragma once

#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/client/node/board_reader.h"
#include "zeus/client/node/knob_loans.h"
#include "zeus/client/node/node_daemon_client.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob_lender.h"

namespace zeus::client {

// The connection to a daemon, which all of its devices share. Thread-safe; the clock must outlive
// it. A call of a device shares it with the others, so that the last device closes it.
struct DaemonConnection {
  DaemonConnection(std::unique_ptr<NodeDaemonClient> made_client, Clock& the_clock)
      : client(std::move(made_client)), clock(the_clock), loans(*client, the_clock) {}

  const std::unique_ptr<NodeDaemonClient> client;
  Clock& clock;
  std::shared_ptr<BoardReader> board{};  // Null where there is none: over TCP.
  KnobLoans loans;
};

// The newest readings of one device: from the board, or from the daemon where there is none.
class DaemonReadings {
 public:
  DaemonReadings(std::shared_ptr<DaemonConnection> connection, std::string device)
      : connection_(std::move(connection)), device_(std::move(device)) {}

  Result<EnergyReading> Energy() const;
  Result<Watts> Power() const;
  // Every value of its own age: energy and power are newer than the rest.
  GpuReading Read() const;
  std::shared_ptr<ReadingFeed> Follow() const;

 private:
  std::optional<DeviceView> View() const;
  GpuReading ReadFromDaemon() const;

  const std::shared_ptr<DaemonConnection> connection_;
  const std::string device_;
};

// A GPU that the daemon reads and whose knobs it lends. What is set on it ends with this process,
// however that ends: so do the settings "without journal". Thread-safe.
class DaemonGpu final : public Gpu, public KnobLender {
 public:
  // `name` is that of this process: "gpu:0".
  DaemonGpu(std::shared_ptr<DaemonConnection> connection, NodeGpu facts, std::string name);

  const std::string& name() const override { return name_; }
  const GpuIdentity& identity() const override { return facts_.identity; }
  KnobLender* lender() override { return this; }
  std::shared_ptr<ReadingFeed> Follow() override { return readings_.Follow(); }

  using Gpu::Power;
  Result<EnergyReading> Energy() override { return readings_.Energy(); }
  GpuReading Read() override { return readings_.Read(); }
  Result<Watts> Power(PowerKind kind) override;
  Result<Celsius> Temperature() override { return Read().temperature; }
  Result<Utilization> CurrentUtilization() override { return Read().utilization; }
  Result<MemoryUse> CurrentMemoryUse() override { return Read().memory; }
  Result<ThrottleReasons> CurrentThrottleReasons() override { return Read().throttle; }

  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override;
  Result<Hertz> CurrentClock(ClockDomain domain) override;
  Status LockClockWithoutJournal(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;
  Result<Persistence> CurrentPersistence() override;
  Status SetPersistence(Persistence mode) override;

  Result<std::unique_ptr<KnobActuator>> Borrow(KnobKind kind) override;

 private:
  wire::KnobKey Key(wire::LeaseKnob knob) const { return {.device = facts_.device, .knob = knob}; }

  const std::shared_ptr<DaemonConnection> connection_;
  const NodeGpu facts_;
  const std::string name_;
  const DaemonReadings readings_;
};

// A CPU package that the daemon reads. Its memory is measured where the daemon measures it.
class DaemonCpu final : public CpuPackage, public KnobLender {
 public:
  DaemonCpu(std::shared_ptr<DaemonConnection> connection, NodeCpu facts);
  ~DaemonCpu() override;

  const std::string& name() const override { return facts_.device; }
  const CpuIdentity& identity() const override { return facts_.identity; }
  KnobLender* lender() override { return this; }
  EnergyMeter* dram() override;
  std::shared_ptr<ReadingFeed> Follow() override { return readings_.Follow(); }
  Result<EnergyReading> Energy() override { return readings_.Energy(); }
  Result<Watts> Power() override { return readings_.Power(); }
  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;

  Result<std::unique_ptr<KnobActuator>> Borrow(KnobKind kind) override;

 private:
  class Dram;
  const std::shared_ptr<DaemonConnection> connection_;
  const NodeCpu facts_;
  const DaemonReadings readings_;
  const std::unique_ptr<Dram> dram_;
};

}  // namespace zeus::client

#pragma once

#include <memory>

#include "python/bindings/closeable.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"

namespace zeus::python {

// What this program set on GPUs. When it ends, by whatever way code can see, everything is as it
// was; power limits and clocks also after a SIGKILL, by the next program that looks for devices.
// With the GIL held; whatever asks a driver lets go of it.
class GpuKnobs final : public Closeable {
 public:
  static GpuKnobs& OfThisProcess();
  ~GpuKnobs() override { Close(); }

  // kConflict above what was found, unless the ceiling is that of the device.
  Status SetPowerLimit(const std::shared_ptr<Gpu>& gpu, Watts limit, Ceiling ceiling);
  Status LockClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain, ClockRange range,
                   Ceiling ceiling);
  Status SetPersistence(const std::shared_ptr<Gpu>& gpu, Persistence mode);

  // Puts back what was there before; nothing to do if this program set nothing.
  Status Restore(const std::shared_ptr<Gpu>& gpu, KnobKind kind);
  bool Holds(const std::shared_ptr<Gpu>& gpu, KnobKind kind);

  // The driver's own setting, which stays when the program ends.
  Status ResetPowerLimit(const std::shared_ptr<Gpu>& gpu);
  Status ResetClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain);

 private:
  class State;

  GpuKnobs();
  static void PutBackAtTheEndOfAWorker();
  std::shared_ptr<State> state() const;
  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<State> state_;
};

}  // namespace zeus::python

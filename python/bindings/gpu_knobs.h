#pragma once

#include <memory>

#include "python/bindings/closeable.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"

namespace zeus::python {

// The settings that this program made on GPUs. They are restored when the program ends in any way
// that code can notice; power limits and clocks also after a SIGKILL, by the next program that
// discovers devices. Used with the GIL held; calls of drivers release it.
class GpuKnobs final : public Closeable {
 public:
  static GpuKnobs& OfThisProcess();
  ~GpuKnobs() override { Close(); }

  // Returns kConflict for a limit above the one that was found, unless `ceiling` is the device's.
  Status SetPowerLimit(const std::shared_ptr<Gpu>& gpu, Watts limit, Ceiling ceiling);
  Status LockClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain, ClockRange range,
                   Ceiling ceiling);
  Status SetPersistence(const std::shared_ptr<Gpu>& gpu, Persistence mode);

  // Restores the previous setting; does nothing if this program set nothing.
  Status Restore(const std::shared_ptr<Gpu>& gpu, KnobKind kind);
  bool Holds(const std::shared_ptr<Gpu>& gpu, KnobKind kind);

  // Resets to the driver's default, which stays when the program ends.
  Status ResetPowerLimit(const std::shared_ptr<Gpu>& gpu);
  Status ResetClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain);

 private:
  class State;

  GpuKnobs();
  static void RestoreAtWorkerExit();
  std::shared_ptr<State> state() const;
  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<State> state_;
};

}  // namespace zeus::python

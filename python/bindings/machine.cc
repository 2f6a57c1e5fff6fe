#include "python/bindings/machine.h"

#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"
#include "zeus/base/log.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/device/knobs/knob_repair.h"

namespace zeus::python {
namespace {

// Failures are only logged: they must not prevent the discovery of devices.
void RepairLeftovers(Clock& clock, const Surroundings& surroundings) {
  auto folder = KnobFolder();
  if (!folder.ok()) return log::Debug("{}", folder.error().message);
  KnobJournal journal(clock, std::move(folder).value());
  const auto repairs = RepairKnobs(journal, surroundings);
  if (!repairs.ok()) return log::Warning("{}", repairs.error().message);
  for (const KnobRepair& repair : repairs.value())
    if (repair.outcome == KnobRepair::Outcome::kFailed) log::Warning("{}", ToText(repair));
}

}  // namespace

std::shared_ptr<Machine> Machine::Open(const std::string& sysfs, const std::string& procfs,
                                       const std::string& dev) {
  const WithoutGil released;
  std::shared_ptr<Machine> machine(new Machine());
  Surroundings surroundings = RealSurroundings(machine->clock_);
  surroundings.sysfs = sysfs;
  surroundings.procfs = procfs;
  surroundings.dev = dev;
  RepairLeftovers(machine->clock_, surroundings);
  machine->node_ = Unwrap(Discover(surroundings), Family::kGpu);
  return machine;
}

}  // namespace zeus::python

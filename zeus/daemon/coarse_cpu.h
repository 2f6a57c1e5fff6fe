#pragma once

#include <functional>
#include <memory>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"

namespace zeus::daemon {

// The same package, whose energy and that of its memory are read once in a period at most; in
// between the last reading is repeated. The energy of CPUs tells what runs on them, and finer
// readings tell more, so that nothing in the daemon has any. `period` may change; the clock must
// outlive the package.
std::unique_ptr<CpuPackage> MakeCoarse(std::unique_ptr<CpuPackage> cpu, const Clock& clock,
                                       std::function<Seconds()> period);

}  // namespace zeus::daemon

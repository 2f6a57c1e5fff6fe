#pragma once

#include "apps/zeus/first_gpu/check.h"

namespace zeus::cli {

// A forked child lowers the power limit of a GPU and is killed with SIGKILL; the limit must be put
// back from the journal. Call it before the process has threads or has opened a driver.
Check CheckKilledKnob(unsigned gpu);

}  // namespace zeus::cli

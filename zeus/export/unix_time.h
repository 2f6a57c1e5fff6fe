#pragma once

#include "zeus/base/clock.h"

namespace zeus {

// Seconds since 1970 (UTC), the time stamp of all records.
inline Seconds UnixTime(WallTime time) { return time.time_since_epoch(); }

}  // namespace zeus

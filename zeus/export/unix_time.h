#pragma once

#include "zeus/base/clock.h"

namespace zeus {

// Seconds since 1970, UTC: how every record of ours says when it was.
inline Seconds UnixTime(WallTime time) { return time.time_since_epoch(); }

}  // namespace zeus

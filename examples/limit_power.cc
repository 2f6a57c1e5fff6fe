// Finds the GPUs of this machine, caps the first one at 60 % of its power limit for three seconds,
// and shows that the limit is restored. It is also restored when a signal ends the program.
#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/clock.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/node.h"

namespace {

using namespace std::chrono_literals;

zeus::Status Show(zeus::Gpu& gpu, const char* when) {
  ZEUS_TRY(const zeus::Watts power, gpu.Power());
  ZEUS_TRY(const zeus::PowerLimit limit, gpu.CurrentPowerLimit());
  fmt::print("{:<8} {} draws {:5.1f} W, limit {:.0f} W\n", when, gpu.name(), power.value(),
             limit.enforced.value());
  return zeus::Ok();
}

zeus::Status Run() {
  zeus::SystemClock clock;
  ZEUS_TRY(const zeus::Node node, zeus::Discover(zeus::RealSurroundings(clock)));
  if (node.gpus.empty())
    return zeus::Error{zeus::ErrorCode::kNotFound, "no GPU here: see zeus doctor"};

  zeus::Gpu& gpu = *node.gpus.front();
  ZEUS_RETURN_IF_ERROR(Show(gpu, "before"));
  {
    ZEUS_TRY(const zeus::PowerLimit limit, gpu.CurrentPowerLimit());
    const zeus::Watts cap = std::max(limit.range.min, 0.6 * limit.requested);
    ZEUS_TRY(const auto scope, zeus::ScopedPowerLimit::Set(gpu, cap));
    clock.SleepFor(3s);
    ZEUS_RETURN_IF_ERROR(Show(gpu, "capped"));
  }
  clock.SleepFor(1s);
  return Show(gpu, "restored");
}

}  // namespace

int main() {
  const zeus::Status status = Run();
  if (status.ok()) return 0;
  fmt::print(stderr, "limit_power: {}\n", status.error().message);
  return 1;
}

// Records two seconds and prints the power of every device over time as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/monitor/node_monitor.h"

namespace {

using namespace std::chrono_literals;

zeus::Status Run() {
  zeus::SystemClock clock;
  ZEUS_TRY(const auto recording, zeus::NodeMonitor::OpenThisMachine(clock));
  zeus::EnergyMonitor& monitor = recording->monitor();
  if (monitor.device_count() == 0)
    return zeus::Error{zeus::ErrorCode::kNotFound, "no device to measure: see zeus doctor"};

  const zeus::TimePoint begin = clock.Now();
  clock.SleepFor(2s);  // Here the program works.

  fmt::print("device,time_seconds,power_watts\n");
  for (std::size_t device = 0; device < monitor.device_count(); ++device) {
    const auto samples =
        monitor.History(device, zeus::EnergyMonitor::Quantity::kPower, begin, clock.Now());
    for (const zeus::Timeline::Sample& sample : samples) {
      const zeus::Seconds time = std::max(sample.time - begin, zeus::Seconds(0));
      fmt::print("{},{:.3f},{:.1f}\n", monitor.device_name(device), time.count(), sample.value);
    }
  }
  return zeus::Ok();
}

}  // namespace

int main() {
  const zeus::Status status = Run();
  if (status.ok()) return 0;
  fmt::print(stderr, "power_timeline: {}\n", status.error().message);
  return 1;
}

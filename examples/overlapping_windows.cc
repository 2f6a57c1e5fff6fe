// Two threads use the machine at once: the energies of their windows add up to the total.
#include <fmt/format.h>

#include <thread>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/monitor/node_monitor.h"

namespace {

using namespace std::chrono_literals;

// Each thread measures a window of its own; windows that overlap share the energy by weight.
zeus::Result<zeus::WindowId> Work(zeus::EnergyMonitor& monitor, const char* name, double weight) {
  ZEUS_TRY(const zeus::WindowId id, monitor.BeginWindow(name, {.weight = weight}));
  monitor.clock().SleepFor(1s);  // Here the thread works.
  ZEUS_RETURN_IF_ERROR(monitor.EndWindow(name));
  return id;
}

zeus::Status Run() {
  zeus::SystemClock clock;
  ZEUS_TRY(const auto recording, zeus::NodeMonitor::OpenThisMachine(clock));
  zeus::EnergyMonitor& monitor = recording->monitor();

  zeus::Result<zeus::WindowId> train = zeus::WindowId();
  std::thread thread([&] { train = Work(monitor, "train", 3); });
  zeus::Result<zeus::WindowId> evaluate = Work(monitor, "evaluate", 1);
  thread.join();

  for (const auto& window : {train, evaluate}) {
    ZEUS_TRY(const zeus::WindowId id, window);
    ZEUS_TRY(const zeus::Measurement refined, monitor.Refine(id));
    const zeus::Measurement::Total total = refined.Sum();
    fmt::print("{:<8} during it {:.1f} J, its part {:.1f} J\n", refined.window,
               total.energy.value(), total.attributed.value());
  }
  return zeus::Ok();
}

}  // namespace

int main() {
  const zeus::Status status = Run();
  if (status.ok()) return 0;
  fmt::print(stderr, "overlapping_windows: {}\n", status.error().message);
  return 1;
}

// Measures an epoch and the steps inside it, on every device of this machine.
#include <fmt/format.h>

#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/quantity_text.h"
#include "zeus/monitor/node_monitor.h"

namespace {

using namespace std::chrono_literals;

void Show(const zeus::Measurement& measured) {
  const zeus::Measurement::Total total = measured.Sum();
  fmt::print("{}: {:.2f} s, {}\n", measured.window, measured.time.count(),
             zeus::WithSigma(total.energy, total.sigma));
  for (const zeus::DeviceMeasurement& device : measured.devices)
    fmt::print("  {} {}\n", device.device, zeus::ToText(device));
}

zeus::Status Run() {
  zeus::SystemClock clock;
  ZEUS_TRY(const auto recording, zeus::NodeMonitor::OpenThisMachine(clock));
  zeus::EnergyMonitor& monitor = recording->monitor();

  ZEUS_TRY(const zeus::WindowId epoch, monitor.BeginWindow("epoch"));
  for (int step = 0; step < 3; ++step) {
    ZEUS_RETURN_IF_ERROR(monitor.BeginWindow("step"));
    clock.SleepFor(400ms);  // Here the program trains.
    ZEUS_TRY(const zeus::Measurement measured, monitor.EndWindow("step"));
    Show(measured);
  }
  ZEUS_RETURN_IF_ERROR(monitor.EndWindow("epoch"));

  // Sensors report with a delay: a moment later the end of the window is known more precisely.
  ZEUS_TRY(const zeus::Measurement refined, monitor.Refine(epoch));
  Show(refined);
  return zeus::Ok();
}

}  // namespace

int main() {
  const zeus::Status status = Run();
  if (status.ok()) return 0;
  fmt::print(stderr, "measure_window: {}\n", status.error().message);
  return 1;
}

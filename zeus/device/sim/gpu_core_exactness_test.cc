// The energy of a simulated GPU is the integral of its power, whatever happens to it and however
// time moves. The integral here is numerical and knows nothing of how the core computes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_exactness_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using testing::Draw;
using testing::Model;
using testing::Train;

// Advances the core to `end`, up to which its power must be smooth, and adds the integral
// of that power by two-point Gauss-Legendre quadrature. long double keeps the sum's own rounding
// out.
void Integrate(GpuCore& core, Seconds end, long double& integral) {
  static const double kNode = 0.5 / std::sqrt(3.0);
  const Seconds start = core.now();
  const Seconds duration = end - start;
  for (const double node : {0.5 - kNode, 0.5 + kNode}) {
    core.AdvanceTo(start + duration * node);
    integral += static_cast<long double>(core.exact_power().value()) / 2 *
                static_cast<long double>(duration.count());
  }
  core.AdvanceTo(end);
}

TEST(ExactnessTest, AWeekWithAMillionLoadChangesIsTheIntegralOfItsPower) {
  const Seconds week = 24h * 7;
  constexpr int kChanges = 1'000'000;
  GpuCore core(Model("A100"), 1, 0);
  Random random(2);
  // Ends at an update of the counter, so that the counter covers exactly the integral.
  const Seconds end =
      LastUpdate(week, *core.model().sensors.counter_update, core.board_sensors().counter_phase);
  long double integral = 0;
  std::uint32_t load = 0;
  for (int i = 1; i <= kChanges; ++i) {
    core.DetachLoad(load);
    load = core.AttachLoad(Draw(Watts(random.Uniform(0.0, 500.0)))).value();
    const double jitter = i < kChanges ? random.Uniform(-0.4, 0.4) : 0.0;
    Integrate(core, end * ((i + jitter) / kChanges), integral);
  }
  EXPECT_EQ(core.now(), end);
  const auto expected = static_cast<double>(integral);
  EXPECT_NEAR(core.exact_energy().value() / expected, 1.0, 1e-12);

  const BoardSensors& board = core.board_sensors();
  const double counted = static_cast<double>(core.counter_millijoules().value()) / 1e3;
  const double reported = board.gain * expected + board.offset.value() * end.count();
  EXPECT_NEAR(counted / reported, 1.0, 1e-11);
}

TEST(ExactnessTest, TheStepsOfAWorkloadAddUp) {
  GpuCore core(Model("V100"), 1, 0);
  const auto id = core.AttachLoad(Train("deepspeech2", 2));
  ASSERT_TRUE(id.ok());
  const Seconds step = core.StepTime(id.value()).value();
  const double duty = core.utilization().compute;
  long double integral = 0;
  for (int i = 0; i < 20000; ++i) {
    Integrate(core, step * (i + duty), integral);
    Integrate(core, step * (i + 1.0), integral);
  }
  EXPECT_NEAR(core.exact_energy().value() / static_cast<double>(integral), 1.0, 1e-10);
}

// One random thing that can happen to a GPU.
void Happen(GpuCore& core, Random& random) {
  const GpuModel& model = core.model();
  switch (random.Below(7)) {
    case 0:
      (void)core.AttachLoad(
          testing::DrawFor(Seconds(random.Uniform(0.01, 90.0)), Watts(random.Uniform(0.0, 500.0))));
      break;
    case 1:
      (void)core.AttachLoad(Train("resnet50", 256));
      break;
    case 2:
      core.DetachLoad(static_cast<std::uint32_t>(random.Below(50)));
      break;
    case 3:
      (void)core.SetPowerLimit(
          Watts(random.Uniform(model.limit_range.min.value(), model.limit_range.max.value())));
      break;
    case 4:
      (void)core.LockClock(ClockDomain::kGraphics, {.min = 0_MHz, .max = 900_MHz});
      break;
    case 5:
      (void)core.ResetClock(ClockDomain::kGraphics);
      break;
    default:
      core.SetAmbient(Celsius(random.Uniform(15.0, 70.0)));
  }
}

TEST(ExactnessTest, ManySmallStepsAreOneBigStep) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    GpuCore leaping(Model("A100"), seed, 0);
    GpuCore stepping = leaping;
    for (int i = 0; i < 100; ++i) {
      Random twin = random;
      Happen(leaping, random);
      Happen(stepping, twin);
      const Seconds until = leaping.now() + Seconds(random.Uniform(0.0, 40.0));
      leaping.AdvanceTo(until);
      while (stepping.now() < until)
        stepping.AdvanceTo(std::min(until, stepping.now() + Seconds(random.Uniform(0.0, 0.7))));
      ASSERT_EQ(leaping.exact_energy(), stepping.exact_energy());
      ASSERT_EQ(leaping.exact_power(), stepping.exact_power());
      ASSERT_EQ(leaping.temperature(), stepping.temperature());
      ASSERT_EQ(leaping.counter_millijoules().value(), stepping.counter_millijoules().value());
      ASSERT_EQ(leaping.power(PowerKind::kInstant).value(),
                stepping.power(PowerKind::kInstant).value());
    }
  }
}

}  // namespace gpu_core_exactness_test
}  // namespace zeus::sim

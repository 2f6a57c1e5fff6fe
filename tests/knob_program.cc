// Sets the power limit of the GPUs it sees to 150 W, prints that, and ends in the given way:
//   knob_program END [scoped]    one knob for all GPUs behind a guard, or a ScopedPowerLimit each
//   knob_program loop            sets and restores without end
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob_group.h"
#include "zeus/device/knobs/knob_repair.h"

namespace {

constexpr zeus::Watts kLimit{150};

void Throw() { throw std::runtime_error("thrown"); }

void End(const std::string& how) {
  fmt::print("set\n");
  std::fflush(stdout);
  if (how == "exit") std::exit(7);
  if (how == "throw") Throw();
  if (how == "terminate") []() noexcept { Throw(); }();
  while (how == "wait") ::pause();
}

zeus::Status RunGroup(const std::string& how) {
  zeus::SystemClock clock;
  ZEUS_TRY(const auto folder, zeus::KnobFolder());
  zeus::KnobJournal journal(clock, folder);
  const zeus::Surroundings machine = zeus::RealSurroundings(clock);
  ZEUS_TRY(const zeus::Node node, zeus::Discover(machine));
  std::vector<std::unique_ptr<zeus::DeviceKnob>> members;
  for (const auto& gpu : node.gpus) {
    ZEUS_TRY(auto knob, zeus::DeviceKnob::Of(zeus::KnobKind::kGpuPowerLimit, *gpu, journal));
    members.push_back(std::move(knob));
  }
  ZEUS_TRY(const auto group, zeus::KnobGroup::Of(std::move(members)));
  zeus::KnobGuard guard(*group, [&] { (void)zeus::RepairKnobs(journal, machine); });
  ZEUS_RETURN_IF_ERROR(guard.Set(kLimit));
  End(how);
  return zeus::Ok();
}

zeus::Status RunScoped(const std::string& how) {
  zeus::SystemClock clock;
  ZEUS_TRY(const zeus::Node node, zeus::Discover(zeus::RealSurroundings(clock)));
  do {
    std::vector<zeus::ScopedPowerLimit> scopes;
    for (const auto& gpu : node.gpus) {
      ZEUS_TRY(auto scope, zeus::ScopedPowerLimit::Set(*gpu, kLimit));
      scopes.push_back(std::move(scope));
    }
    End(how);
  } while (how == "loop");
  return zeus::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "return";
  try {
    const bool scoped = argc > 2 || how == "loop";
    const zeus::Status done = scoped ? RunScoped(how) : RunGroup(how);
    if (done.ok()) return 0;
    fmt::print(stderr, "{}\n", done.error().message);
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "caught: {}\n", error.what());
    return 2;
  }
}

#include "apps/zeus/first_gpu/killed_knob.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/process.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/device/node.h"

namespace zeus::cli {
namespace {

constexpr int kChildTimeout = 60'000;  // Milliseconds.

// The child reports these: the limit before, and the one that it has set.
struct Limits {
  double before = 0;
  double set = 0;
};

Result<Limits> LowerLimit(Gpu& gpu, std::unique_ptr<GuardedKnob>& knob) {
  ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
  ZEUS_TRY(knob, GuardedKnob::Of(KnobKind::kGpuPowerLimit, gpu));
  const Watts lower = limit.range.min;
  if (SameSetting(lower, limit.requested))
    return Error{ErrorCode::kNotSupported, "the limit is the lowest already"};
  ZEUS_RETURN_IF_ERROR(knob->Set(lower));
  return Limits{.before = limit.requested.value(), .set = lower.value()};
}

// The first byte that the child writes says whether a Limits or the text of an error follows.
[[noreturn]] void RunChild(unsigned index, int line) {
  SystemClock clock;
  std::unique_ptr<GuardedKnob> knob;
  std::string message = "E";
  const auto node = Discover(RealSurroundings(clock));
  if (!node.ok()) {
    message += node.error().message;
  } else if (index >= node.value().gpus.size()) {
    message += "there is no such GPU";
  } else if (const auto limits = LowerLimit(*node.value().gpus[index], knob); limits.ok()) {
    message = "L";
    message.append(reinterpret_cast<const char*>(&limits.value()), sizeof(Limits));
  } else {
    message += limits.error().message;
  }
  if (::write(line, message.data(), message.size()) < 0) ::_exit(1);
  if (message[0] == 'E') ::_exit(0);
  while (true) ::pause();  // Until SIGKILL.
}

Check NotHere(Check check, std::string reason) {
  check.verdict = CheckVerdict::kNotHere;
  check.finding = std::move(reason);
  return check;
}

// Repairs as the next program would, and looks at what is in force then.
Check Judge(Check check, unsigned index, const Limits& limits) {
  SystemClock clock;
  const auto node = Discover(RealSurroundings(clock));
  const auto folder = KnobFolder();
  if (!node.ok() || !folder.ok() || index >= node.value().gpus.size())
    return NotHere(std::move(check), "the GPU cannot be looked at any more");
  Gpu& gpu = *node.value().gpus[index];
  const auto left = gpu.CurrentPowerLimit();
  KnobJournal journal(clock, folder.value());
  const TimePoint begin = clock.Now();
  const auto repairs = RepairKnobs(journal, node.value());
  const Seconds duration = clock.Now() - begin;
  const auto after = gpu.CurrentPowerLimit();
  if (!left.ok() || !after.ok() || !repairs.ok())
    return NotHere(std::move(check), "the limit cannot be read any more");
  const bool back = SameSetting(after.value().requested, Watts(limits.before));
  check.verdict = back ? CheckVerdict::kHeld : CheckVerdict::kBroken;
  check.finding = fmt::format(
      "{:.1f} W before, set to {:.1f} W, {:.1f} W after kill -9, {:.1f} W after the repair ({:.0f} "
      "ms)",
      limits.before, limits.set, left.value().requested.value(), after.value().requested.value(),
      duration / Seconds(std::chrono::milliseconds(1)));
  return check;
}

}  // namespace

Check CheckKilledKnob(unsigned gpu) {
  Check check{.name = "kill -9", .promise = "a power limit that a killed program left is put back"};
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return NotHere(std::move(check), "the system gives no pipe");
  const FileDescriptor reader(ends[0]);
  const pid_t child = ::fork();
  if (child == 0) RunChild(gpu, ends[1]);
  ::close(ends[1]);
  if (child < 0) return NotHere(std::move(check), "the system creates no process");
  ::pollfd wait{.fd = reader.get(), .events = POLLIN, .revents = 0};
  std::array<char, 1024> message{};
  const ssize_t size = ::poll(&wait, 1, kChildTimeout) == 1
                           ? ::read(reader.get(), message.data(), message.size())
                           : -1;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (size < 1) return NotHere(std::move(check), "the driver did not answer");
  const std::string text(message.data() + 1, static_cast<std::size_t>(size - 1));
  if (message[0] != 'L' || text.size() != sizeof(Limits)) return NotHere(std::move(check), text);
  Limits limits;
  text.copy(reinterpret_cast<char*>(&limits), sizeof limits);
  return Judge(std::move(check), gpu, limits);
}

}  // namespace zeus::cli

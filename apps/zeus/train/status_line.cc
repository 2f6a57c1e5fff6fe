#include "apps/zeus/train/status_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/zeus/terminal.h"
#include "zeus/base/quantity_text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kBar = 20;

}  // namespace

std::string ToLine(const TrainStatus& status, std::size_t width) {
  const double done = status.recurrences > 0 ? static_cast<double>(status.recurrence - 1) /
                                                   static_cast<double>(status.recurrences)
                                             : 0;
  const auto filled = static_cast<std::size_t>(std::clamp(done, 0.0, 1.0) * kBar);
  std::string line = fmt::format("[{}{}] {}/{}  batch size {}", std::string(filled, '#'),
                                 std::string(kBar - filled, '.'), status.recurrence,
                                 status.recurrences, status.batch_size);
  if (status.attempt > 0) line += fmt::format(" (try {})", status.attempt + 1);
  line += fmt::format("  epoch {}/{}", status.epoch, status.max_epochs);
  if (status.metric) line += fmt::format("  {:.4g} of {:.4g}", *status.metric, status.target);
  line += "  " + EnergyText(status.cost);
  if (status.bound) line += " of at most " + EnergyText(*status.bound);
  if (status.limit) line += fmt::format("  {:g} W", status.limit->value());
  if (status.waiting_for_service) line += "  (waiting for the server)";
  if (line.size() > width) line.resize(width);
  return line;
}

StatusLine::StatusLine(Wanted wanted)
    : active_(wanted == Wanted::kYes && DescribeTerminal(STDERR_FILENO).redraws) {}

void StatusLine::Show(const TrainStatus& status) {
  if (!active_) return;
  const std::string line = ToLine(status, DescribeTerminal(STDERR_FILENO).columns - 1);
  if (line == shown_) return;
  shown_ = line;
  std::fputs(fmt::format("\r\033[K{}", line).c_str(), stderr);
  std::fflush(stderr);
}

void StatusLine::Hide() {
  if (!active_ || shown_.empty()) return;
  shown_.clear();
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace zeus::cli

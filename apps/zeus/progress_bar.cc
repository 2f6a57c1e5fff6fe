#include "apps/zeus/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/zeus/terminal.h"

namespace zeus::cli {
namespace {

constexpr std::int64_t kSteps = 1000;  // The line is redrawn at most this often in all.
constexpr std::int64_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string what, std::int64_t total)
    : what_(std::move(what)),
      total_(std::max<std::int64_t>(total, 1)),
      active_(DescribeTerminal(STDERR_FILENO).redraws) {}

ProgressBar::~ProgressBar() {
  if (active_ && shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::Add(std::int64_t done) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);
  done_ = std::min(done_ + done, total_);
  const std::int64_t step = done_ * kSteps / total_;
  if (step == shown_) return;
  shown_ = step;
  const auto filled = static_cast<std::size_t>(done_ * kWidth / total_);
  fmt::print(stderr, "\r\033[K[{}{}] {} of {} {}", std::string(filled, '#'),
             std::string(kWidth - filled, '.'), done_, total_, what_);
  std::fflush(stderr);
}

BusyLine::BusyLine(std::string what, const Clock& clock)
    : what_(std::move(what)), clock_(clock), begin_(clock.Now()) {
  if (DescribeTerminal(STDERR_FILENO).redraws)
    ticker_ = std::make_unique<Ticker>("zeus-busy", [this] { return Step(); });
}

BusyLine::~BusyLine() {
  ticker_.reset();
  if (shown_) std::fputs("\r\033[K", stderr);
}

TimePoint BusyLine::Step() {
  const TimePoint now = clock_.Now();
  if (now - begin_ >= Seconds(1)) {
    fmt::print(stderr, "\r\033[K{}: {:.0f} s", what_, Seconds(now - begin_).count());
    std::fflush(stderr);
    shown_ = true;
  }
  return now + Seconds(1);
}

}  // namespace zeus::cli

#include "apps/zeus/replay/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace zeus::cli {

ProgressBar::ProgressBar(std::string what, const std::atomic<std::int64_t>& done,
                         std::int64_t total)
    : what_(std::move(what)), done_(done), total_(total), started_(clock_.Now()) {
  if (::isatty(STDERR_FILENO) == 1)
    ticker_ = std::make_unique<Ticker>("progress", [this] { return Draw(); });
}

ProgressBar::~ProgressBar() {
  if (!ticker_) return;
  ticker_.reset();
  fmt::print(stderr, "\r\x1b[K");
}

TimePoint ProgressBar::Draw() {
  constexpr int kWidth = 30;
  const double share =
      total_ > 0 ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)) : 1.0;
  const int filled = static_cast<int>(kWidth * share);
  const Seconds spent = clock_.Now() - started_;
  const std::string left =
      share > 0.01 ? fmt::format(", {:.0f} s left", spent.count() * (1 - share) / share) : "";
  fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {:3.0f} %{}\x1b[K", what_, "", filled, "",
             kWidth - filled, 100 * share, left);
  return clock_.Now() + std::chrono::milliseconds(200);
}

}  // namespace zeus::cli

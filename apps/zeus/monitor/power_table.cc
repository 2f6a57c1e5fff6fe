#include "apps/zeus/monitor/power_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <string_view>

#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kColumns = 9;
constexpr std::size_t kGap = 2;
constexpr std::size_t kLongestModel = 24;
using Row = std::array<std::string, kColumns>;  // The last holds notes and is never padded.

// Narrowest widths, so that columns do not move while numbers grow.
constexpr std::array<std::size_t, kColumns> kLeastWidths = {9, 5, 15, 16, 5, 5, 6, 8, 0};
constexpr std::array<bool, kColumns> kToTheRight = {false, false, true, true, true,
                                                    true,  true,  true, false};
// Which columns go first when the terminal is narrow: model, clock, utilisation, limit,
// temperature.
constexpr std::array<std::size_t, 5> kDispensable = {1, 7, 5, 6, 4};

template <class T, class Show>
std::string Cell(const Result<T>& value, Show show) {
  return value.ok() ? show(value.value()) : "-";
}

// At the very beginning there is neither energy nor doubt about it.
std::string TotalText(Joules total, Joules sigma) {
  // Less than that is the first moment of a recording.
  constexpr Joules kVisible{0.005};
  return sigma > kVisible ? WithSigma(total, sigma) : fmt::format("{:.0f} J", total.value());
}

std::string Notes(const EnergyMonitor::Present& present) {
  if (const Error* reason = WhyUnreadable(present)) return Printable(reason->message);
  return fmt::format("{}", fmt::join(present.flags.Names(), ", "));
}

Row DeviceRow(const DeviceSample& device) {
  const EnergyMonitor::Present& present = device.present;
  return {device.identity.name,
          Printable(device.identity.model).substr(0, kLongestModel),
          Cell(present.power, [&](Watts power) { return WithSigma(power, present.power_sigma); }),
          Cell(present.total, [&](Joules total) { return TotalText(total, present.total_sigma); }),
          Cell(present.temperature, [](Celsius t) { return fmt::format("{:.0f} °C", t.value()); }),
          Cell(present.utilization, [](const Utilization& u) { return PercentText(u.compute, 0); }),
          Cell(present.enforced_limit, [](Watts w) { return fmt::format("{:.0f} W", w.value()); }),
          Cell(present.graphics_clock,
               [](Hertz clock) { return fmt::format("{:.0f} MHz", clock.ToMega()); }),
          Notes(present)};
}

class Layout {
 public:
  explicit Layout(const std::vector<Row>& rows) : widths_(kLeastWidths) {
    for (const Row& row : rows)
      for (std::size_t i = 0; i + 1 < kColumns; ++i)
        widths_[i] = std::max(widths_[i], TextWidth(row[i]));
  }

  void FitInto(std::size_t width) {
    for (const std::size_t column : kDispensable) {
      const std::size_t taken = std::accumulate(widths_.begin(), widths_.end(), std::size_t{0}) +
                                kGap * static_cast<std::size_t>(std::ranges::count_if(
                                           widths_, [](std::size_t w) { return w != 0; }));
      if (taken <= width) return;
      widths_[column] = 0;
    }
  }

  std::string Show(const Row& row) const {
    std::string text;
    for (std::size_t i = 0; i + 1 < kColumns; ++i) {
      if (widths_[i] == 0) continue;
      const std::string padding(widths_[i] - std::min(widths_[i], TextWidth(row[i])), ' ');
      text += kToTheRight[i] ? padding + row[i] : row[i] + padding;
      text.append(kGap, ' ');
    }
    text += row.back();
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  std::array<std::size_t, kColumns> widths_;
};

}  // namespace

PowerTable::PowerTable(const std::vector<Absence>& absent) {
  for (const Absence& absence : absent)
    if (absence.what.starts_with("gpu:")) lost_.push_back(absence);
}

std::vector<std::string> PowerTable::Rows(const Sample& sample,
                                          std::optional<std::size_t> width) const {
  std::vector<Row> rows = {{fmt::format("{:.1f} s", sample.recorded.count()), "model", "power",
                            "energy", "temp", "util", "limit", "clock", ""}};
  for (const DeviceSample& device : sample.devices) rows.push_back(DeviceRow(device));
  for (const Absence& gpu : lost_)
    rows.push_back({gpu.what, "", "-", "-", "-", "-", "-", "-", Printable(gpu.reason)});

  Layout layout(rows);
  if (width) layout.FitInto(*width);
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    const std::string line = layout.Show(row);
    lines.push_back(width ? Cut(line, *width) : line);
  }
  return lines;
}

std::string Summary(const Sample& sample) {
  std::vector<std::string> parts;
  for (const DeviceSample& device : sample.devices) {
    const auto& total = device.present.total;
    parts.push_back(fmt::format("{} {}", device.identity.name,
                                total.ok() ? TotalText(total.value(), device.present.total_sigma)
                                           : "unknown: " + Printable(total.error().message)));
  }
  return fmt::format("{:.1f} s: {}", sample.recorded.count(), fmt::join(parts, ", "));
}

std::string Cut(const std::string& text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins && shown++ == width) break;
  }
  return text.substr(0, end);
}

namespace {

// ECMA-48 and the terminals of the last forty years.
constexpr const char* kHideCursor = "\x1b[?25l";
constexpr const char* kShowCursor = "\x1b[?25h";
constexpr const char* kClearAll = "\x1b[H\x1b[2J";
constexpr const char* kClearLine = "\x1b[2K";
constexpr const char* kClearBelow = "\x1b[J";

constexpr TerminalSize kUsualSize = {.columns = 80, .rows = 24};

}  // namespace

Screen::Screen() : terminal_(DescribeTerminal(STDOUT_FILENO).redraws) {
  if (terminal_) fmt::print("{}", kHideCursor);
}

Screen::~Screen() {
  if (!terminal_) return;
  std::fputs(kShowCursor, stdout);
  std::fflush(stdout);
}

std::optional<TerminalSize> Screen::CurrentSize() const {
  if (!terminal_) return std::nullopt;
  return SizeOfTerminal(STDOUT_FILENO).value_or(kUsualSize);
}

std::optional<std::size_t> Screen::width() const {
  const auto size = CurrentSize();
  if (!size) return std::nullopt;
  return size->columns;
}

Status Screen::Show(const std::vector<std::string>& given) {
  // Names of devices are the drivers'.
  std::vector<std::string> rows;
  for (const std::string& row : given) rows.push_back(OneLineForTerminal(row));
  if (const auto size = CurrentSize()) {
    fmt::print("{}", Redraw(rows, *size));
  } else {
    for (const std::string& row : rows) PrintText(fmt::format("{}\n", row));
  }
  return FlushOutput();
}

std::string Screen::Redraw(const std::vector<std::string>& rows, TerminalSize size) {
  // One line stays free: the cursor is there. What does not fit cannot be redrawn.
  std::size_t count = rows.size();
  if (size.rows > 1 && count > size.rows - 1) count = size.rows - 1;
  std::string text;
  if (last_size_ && *last_size_ != size) {
    text = kClearAll;  // The terminal has moved the old rows to unknown places.
  } else if (shown_rows_ > 0) {
    text = fmt::format("\x1b[{}A", shown_rows_);
  }
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("\r{}{}\n", kClearLine, rows[i]);
  text += kClearBelow;
  last_size_ = size;
  shown_rows_ = count;
  return text;
}

}  // namespace zeus::cli

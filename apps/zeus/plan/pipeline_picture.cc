#include "apps/zeus/plan/pipeline_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace zeus::cli {
namespace {

using pipeline::PlannedInstruction;

constexpr std::array<std::string_view, 4> kShades = {"░", "▒", "▓", "█"};
constexpr std::size_t kMostRows = 48;  // If there are more stages, only some are shown.
constexpr std::size_t kLabel = 10;     // Width of "stage 123 ".
constexpr double kBusy = 0.4;          // A column with less work than this share counts as waiting.

std::size_t Columns(const PictureFrame& frame) {
  return static_cast<std::size_t>(std::max(frame.width, 40)) - kLabel - 1;
}

std::string_view ShadeOf(double share) {
  const auto level = static_cast<std::size_t>(share * kShades.size());
  return kShades[std::min(level, kShades.size() - 1)];
}

// The work during the time of one column.
struct Column {
  double busy = 0;   // Share of the column's time.
  double power = 0;  // Share of the power range, summed over the busy time.
};

class StageRow {
 public:
  StageRow(const std::vector<PlannedInstruction>& stage, const PictureFrame& frame)
      : frame_(frame), cells_(Columns(frame), " ") {
    std::vector<Column> columns(cells_.size());
    for (const PlannedInstruction& planned : stage) AddWork(planned, columns);
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].busy > kBusy) cells_[i] = ShadeOf(columns[i].power / columns[i].busy);
    for (const PlannedInstruction& planned : stage) Write(planned);
  }

  std::string Text() const {
    std::string text;
    for (const std::string& cell : cells_) text += cell;
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  double ToColumns(Seconds time) const {
    return time / frame_.until * static_cast<double>(cells_.size());
  }

  void AddWork(const PlannedInstruction& planned, std::vector<Column>& columns) const {
    const double from = ToColumns(planned.start);
    const double to = ToColumns(planned.start + planned.time);
    const double share = frame_.powers.ShareOf(PowerOf(planned));
    for (auto i = static_cast<std::size_t>(from); i < columns.size(); ++i) {
      const auto left = static_cast<double>(i);
      if (left >= to) break;
      const double part = std::min(left + 1, to) - std::max(left, from);
      columns[i].busy += part;
      columns[i].power += part * share;
    }
  }

  // Writes the name over the shade if enough of the shade stays visible.
  void Write(const PlannedInstruction& planned) {
    const auto first = static_cast<std::size_t>(std::lround(ToColumns(planned.start)));
    const auto last =
        static_cast<std::size_t>(std::lround(ToColumns(planned.start + planned.time)));
    const std::string name = ShortName(planned);
    if (last > cells_.size() || first + name.size() >= last) return;
    for (std::size_t i = 0; i < name.size(); ++i) cells_[first + i] = name.substr(i, 1);
  }

  const PictureFrame& frame_;
  std::vector<std::string> cells_;
};

}  // namespace

std::string PipelinePicture(const pipeline::PipelinePlan& plan, const PictureFrame& frame) {
  std::string text;
  const std::size_t every = (plan.stages.size() + kMostRows - 1) / kMostRows;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (stage % every != 0 && stage + 1 != plan.stages.size()) continue;
    text += fmt::format("stage {:<3} {}\n", stage, StageRow(plan.stages[stage], frame).Text());
  }
  return text;
}

std::string PictureLegend(const PictureFrame& frame) {
  const std::string middle = fmt::format("{:.4g} s", frame.until.count() / 2);
  const std::string end = fmt::format("{:.4g} s", frame.until.count());
  std::string axis(Columns(frame), ' ');
  axis.replace(0, 3, "0 s");
  axis.replace(axis.size() / 2 - middle.size() / 2, middle.size(), middle);
  axis.replace(axis.size() - end.size(), end.size(), end);
  std::string text = std::string(kLabel, ' ') + axis + "\n";
  text += fmt::format("{}{:.0f} W {} {:.0f} W, blank: waiting\n", std::string(kLabel, ' '),
                      frame.powers.low.value(), fmt::join(kShades, ""), frame.powers.high.value());
  return text;
}

}  // namespace zeus::cli

// A SweepReport for people.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/zeus/profile/sweep_report.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr const char* kUnknown = "unknown";

std::string Heading(const SweepReport& report) {
  std::string text = fmt::format("zeus profile: {}\n",
                                 Printable(fmt::format("{}", fmt::join(report.command, " "))));
  if (!report.label.empty()) text += fmt::format("  label  {}\n", Printable(report.label));
  const std::size_t rounds = report.slices.empty() ? 0 : report.slices.back().round + 1;
  return text + fmt::format(
                    "  {}: {} of {} settings, up to {:g} s each after {:g} s of warm-up, {} "
                    "round{}\n",
                    report.knob_name, report.rows.size(), report.settings.size(),
                    report.plan.slice.count(), report.plan.warmup.count(), rounds,
                    rounds == 1 ? "" : "s");
}

std::vector<std::string> Cells(const SweepReport& report, std::size_t index) {
  const SweepRow& row = report.rows[index];
  const SweepRow& highest = report.rows.front();
  std::vector<std::string> cells = {"  " + ToText(row.setting),
                                    WithSigma(row.power.value(), row.power_sigma.value(), "W")};
  if (row.per_step) {
    cells.push_back(WithSigma(row.per_step->Rate(), row.per_step->RateSigma(), "/s"));
    cells.push_back(
        WithSigma(row.per_step->energy.value(), row.per_step->energy_sigma.value(), "J"));
  } else {
    cells.insert(cells.end(), 2, kUnknown);
  }
  cells.push_back(ChangeText(row.power.value(), highest.power.value()));
  if (row.per_step && highest.per_step) {
    cells.push_back(ChangeText(row.per_step->time.count(), highest.per_step->time.count()));
    cells.push_back(ChangeText(row.per_step->energy.value(), highest.per_step->energy.value()));
  } else {
    cells.insert(cells.end(), 2, kUnknown);
  }
  const std::vector<std::string> chosen = ChosenBy(report, index);
  cells.push_back(chosen.empty() ? "" : fmt::format("<- {}", fmt::join(chosen, ", ")));
  return cells;
}

std::string Rows(const SweepReport& report) {
  const std::vector<Align> alignment = {Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                                        Align::kRight, Align::kRight, Align::kRight, Align::kLeft};
  std::vector<std::vector<std::string>> rows = {{IsClock(report.knob) ? "clock" : "limit", "power",
                                                 "throughput", "energy/step", "Δ power",
                                                 "Δ time/step", "Δ energy/step", "best for"}};
  for (std::size_t i = 0; i < report.rows.size(); ++i) rows.push_back(Cells(report, i));
  return AlignedRows(alignment, rows);
}

}  // namespace

std::string ToTable(const SweepReport& report) {
  std::string text = Heading(report);
  if (!report.rows.empty()) {
    text += Rows(report);
    text += fmt::format("  ± is one standard deviation; Δ is against {}\n",
                        ToText(report.rows.front().setting));
    if (report.shared_error > 0) {
      text +=
          fmt::format("  it leaves out the gain of the sensors ({:.1f} %), which all rows share\n",
                      100 * report.shared_error);
    }
  }
  for (const SettingChoice& choice : report.choices)
    if (!choice.row) text += fmt::format("  {}: {}\n", choice.objective, choice.reason);
  for (const std::string& note : NotesOn(report)) text += fmt::format("  {}\n", note);
  return text;
}

}  // namespace zeus::cli

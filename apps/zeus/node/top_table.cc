#include "apps/zeus/node/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "apps/zeus/node/node_text.h"
#include "zeus/base/terminal_text.h"

namespace zeus::cli {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kDelete = '\x7f';
constexpr char kBackspace = '\b';

std::string Number(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : "-";
}

// The leases on a device in a few words each.
std::string LeasesOn(const std::string& device, const std::vector<wire::LeaseView>& leases) {
  std::string text;
  for (const wire::LeaseView& lease : leases)
    for (const wire::KnobView& knob : lease.knobs) {
      if (knob.request.key.device != device) continue;
      const std::string who = lease.job.empty() ? lease.subject : lease.job;
      text += fmt::format("{}{} ({}): {} {}", text.empty() ? "" : "; ", lease.name, who,
                          wire::Words(knob.request.key.knob), KnobText(knob));
    }
  return text;
}

double KeyOf(const client::ReadingView& reading, TopView::Order order) {
  const auto& value =
      order == TopView::Order::kPower ? reading.power_watts : reading.temperature_celsius;
  return value.value_or(-1e9);
}

std::string Title(const TopState& state) {
  double power = 0;
  for (const client::ReadingView& reading : state.readings)
    power += reading.power_watts.value_or(0);
  return fmt::format("{} devices, {:.0f} W, {} leases{}", state.readings.size(), power,
                     state.leases.size(),
                     state.trouble.empty() ? "" : ", not fresh: " + state.trouble);
}

}  // namespace

std::string CutToWidth(const std::string& line, std::size_t width) {
  const auto continues = [&line](std::size_t at) {
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0U) == 0x80U;
  };
  std::size_t end = line.size();
  while (end > 0 && TextWidth(std::string_view(line).substr(0, end)) > width) {
    --end;
    while (continues(end)) --end;
  }
  return line.substr(0, end);
}

bool TopKeys::Press(char key) {
  if (typing_) {
    if (key == '\n' || key == '\r' || key == kEscape) typing_ = false;
    if (key == kEscape) view_.filter.clear();
    if ((key == kDelete || key == kBackspace) && !view_.filter.empty()) view_.filter.pop_back();
    if (typing_ && key >= ' ' && key != kDelete) view_.filter += key;
    return true;
  }
  if (key == 'd') view_.order = TopView::Order::kDevice;
  if (key == 'p') view_.order = TopView::Order::kPower;
  if (key == 't') view_.order = TopView::Order::kTemperature;
  if (key == kEscape) view_.filter.clear();
  typing_ = key == '/';
  if (typing_) view_.filter.clear();
  return key != 'q';
}

std::vector<std::string> TopRows(const TopState& state, const TopView& view, TopFooter footer) {
  using Row = std::vector<std::string>;
  std::vector<client::ReadingView> readings = state.readings;
  if (view.order != TopView::Order::kDevice)
    std::ranges::stable_sort(readings, [&](const auto& one, const auto& other) {
      return KeyOf(one, view.order) > KeyOf(other, view.order);
    });
  std::vector<Row> rows{{"device", "power", "limit", "util", "temp", "leases"}};
  for (const client::ReadingView& reading : readings) {
    const std::string leases = LeasesOn(reading.device, state.leases);
    const std::string& name = reading.name.empty() ? reading.device : reading.name;
    if ((name + ' ' + reading.device + ' ' + leases).find(view.filter) == std::string::npos)
      continue;
    const auto utilization = reading.compute_utilization
                                 ? std::optional<double>(100 * *reading.compute_utilization)
                                 : std::nullopt;
    rows.push_back({OneLineForTerminal(name), Number(reading.power_watts, "W"),
                    Number(reading.enforced_limit_watts, "W"), Number(utilization, "%"),
                    Number(reading.temperature_celsius, "°C"), OneLineForTerminal(leases)});
  }
  std::vector<std::string> lines{OneLineForTerminal(Title(state))};
  std::istringstream table(AlignedRows(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft},
      rows));
  for (std::string line; std::getline(table, line);) lines.push_back(line);
  if (footer == TopFooter::kKeys)
    lines.push_back("order: d device, p power, t temperature; / filter" +
                    (view.filter.empty() ? "" : " [" + OneLineForTerminal(view.filter) + "]") +
                    "; q quit");
  return lines;
}

}  // namespace zeus::cli

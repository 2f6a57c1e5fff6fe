#include "apps/zeus/node/node_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "zeus/base/json.h"
#include "zeus/base/terminal_text.h"

namespace zeus::cli {
namespace {

constexpr const char* kUnknown = "-";

std::string TextOf(const wire::KnobValue& value) {
  if (const auto* setting = std::get_if<Setting>(&value)) return zeus::ToText(*setting);
  if (const auto* range = std::get_if<ClockRange>(&value))
    return fmt::format("{} to {}", zeus::ToText(Setting(range->min)),
                       zeus::ToText(Setting(range->max)));
  return std::get<Persistence>(value) == Persistence::kOn ? "on" : "off";
}

std::string RangeText(const KnobChoices& choices) {
  return fmt::format("{} to {}", zeus::ToText(choices.lowest), zeus::ToText(choices.highest));
}

std::string KnobsText(const std::map<wire::LeaseKnob, KnobChoices>& knobs) {
  std::string text;
  for (const auto& [knob, choices] : knobs)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", wire::Words(knob), RangeText(choices));
  return text.empty() ? "none" : text;
}

const client::ReadingView* Find(const std::vector<client::ReadingView>& readings,
                                const std::string& device) {
  const auto found = std::ranges::find(readings, device, &client::ReadingView::device);
  return found == readings.end() ? nullptr : &*found;
}

std::string PowerOf(const client::ReadingView* reading) {
  if (reading == nullptr || !reading->power_watts) return kUnknown;
  return fmt::format("{:.0f} W", *reading->power_watts);
}

std::string LimitOf(const client::NodeGpu& gpu) {
  const auto& limit = gpu.enforced_limit ? gpu.enforced_limit : gpu.requested_limit;
  return limit ? zeus::ToText(Setting(*limit)) : kUnknown;
}

std::string Identity(const Json& identity) {
  std::string scopes;
  if (identity.is_object() && identity.contains("scopes") && identity["scopes"].is_array())
    for (const Json& scope : identity["scopes"])
      if (scope.is_string()) scopes += (scopes.empty() ? "" : ", ") + scope.get<std::string>();
  std::string subject = "somebody";
  if (identity.is_object() && identity.contains("subject") && identity["subject"].is_string())
    subject = identity["subject"].get<std::string>();
  return fmt::format("You are {} there, with {}.\n", subject,
                     scopes.empty() ? "no scope" : "the scopes " + scopes);
}

}  // namespace

std::string ToText(const client::NodeView& node, const std::vector<client::ReadingView>& readings,
                   const Json& identity) {
  using Row = std::vector<std::string>;
  std::vector<Row> rows{{"device", "model", "power", "limit", "knobs for you", "id"}};
  for (const client::NodeGpu& gpu : node.gpus) {
    std::string knobs = KnobsText(gpu.knobs);
    if (gpu.lost) knobs = "lost";
    if (gpu.stuck) knobs = "its driver does not answer";
    rows.push_back({gpu.name.empty() ? gpu.device : gpu.name, gpu.identity.model,
                    PowerOf(Find(readings, gpu.device)), LimitOf(gpu), knobs, gpu.device});
  }
  for (const client::NodeCpu& cpu : node.cpus)
    rows.push_back({cpu.device, cpu.identity.model, PowerOf(Find(readings, cpu.device)), kUnknown,
                    KnobsText(cpu.knobs), cpu.device});
  std::string text = fmt::format("{}, node daemon {}\n", node.host, node.version);
  text += Identity(identity);
  text += AlignedRows(
      {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kLeft}, rows);
  return text;
}

std::string KnobText(const wire::KnobView& knob) {
  std::string text = wire::ToText(knob.request.demand);
  if (knob.overruled) text += ", overruled";
  if (knob.foreign) text += ", not applied: another program turned it";
  if (knob.effective) text += ", now " + TextOf(*knob.effective);
  if (knob.enforced && knob.effective && TextOf(*knob.enforced) != TextOf(*knob.effective))
    text += fmt::format(" (the device keeps {})", TextOf(*knob.enforced));
  if (!knob.bound_by.empty())
    text += fmt::format(" by {}{}", knob.bound_by_name.empty() ? knob.bound_by : knob.bound_by_name,
                        knob.bound_by_class.empty() ? "" : " (" + knob.bound_by_class + ")");
  return text;
}

std::string ToText(const std::vector<wire::LeaseView>& leases) {
  if (leases.empty()) return "There are no leases.\n";
  using Row = std::vector<std::string>;
  std::vector<Row> rows{
      {"lease", "name", "owner", "state", "ends with", "device", "knob", "asks for"}};
  for (const wire::LeaseView& lease : leases) {
    std::string holder(wire::Name(lease.holder));
    if (lease.pid != 0) holder += fmt::format(" {}", lease.pid);
    if (!lease.job.empty()) holder += " " + lease.job;
    if (lease.expires_in) holder += fmt::format(" in {:.0f} s", lease.expires_in->count());
    Row row{lease.id, lease.name, lease.subject, std::string(wire::Name(lease.state)),
            holder,   kUnknown,   kUnknown,      kUnknown};
    if (lease.knobs.empty()) rows.push_back(row);
    for (const wire::KnobView& knob : lease.knobs) {
      row[5] = knob.request.key.device;
      row[6] = wire::Words(knob.request.key.knob);
      row[7] = KnobText(knob);
      rows.push_back(row);
      std::fill_n(row.begin(), 5, std::string());
    }
  }
  return AlignedRows(std::vector<Align>(rows.front().size(), Align::kLeft), rows);
}

}  // namespace zeus::cli

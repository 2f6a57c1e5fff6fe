#include "zeus/wire/llm/energy_note.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "zeus/base/json.h"

namespace zeus::llm {
namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;

std::string NoteNumber(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
}

// In quotation marks. Bytes that are no UTF-8 become U+FFFD.
std::string NoteString(std::string_view text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

void AddNumber(std::string& json, std::string_view name, double value) {
  json += fmt::format(R"("{}":{},)", name, NoteNumber(value));
}

void AddString(std::string& json, std::string_view name, std::string_view value) {
  json += fmt::format(R"("{}":{},)", name, NoteString(value));
}

void AddNumbers(std::string& json, const EnergyNote& note) {
  AddNumber(json, "energy_joules", note.energy.value());
  AddNumber(json, "energy_kwh", note.energy.value() / kJoulesPerKilowattHour);
  AddNumber(json, "avg_power_watts", (note.energy / note.duration).value());
  AddNumber(json, "duration_seconds", note.duration.count());
  AddString(json, "attribution_method", note.method);
  AddNumber(json, "attribution_ratio", note.share);
  AddNumber(json, "sigma_joules", note.sigma.value());
  AddNumber(json, "prefill_joules", note.prefill.value());
  AddNumber(json, "decode_joules", note.decode.value());
  if (note.output_tokens.value_or(0) > 0)
    AddNumber(json, "joules_per_output_token", note.energy.value() / *note.output_tokens);
  if (note.tokens_estimated) AddString(json, "tokens", "estimated");
  json += fmt::format(R"("final":{},)", note.final);
  AddString(json, "source", note.source);
  json += R"("gpus":[)";
  for (std::size_t i = 0; i < note.gpus.size(); ++i)
    json += (i > 0 ? "," : "") + NoteString(note.gpus[i]);
  json += "],";
  if (note.carbon_grams) AddNumber(json, "carbon_grams", *note.carbon_grams);
}

}  // namespace

std::string ToJsonText(const EnergyNote& note) {
  std::string json = "{";
  if (note.absent_reason.empty()) {
    AddNumbers(json, note);
  } else {
    json += R"("energy_joules":null,)";
    AddString(json, "absent_reason", note.absent_reason);
  }
  return json + R"("request":)" + NoteString(note.request) + "}";
}

std::vector<std::pair<std::string, std::string>> ToHeaders(const EnergyNote& note) {
  std::vector<std::pair<std::string, std::string>> headers{{"x-zeus-request", note.request}};
  if (!note.absent_reason.empty()) return headers;
  if (std::isfinite(note.energy.value()))
    headers.emplace_back("x-zeus-energy-joules", NoteNumber(note.energy.value()));
  if (std::isfinite(note.sigma.value()))
    headers.emplace_back("x-zeus-energy-sigma-joules", NoteNumber(note.sigma.value()));
  if (note.carbon_grams && std::isfinite(*note.carbon_grams))
    headers.emplace_back("x-zeus-carbon-grams", NoteNumber(*note.carbon_grams));
  return headers;
}

}  // namespace zeus::llm

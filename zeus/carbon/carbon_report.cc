#include "zeus/carbon/carbon_report.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"

namespace zeus {
namespace {

std::string Grams(GramsCo2e amount, GramsCo2e sigma) {
  return WithSigma(amount.value(), sigma.value(), "g CO2e");
}

// Money has no prefixes: "0.123 ± 0.012 EUR".
std::string MoneyText(const Cost& cost) {
  return WithSigma(cost.amount.value(), cost.sigma.value(), "") + " " + cost.currency;
}

std::string Origin(const Accounted& accounted) {
  std::string text = fmt::format("{}", fmt::join(accounted.sources, ", "));
  if (!accounted.complete()) {
    const Joules all = accounted.energy + accounted.missing;
    text += fmt::format("; for {:.0f} % of the energy", 100 * (accounted.energy / all));
  }
  return text;
}

void AddLines(std::vector<std::string>& lines, const std::string& name, const std::string& amount,
              const Accounted& accounted) {
  if (accounted.sources.empty()) {
    lines.push_back(name + ": not known");
  } else {
    lines.push_back(fmt::format("{}: {} ({})", name, amount, Origin(accounted)));
  }
  for (const std::string& note : accounted.notes) lines.push_back("note: " + note);
}

// An amount of which nothing is known is null, and the notes say why.
Json NumberOrNull(double number, const Accounted& accounted) {
  return accounted.sources.empty() ? Json() : Json(number);
}

void AddAccounted(Json& json, const Accounted& accounted) {
  json["energy_joules"] = accounted.energy.value();
  json["missing_joules"] = accounted.missing.value();
  json["sources"] = accounted.sources;
}

Json Notes(const Accounted& accounted, const CarbonReport& report) {
  Json notes = accounted.notes;
  for (const std::string& note : report.notes) notes.push_back(note);
  return notes;
}

// Reads what AddAccounted() wrote.
void ReadAccounted(FieldReader& fields, Accounted& accounted) {
  double energy = 0;
  double missing = 0;
  fields.Require("energy_joules", energy);
  fields.Require("missing_joules", missing);
  fields.Require("sources", accounted.sources);
  fields.Require("notes", accounted.notes);
  accounted.energy = Joules(energy);
  accounted.missing = Joules(missing);
}

Result<Emissions> EmissionsFromJson(const Json& json) {
  Emissions emissions;
  FieldReader fields("carbon", json);
  double amount = 0;
  double sigma = 0;
  fields.ReadUnlessNull("grams_co2e", amount);
  fields.ReadUnlessNull("grams_co2e_sigma", sigma);
  fields.Read("estimated", emissions.accounted.estimated);
  ReadAccounted(fields, emissions.accounted);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  emissions.amount = GramsCo2e(amount);
  emissions.sigma = GramsCo2e(sigma);
  return emissions;
}

Result<Cost> CostFromJson(const Json& json) {
  Cost cost;
  FieldReader fields("cost", json);
  double amount = 0;
  double sigma = 0;
  fields.ReadUnlessNull("amount", amount);
  fields.ReadUnlessNull("amount_sigma", sigma);
  fields.Require("currency", cost.currency);
  ReadAccounted(fields, cost.accounted);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  cost.amount = Money(amount);
  cost.sigma = Money(sigma);
  return cost;
}

}  // namespace

std::vector<std::string> ToLines(const CarbonReport& report, const std::string& cost_name) {
  std::vector<std::string> lines;
  if (const auto& emissions = report.emissions) {
    AddLines(lines, "carbon", Grams(emissions->amount, emissions->sigma), emissions->accounted);
  }
  if (const auto& cost = report.cost) {
    AddLines(lines, cost_name, MoneyText(*cost), cost->accounted);
  }
  for (const std::string& note : report.notes) lines.push_back("note: " + note);
  return lines;
}

void AddTo(Json& object, const CarbonReport& report) {
  if (const auto& emissions = report.emissions) {
    const Accounted& accounted = emissions->accounted;
    Json json;
    json["grams_co2e"] = NumberOrNull(emissions->amount.value(), accounted);
    json["grams_co2e_sigma"] = NumberOrNull(emissions->sigma.value(), accounted);
    AddAccounted(json, accounted);
    json["estimated"] = accounted.estimated;
    json["notes"] = Notes(accounted, report);
    object["carbon"] = std::move(json);
  }
  if (const auto& cost = report.cost) {
    Json json;
    json["amount"] = NumberOrNull(cost->amount.value(), cost->accounted);
    json["amount_sigma"] = NumberOrNull(cost->sigma.value(), cost->accounted);
    json["currency"] = cost->currency;
    AddAccounted(json, cost->accounted);
    json["notes"] = Notes(cost->accounted, report);
    object["cost"] = std::move(json);
  }
}

Result<CarbonReport> CarbonReportFromJson(const Json& object) {
  CarbonReport report;
  if (const auto carbon = object.find("carbon"); carbon != object.end() && !carbon->is_null()) {
    ZEUS_TRY(report.emissions, EmissionsFromJson(*carbon));
  }
  if (const auto cost = object.find("cost"); cost != object.end() && !cost->is_null()) {
    ZEUS_TRY(report.cost, CostFromJson(*cost));
  }
  return report;
}

}  // namespace zeus

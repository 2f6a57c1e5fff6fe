#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "zeus/carbon/accounting.h"
#include "zeus/carbon/grid_service.h"
#include "zeus/carbon/step_series.h"
#include "zeus/carbon/tariff.h"

namespace zeus::python {
namespace {

// Begin and end in seconds since 1970, and the energy in joules.
using Piece = std::tuple<double, double, double>;
// The accounted amount, its standard deviation, the joules without a value, and notes.
using Account = std::tuple<double, double, double, std::vector<std::string>>;

WallTime FromUnix(double seconds) {
  return WallTime(std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::duration<double>(seconds)));
}

EnergyUse MakeEnergyUse(const std::vector<Piece>& pieces, double sigma) {
  EnergyUse use{.pieces = {}, .sigma = Joules(sigma)};
  for (const auto& [begin, end, joules] : pieces)
    use.pieces.push_back(
        {.begin = FromUnix(begin), .end = FromUnix(end), .energy = Joules(joules)});
  return use;
}

Account EmissionsAccount(const std::vector<Piece>& pieces, double sigma,
                         const std::vector<std::pair<double, double>>& rows,
                         const std::string& name) {
  std::vector<StepSeries::Row> steps;
  for (const auto& [time, grams] : rows) steps.push_back({.time = FromUnix(time), .value = grams});
  IntensitySeries series(name, StepSeries(steps));
  const Emissions emissions = ComputeEmissions(MakeEnergyUse(pieces, sigma), series);
  return {emissions.amount.value(), emissions.sigma.value(), emissions.accounted.missing.value(),
          emissions.accounted.notes};
}

// Months and days as bit masks, begin and end in minutes since midnight, and tiers of
// kilowatt-hours and prices.
using Rate = std::tuple<unsigned, unsigned, int, int, std::vector<std::pair<double, double>>>;

TariffRate MakeTariffRate(const Rate& rate) {
  const auto& [months, days, begin, end, tiers] = rate;
  TariffRate result{.name = {},
                    .months = months,
                    .days = days,
                    .begin = std::chrono::minutes(begin),
                    .end = std::chrono::minutes(end),
                    .tiers = {}};
  for (const auto& [up_to, price] : tiers)
    result.tiers.push_back({.up_to = KilowattHours(up_to), .price = UnitPrice(price)});
  return result;
}

std::unique_ptr<Tariff> MakeTariff(const std::vector<Rate>& rates, const std::string& zone,
                                   const std::string& currency, double already_used,
                                   const std::string& name) {
  Tariff::Contents contents{.name = name,
                            .currency = Unwrap(ParseCurrency(currency)),
                            .zone = Unwrap(TimeZone::Load(zone)),
                            .already_used = KilowattHours(already_used),
                            .rates = {}};
  for (const Rate& rate : rates) contents.rates.push_back(MakeTariffRate(rate));
  return Unwrap(Tariff::Create(std::move(contents)));
}

Account CostAccount(Tariff& tariff, const std::vector<Piece>& pieces, double sigma) {
  const Cost cost = ComputeCost(MakeEnergyUse(pieces, sigma), tariff);
  return {cost.amount.value(), cost.sigma.value(), cost.accounted.missing.value(),
          cost.accounted.notes};
}

std::pair<int, py::bytes> HttpGet(const std::string& base_url, const std::string& path,
                                  const std::string& header, const std::string& value,
                                  double timeout) {
  const auto get = [&] {
    const WithoutGil released;
    const auto client = Unwrap(CreateGridClient(base_url, Seconds(timeout)));
    return Unwrap(client->Send({.path = path, .headers = {{header, value}}}));
  };
  const http::Reply response = get();
  return {response.status, py::bytes(response.body)};
}

}  // namespace

void BindCarbon(py::module_& core) {
  py::module_ module = core.def_submodule("carbon");
  module.def("emissions", &EmissionsAccount, py::arg("pieces"), py::arg("sigma"), py::arg("rows"),
             py::arg("name"));
  module.def("http_get", &HttpGet, py::arg("base_url"), py::arg("path"), py::arg("header"),
             py::arg("value"), py::arg("timeout"));
  py::class_<Tariff>(module, "Tariff")
      .def(py::init(&MakeTariff), py::arg("rates"), py::arg("zone"), py::arg("currency"),
           py::arg("already_used"), py::arg("name"))
      .def("cost", &CostAccount, py::arg("pieces"), py::arg("sigma"))
      .def_property_readonly("currency", &Tariff::currency);
}

}  // namespace zeus::python

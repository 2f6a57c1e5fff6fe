#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/units.h"

// The energy of one request as clients get it: a JSON object in the response, and headers.
namespace zeus::llm {

struct EnergyNote {
  std::string request;  // Its identifier, "r-01J...".
  // Why there is no energy; the note then has no numbers. Empty when there is one.
  std::string absent_reason;

  Joules energy;
  Joules sigma;  // One standard deviation of `energy`.
  Joules prefill;
  Joules decode;
  Seconds duration{0};  // From the arrival of the request to its last byte.
  double share = 0;     // The request's part of its GPUs' energy in that time.
  std::string method = "zeus-iterations";
  std::optional<double> output_tokens;  // For the joules per token; nullopt and 0 leave them out.
  bool tokens_estimated = false;        // No server counted the tokens.
  bool final = false;                   // Nothing measured later will change the numbers.
  std::string source;                   // "counter", "power": where the joules were measured.
  std::vector<std::string> gpus;        // "gpu:0".
  std::optional<double> carbon_grams;
};

// The object in one line, with six significant digits:
// {"energy_joules":92.4,"energy_kwh":2.56667e-05,...,"request":"r-01J..."}. Without energy:
// {"energy_joules":null,"absent_reason":"...","request":"..."}. Numbers that are not finite become
// null.
std::string ToJsonText(const EnergyNote& note);

// Names in lower case and values: x-zeus-request, and unless the energy is absent
// x-zeus-energy-joules, x-zeus-energy-sigma-joules and x-zeus-carbon-grams.
std::vector<std::pair<std::string, std::string>> ToHeaders(const EnergyNote& note);

}  // namespace zeus::llm

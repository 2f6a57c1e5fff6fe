#include "apps/zeus/first_gpu/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/json.h"

namespace zeus::cli {
namespace {

const char* VerdictText(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::kHeld:
      return "yes";
    case CheckVerdict::kBroken:
      return "NO";
    case CheckVerdict::kNotHere:
      return "not possible here";
  }
  return "";
}

const char* VerdictName(CheckVerdict verdict) {
  if (verdict == CheckVerdict::kNotHere) return "not_here";
  return verdict == CheckVerdict::kHeld ? "held" : "broken";
}

std::ptrdiff_t CountOf(const FirstGpuReport& report, CheckVerdict verdict) {
  return std::ranges::count(report.checks, verdict, &Check::verdict);
}

}  // namespace

bool FirstGpuReport::AnyBroken() const { return CountOf(*this, CheckVerdict::kBroken) > 0; }

std::string ToText(const FirstGpuReport& report) {
  std::string text = fmt::format("Zeus {} on {}, driver {}, Linux {}\n\n", report.zeus, report.gpu,
                                 report.driver, report.kernel);
  for (const Check& check : report.checks)
    text += fmt::format("{:<18} {}\n{:<18} {}: {}\n", check.name, check.promise, "",
                        VerdictText(check.verdict), check.finding);
  text +=
      fmt::format("\n{} of {} held, {} not, {} not possible here\n",
                  CountOf(report, CheckVerdict::kHeld), report.checks.size(),
                  CountOf(report, CheckVerdict::kBroken), CountOf(report, CheckVerdict::kNotHere));
  return text;
}

Json ToJson(const FirstGpuReport& report) {
  Json checks = Json::array();
  for (const Check& check : report.checks)
    checks.push_back({{"name", check.name},
                      {"promise", check.promise},
                      {"verdict", VerdictName(check.verdict)},
                      {"finding", check.finding}});
  return {{"zeus_version", report.zeus},
          {"gpu", report.gpu},
          {"driver", report.driver},
          {"kernel", report.kernel},
          {"checks", std::move(checks)}};
}

}  // namespace zeus::cli

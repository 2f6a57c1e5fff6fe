#include <fmt/format.h>

#include <memory>

#include "apps/zeus/commands.h"
#include "apps/zeus/diff/comparison.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

struct Flags {
  std::string base;
  std::string changed;
  std::string max_regress = "3%";
  double confidence = 0.95;
  std::string metric = "energy";
  std::string device = "total";
  std::string method = "welch";
  std::uint64_t seed = 1;
  std::string format = "text";
  std::string output;
};

// Parses "3%" or "0.03". A bare 3 is rejected, because it could mean either.
Result<double> ParseShare(std::string_view text) {
  const std::string_view whole = text;
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto number = ParseDouble(Trim(text));
  constexpr double kMostPercent = 1000;
  if (number.ok() && number.value() >= 0 && number.value() <= (percent ? kMostPercent : 0.999))
    return percent ? number.value() / 100 : number.value();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--max-regress takes a share as in 3% or 0.03, not {}", Quote(whole))};
}

std::string Show(const Comparison& comparison, const std::string& format) {
  if (format == "markdown") return ToMarkdown(comparison);
  if (format == "junit") return ToJUnit(comparison);
  if (format == "json") return JsonText(ToJson(comparison), 2) + "\n";
  return ToText(comparison);
}

int DiffExitCode(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return 0;
    case Verdict::kRegression:
      return 1;
    case Verdict::kUndecided:
      return 2;
  }
  return 2;
}

Result<int> Execute(const Flags& flags) {
  DiffOptions options{.device = flags.device,
                      .confidence = flags.confidence,
                      .method = flags.method == "welch" ? Method::kWelch : Method::kBootstrap,
                      .seed = flags.seed};
  ZEUS_TRY(options.max_regress, ParseShare(flags.max_regress));
  ZEUS_TRY(options.metric, FindMetric(flags.metric));
  ZEUS_TRY(const RunFile base, ReadRunFile(flags.base));
  ZEUS_TRY(const RunFile changed, ReadRunFile(flags.changed));
  ZEUS_TRY(const Comparison comparison, Compare(base, changed, options));
  const std::string text = Show(comparison, flags.format);
  if (flags.output.empty()) {
    flags.format == "json" ? PrintJsonText(text) : PrintText(text);
  } else {
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.output, text));
  }
  return DiffExitCode(comparison.judgement.verdict);
}

}  // namespace

void AddDiffCommand(Verb app, Action& action) {
  auto flags = std::make_shared<Flags>();
  const Verb verb = app.AddVerb("diff",
                                "Say whether a change costs energy: compare two files of zeus run "
                                "--repeat --json, or of zeus llm bench --repeat --json");
  verb.AddOption("base", flags->base, "Measured before the change").Required();
  verb.AddOption("new", flags->changed, "Measured after it").Required();
  verb.AddOption("--max-regress", flags->max_regress, "Allowed increase, as in 3% or 0.03")
      .ShowDefault();
  verb.AddOption("--confidence", flags->confidence, "How sure a verdict must be")
      .Check(NumberBetween(0.5, 0.9999))
      .ShowDefault();
  verb.AddOption("--metric", flags->metric,
                 "The compared quantity; the last four are of zeus llm bench: joules per output "
                 "token and per request, 90th percentiles of latencies")
      .Check(OneOf(MetricNames()))
      .ShowDefault();
  verb.AddOption("--device", flags->device, "total, or a device as in gpu:0").ShowDefault();
  verb.AddOption("--method", flags->method, "How the confidence is computed")
      .Check(OneOf({"welch", "bootstrap"}))
      .ShowDefault();
  verb.AddOption("--seed", flags->seed, "Of the bootstrap's random numbers")
      .Check(WholeNumberBetween(0, ~std::uint64_t{0}))
      .ShowDefault();
  verb.AddOption("--format", flags->format, "How the answer is written")
      .Check(OneOf({"text", "markdown", "junit", "json"}))
      .ShowDefault();
  verb.AddOption("--output", flags->output, "Write the answer to this file");
  verb.Footer(
      "Exit code 0: the increase is below the limit. 1: it is above. 2: the runs do not tell yet.\n"
      "8: wrong command line or file, 3: no such file or device, 5: permission denied.");
  verb.OnChosen([&action, flags] { action = [flags] { return Execute(*flags); }; });
}

}  // namespace zeus::cli

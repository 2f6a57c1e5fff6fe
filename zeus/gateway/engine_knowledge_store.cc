#include "zeus/gateway/engine_knowledge_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus::gateway {
namespace {

constexpr const char* kSchema = "zeus.engine_knowledge/1";
constexpr std::size_t kMostClocks = 1000;
constexpr std::size_t kLongestNamePart = 100;  // Clients choose the names of models.
// A kind of GPU whose highest clock differs by more than this share is another one.
constexpr double kSameClock = 0.01;

bool AllUsable(const std::vector<double>& values) {
  return std::ranges::all_of(values,
                             [](double value) { return std::isfinite(value) && value >= 0; });
}

template <std::size_t N>
Status CopyNumbers(const Json& json, std::string_view field, std::array<double, N>& numbers) {
  ZEUS_TRY(const auto values, GetField<std::vector<double>>(json, field));
  if (values.size() != N || !AllUsable(values))
    return InvalidArgument(fmt::format("{} must be {} numbers from 0 on", field, N));
  std::ranges::copy(values, numbers.begin());
  return Ok();
}

Status CheckRatios(const EngineKnowledge& knowledge) {
  const std::vector<double>& clocks = knowledge.clocks;
  const bool fits = clocks.size() == knowledge.ratios.size() && clocks.size() <= kMostClocks &&
                    AllUsable(clocks) && AllUsable(knowledge.ratios) &&
                    std::ranges::is_sorted(clocks) && (clocks.empty() || clocks.back() <= 1.001);
  if (fits) return Ok();
  return InvalidArgument("clocks and ratios must be lists of the same length, clocks ascending");
}

Result<EngineKnowledge> ParseKnowledge(const Json& json, const EngineName& engine) {
  ZEUS_TRY(const std::string schema, GetField<std::string>(json, "schema"));
  if (schema != kSchema) return InvalidArgument(fmt::format("schema must be {}", kSchema));
  ZEUS_TRY(const std::string model, GetField<std::string>(json, "model"));
  ZEUS_TRY(const std::string gpus, GetField<std::string>(json, "gpus"));
  // File names are cut and simplified, so that two engines may share one.
  if (model != engine.model || gpus != engine.gpus)
    return Error{ErrorCode::kNotFound, "is of " + model + " on " + gpus};
  ZEUS_TRY(const double highest, GetField<double>(json, "highest_clock_hertz"));
  if (!(std::abs(highest / engine.highest.value() - 1) < kSameClock))
    return InvalidArgument(fmt::format("is of GPUs that go up to {:.0f} MHz, not to {:.0f} MHz",
                                       Hertz(highest).ToMega(), engine.highest.ToMega()));
  EngineKnowledge knowledge;
  ZEUS_RETURN_IF_ERROR(CopyNumbers(json, "times_seconds", knowledge.times));
  ZEUS_RETURN_IF_ERROR(CopyNumbers(json, "energies_joules", knowledge.energies));
  ZEUS_TRY(knowledge.idle_watts, GetField<double>(json, "idle_watts"));
  if (!AllUsable({knowledge.idle_watts}))
    return InvalidArgument("idle_watts must be a number from 0 on");
  ZEUS_TRY(knowledge.clocks, GetField<std::vector<double>>(json, "clocks"));
  ZEUS_TRY(knowledge.ratios, GetField<std::vector<double>>(json, "ratios"));
  ZEUS_RETURN_IF_ERROR(CheckRatios(knowledge));
  return knowledge;
}

Result<EngineKnowledge> LoadKnowledge(const std::filesystem::path& file, const EngineName& engine) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file));
  ZEUS_TRY(const Json json, ParseJson(text));
  return ParseKnowledge(json, engine);
}

}  // namespace

std::filesystem::path EngineKnowledgeStore::File(const EngineName& engine) const {
  const auto part = [](const std::string& text) {
    return FileNamePart(std::string_view(text).substr(0, kLongestNamePart));
  };
  return folder_ / (part(engine.model) + "_" + part(engine.gpus) + ".json");
}

std::optional<EngineKnowledge> EngineKnowledgeStore::Find(const EngineName& engine) const {
  const std::filesystem::path file = File(engine);
  auto loaded = LoadKnowledge(file, engine);
  if (loaded.ok()) return std::move(loaded).value();
  if (loaded.error().code != ErrorCode::kNotFound)
    log::Warning("{} is not used, the governor learns the engine anew: {}",
                 Printable(file.string()), loaded.error().message);
  return std::nullopt;
}

Status EngineKnowledgeStore::Save(const EngineName& engine,
                                  const EngineKnowledge& knowledge) const {
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot make the folder {}: {}", Printable(folder_.string()),
                             failure.message())};
  const Json json{{"schema", kSchema},
                  {"model", engine.model},
                  {"gpus", engine.gpus},
                  {"highest_clock_hertz", engine.highest.value()},
                  {"times_seconds", knowledge.times},
                  {"energies_joules", knowledge.energies},
                  {"idle_watts", knowledge.idle_watts},
                  {"clocks", knowledge.clocks},
                  {"ratios", knowledge.ratios}};
  return ReplaceFile(File(engine), JsonText(json, 1) + "\n");
}

}  // namespace zeus::gateway

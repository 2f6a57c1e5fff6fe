#include "zeus/gateway/model_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::gateway {
namespace {

constexpr std::array<std::string_view, 4> kRunningGauges = {
    "vllm:num_requests_running", "sglang:num_running_reqs", "tgi_batch_current_size",
    "llamacpp:requests_processing"};
constexpr std::size_t kMostModelsInMessage = 12;

// Ollama lists "llama3:latest", and clients ask for "llama3".
bool IsSameModel(std::string_view listed, std::string_view wanted) {
  constexpr std::string_view kLatest = ":latest";
  return listed == wanted ||
         (listed.ends_with(kLatest) && listed.substr(0, listed.size() - kLatest.size()) == wanted);
}

}  // namespace

ModelRouter::ModelRouter(std::vector<Upstream> upstreams) {
  for (Upstream& upstream : upstreams)
    upstreams_.push_back({std::move(upstream.name), std::move(upstream.models), std::nullopt});
}

bool ModelRouter::Known::Has(std::string_view model) const {
  const auto is_it = [model](const std::string& own) { return IsSameModel(own, model); };
  return std::ranges::any_of(declared, is_it) || (listed && std::ranges::any_of(*listed, is_it));
}

void ModelRouter::SetListed(std::size_t upstream, std::vector<std::string> models) {
  upstreams_[upstream].listed = std::move(models);
}

std::vector<std::string> ModelRouter::Models(std::size_t upstream) const {
  std::vector<std::string> models = upstreams_[upstream].declared;
  if (!upstreams_[upstream].listed) return models;
  for (const std::string& model : *upstreams_[upstream].listed)
    if (std::ranges::find(models, model) == models.end()) models.push_back(model);
  return models;
}

Result<std::size_t> ModelRouter::Choose(std::string_view model) const {
  if (upstreams_.size() == 1 || model.empty()) return std::size_t{0};
  for (std::size_t i = 0; i < upstreams_.size(); ++i)
    if (upstreams_[i].Has(model)) return i;
  // An upstream that has not said what it serves may have the model.
  for (std::size_t i = 0; i < upstreams_.size(); ++i)
    if (!upstreams_[i].listed && upstreams_[i].declared.empty()) return i;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < upstreams_.size(); ++i)
    for (std::string& name : Models(i)) known.push_back(Printable(name));
  const bool many = known.size() > kMostModelsInMessage;
  if (many) known.resize(kMostModelsInMessage);
  return Error{ErrorCode::kNotFound,
               fmt::format("no upstream serves the model {}; there are {}{}", Quote(model),
                           fmt::join(known, ", "), many ? ", and more" : "")};
}

std::optional<std::vector<std::string>> ParseModelList(std::string_view body) {
  const auto json = ParseJson(body);
  if (!json.ok() || !json.value().is_object()) return std::nullopt;
  const auto data = json.value().find("data");
  if (data == json.value().end() || !data->is_array()) return std::nullopt;
  std::vector<std::string> models;
  for (const Json& entry : *data) {
    if (!entry.is_object()) continue;
    const auto id = GetField<std::string>(entry, "id");
    if (id.ok()) models.push_back(id.value());
  }
  return models;
}

Result<std::string> CombineModelLists(const std::vector<Result<Fetched>>& answers) {
  Json data = Json::array();
  std::set<std::string> seen;
  bool any = false;
  std::string why = "no upstream listed its models";
  for (const auto& answer : answers) {
    if (!answer.ok()) {
      why = answer.error().message;
      continue;
    }
    const auto json = ParseJson(answer.value().body);
    if (!ParseModelList(answer.value().body)) continue;
    any = true;
    for (const Json& entry : json.value()["data"]) {
      const auto id = entry.is_object() ? GetField<std::string>(entry, "id")
                                        : Result<std::string>(InvalidArgument("no object"));
      if (id.ok() && seen.insert(id.value()).second) data.push_back(entry);
    }
  }
  if (!any) return Error{ErrorCode::kUnavailable, why};
  return JsonText(Json{{"object", "list"}, {"data", std::move(data)}});
}

std::string ModelInBody(std::string_view body) {
  const auto json = ParseJson(body);
  if (!json.ok() || !json.value().is_object()) return {};
  const auto model = GetField<std::string>(json.value(), "model");
  return model.ok() ? model.value() : std::string();
}

std::optional<double> RunningRequestsInMetrics(std::string_view text) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t name_end = line.find_first_of("{ ");
    if (line.starts_with('#') || name_end == std::string_view::npos ||
        std::ranges::find(kRunningGauges, line.substr(0, name_end)) == kRunningGauges.end())
      continue;
    const std::size_t labels_end = line.rfind('}');
    std::string_view value =
        Trim(line.substr(labels_end == std::string_view::npos ? name_end : labels_end + 1));
    value = value.substr(0, value.find(' '));  // A time stamp may follow.
    if (const auto number = ParseDouble(value); number.ok()) sum = sum.value_or(0) + number.value();
  }
  return sum;
}

}  // namespace zeus::gateway

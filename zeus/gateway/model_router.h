#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/gateway/proxy.h"

namespace zeus::gateway {

// Decides which upstream gets a request, by the model that the request names. One owner.
class ModelRouter {
 public:
  struct Upstream {
    std::string name{};
    std::vector<std::string> models{};  // Declared on the command line; may be empty.
  };
  explicit ModelRouter(std::vector<Upstream> upstreams);

  // The upstream listed these models.
  void SetListed(std::size_t upstream, std::vector<std::string> models);

  // The upstream for a request with this model; empty: it names none. With one upstream it is
  // always that one. Returns kNotFound, naming the known models, when all upstreams have listed
  // theirs and none has this one.
  Result<std::size_t> Choose(std::string_view model) const;
  // The models of an upstream, as far as they are known.
  std::vector<std::string> Models(std::size_t upstream) const;

 private:
  struct Known {
    std::string name;
    std::vector<std::string> declared;
    std::optional<std::vector<std::string>> listed;

    bool Has(std::string_view model) const;
  };
  std::vector<Known> upstreams_{};
};

// The models in an answer to GET /v1/models: {"data": [{"id": ...}, ...]}. nullopt when it is none.
std::optional<std::vector<std::string>> ParseModelList(std::string_view body);

// The union of several such answers, in the order of the upstreams and without repetitions; entries
// keep all their fields. Answers that are missing or not understood are left out. Returns
// kUnavailable when there is none.
Result<std::string> CombineModelLists(const std::vector<Result<Fetched>>& answers);

// The value of "model" in a JSON body, empty when there is none.
std::string ModelInBody(std::string_view body);

// The number of running requests by an engine's own metrics (names of vLLM, SGLang, TGI and
// llama.cpp), in the text format of Prometheus. nullopt when it tells none.
std::optional<double> RunningRequestsInMetrics(std::string_view text);

}  // namespace zeus::gateway

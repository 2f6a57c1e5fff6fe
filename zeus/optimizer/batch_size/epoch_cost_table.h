#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/by_batch_size.h"

namespace zeus {

// What one epoch costs, by GPU model and batch size. The number of epochs to the target does not
// depend on the GPU, the cost of an epoch does and is quickly measured (Zeus §7): that is how one
// GPU model profits from what was learned on another. One owner.
class EpochCostTable {
 public:
  // The first measurement counts: costs that are kept in units of an epoch's cost would shift if it
  // moved. Costs that are not positive and finite are no measurement.
  void LearnOnce(std::string_view gpu_model, int batch_size, Joules cost);
  // The mean of the measurements counts, later ones at least one eighth.
  void Refine(std::string_view gpu_model, int batch_size, Joules cost);

  std::optional<Joules> Profiled(std::string_view gpu_model, int batch_size) const;

  // Translated from a model on which this batch size was measured: by the ratio of both models at
  // the nearest batch size (in octaves) that both know, or as it stands when there is none.
  std::optional<Joules> Translated(std::string_view gpu_model, int batch_size) const;

  // Profiled, else translated, else that of the nearest batch size known.
  std::optional<Joules> Estimate(std::string_view gpu_model, int batch_size) const;

  // Grows whenever an answer above may have become another one.
  std::int64_t changes() const { return changes_; }

  // The model that was measured first; empty when there is none.
  std::string_view home() const;

  Json Save() const;
  static Result<EpochCostTable> Restore(const Json& state);

 private:
  struct Measured {
    Joules cost{};
    int count = 0;
  };
  struct Model {
    std::string name;
    ByBatchSize<Measured> costs{};
  };

  const Model* Find(std::string_view gpu_model) const;
  Measured* Slot(std::string_view gpu_model, int batch_size, Joules cost);

  std::vector<Model> models_;  // In the order of their first measurement.
  std::int64_t changes_ = 0;
};

}  // namespace zeus

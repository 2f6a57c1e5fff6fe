#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

// The cost of one epoch, by GPU model and batch size. The number of epochs to the target does not
// depend on the GPU model; the cost of an epoch does, and is measured quickly (Zeus §7). That is
// how one GPU model profits from what was learned on another. One owner.
class EpochCostTable {
 public:
  // Keeps the first measurement and ignores later ones: costs that are kept in units of the epoch
  // cost would shift if it moved. Here and below, costs that are not positive and finite are
  // ignored.
  void LearnOnce(std::string_view gpu_model, int batch_size, Joules cost);
  // Keeps the mean of the measurements, in which the newest one weighs at least one eighth.
  void Refine(std::string_view gpu_model, int batch_size, Joules cost);

  // Learns what an epoch cost in other jobs: it is never profiled, but translated like the cost on
  // another GPU model, and preferred to those.
  void LearnFromOtherJobs(std::string_view gpu_model, int batch_size, Joules cost);

  // Returns what an epoch cost in other jobs, on this GPU model.
  std::optional<Joules> CostInOtherJobs(std::string_view gpu_model, int batch_size) const;
  void ForgetOtherJobs();

  std::optional<Joules> Profiled(std::string_view gpu_model, int batch_size) const;

  // Returns the cost on another model on which this batch size was measured, scaled by the ratio of
  // both models at the nearest batch size (in octaves) that was measured on both; unscaled if there
  // is none.
  std::optional<Joules> Translated(std::string_view gpu_model, int batch_size) const;

  // Returns the profiled cost, else the translated one, else that of the nearest measured batch
  // size; nullopt if nothing was measured.
  std::optional<Joules> Estimate(std::string_view gpu_model, int batch_size) const;

  // Grows with every change, so that callers can cache what they derive from the table.
  std::int64_t changes() const { return changes_; }

  // The GPU model that was measured first; empty when nothing was measured.
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
  static std::optional<Joules> TranslatedFrom(const Model& other, const Model* asked,
                                              int batch_size);
  // Finds or adds the entry; nullptr if the cost is not positive and finite.
  Measured* Slot(std::string_view gpu_model, int batch_size, Joules cost);

  std::vector<Model> models_;  // In the order of their first measurement.
  std::int64_t changes_ = 0;
};

}  // namespace zeus

#include "zeus/replay/cluster/workload_names.h"

namespace zeus::replay {

std::optional<std::string_view> WorkloadOf(std::string_view dataset) {
  for (const WorkloadName& name : kWorkloadNames)
    if (name.dataset == dataset || name.label == dataset) return name.label;
  return std::nullopt;
}

std::string_view DatasetOf(std::string_view label) {
  for (const WorkloadName& name : kWorkloadNames)
    if (name.label == label) return name.dataset;
  return label;
}

std::string_view TitleOf(std::string_view label) {
  for (const WorkloadName& name : kWorkloadNames)
    if (name.label == label) return name.title;
  return label;
}

}  // namespace zeus::replay

#include "zeus/device/node.h"

#include <cstdlib>
#include <iterator>
#include <utility>

#include "zeus/device/amd/amd_discovery.h"
#include "zeus/device/nvml/nvml_discovery.h"
#include "zeus/device/rapl/cpu_discovery.h"
#include "zeus/device/soc/soc_discovery.h"

namespace zeus {
namespace {

template <class T>
void MoveAppend(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

Surroundings RealSurroundings(Clock& clock) {
  return {.clock = clock, .environment = [](const std::string& name) {
            const char* value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          }};
}

Result<Node> Discover(const Surroundings& surroundings) {
  Node node;
  Surroundings here = surroundings;
  for (const auto discover : {DiscoverNvidia, DiscoverAmd, DiscoverSoc, DiscoverCpus}) {
    here.first_gpu_index =
        surroundings.first_gpu_index + node.lost_gpus + static_cast<unsigned>(node.gpus.size());
    ZEUS_TRY(Findings found, discover(here));
    MoveAppend(node.gpus, std::move(found.gpus));
    MoveAppend(node.cpus, std::move(found.cpus));
    MoveAppend(node.rails, std::move(found.rails));
    MoveAppend(node.absent, std::move(found.absent));
    node.lost_gpus += found.lost_gpus;
  }
  return node;
}

}  // namespace zeus

// Bodies with which schedulers register jobs. What was accepted is within the bounds, and is the
// same when it is written and read again, as over a restart of the daemon.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/daemon/cgroup.h"
#include "zeus/daemon/job_spec.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = zeus::ParseJson({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  const auto spec = zeus::daemon::ParseJobSpec(json.value());
  if (!spec.ok()) return 0;
  Require(!spec.value().id.empty() && spec.value().pids.size() <= 1024);
  // No job contains every process of the machine.
  Require(!zeus::daemon::IsInCgroup("/", spec.value().cgroup));
  const auto again = zeus::daemon::ParseJobSpec(ToJson(spec.value()));
  Require(again.ok() && again.value() == spec.value());
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/wire/node/lease.h"

// Parses bodies of the daemon's clients and of the daemon. A message that was accepted is written
// and read again, and must then be the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = zeus::ParseJson({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  if (const auto spec = zeus::wire::ParseLeaseSpec(json.value()); spec.ok()) {
    const auto again = zeus::wire::ParseLeaseSpec(ToJson(spec.value()));
    if (!again.ok() || again.value() != spec.value()) __builtin_trap();
  }
  if (const auto view = zeus::wire::ParseLeaseView(json.value()); view.ok()) {
    const auto again = zeus::wire::ParseLeaseView(ToJson(view.value()));
    if (!again.ok() || again.value() != view.value()) __builtin_trap();
  }
  return 0;
}

// Parses configurations of the daemon. A file that is accepted must not let anybody in by accident:
// somebody over TCP without a token, or root of a container, is no administrator unless a rule says
// so by name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "zeus/daemon/access_rules.h"

namespace {

using zeus::daemon::Caller;

void Require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = zeus::daemon::ParseConfiguration(text, "zeusd.toml");
  if (!parsed.ok()) {
    Require(parsed.error().message.starts_with("zeusd.toml:"));
    return 0;
  }
  const zeus::daemon::Configuration& configuration = parsed.value();
  const Caller stranger{.transport = Caller::Transport::kTcp, .subject = "stranger"};
  bool named = false;
  for (const auto& rule : configuration.rules)
    for (const std::string& subject : rule.match.subjects) named = named || subject == "stranger";
  Require(named || GrantFor(configuration, stranger).scopes.empty());

  const Caller root{.subject = "uid:0", .uid = uid_t{0}};
  const auto grant = GrantFor(configuration, root);
  Require(grant.admin() && grant.all_devices && grant.leases <= 4096);
  for (const auto& [knob, bounds] : configuration.bounds)
    if (bounds.min_watts) Require(grant.bounds.at(knob).min_watts >= bounds.min_watts);
  return 0;
}

#include "zeus/colosseum/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::colosseum {

Result<std::array<std::string, 2>> DrawPair(const std::vector<std::string>& models,
                                            const std::string& preference, Random& random) {
  if (!preference.empty() && std::ranges::find(models, preference) == models.end())
    return Error{ErrorCode::kNotFound,
                 fmt::format("prefer: there is no model {} here: GET /zeus/models lists them",
                             Quote(preference))};
  if (models.size() < 2)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("a duel needs two models, and the gateway serves {}: give it a second "
                             "upstream",
                             models.size())};
  const std::size_t first =
      preference.empty()
          ? static_cast<std::size_t>(random.Below(models.size()))
          : static_cast<std::size_t>(std::ranges::find(models, preference) - models.begin());
  auto second = static_cast<std::size_t>(random.Below(models.size() - 1));
  if (second >= first) ++second;
  std::array<std::string, 2> pair = {models[first], models[second]};
  if (random.Below(2) == 1) std::swap(pair[0], pair[1]);
  return pair;
}

std::string MakeDuelId(const Entropy& entropy) {
  // Each number of an Entropy has at least 53 random bits.
  constexpr std::uint64_t kBits = (std::uint64_t{1} << 44) - 1;
  return fmt::format("{:011x}{:011x}{:011x}", entropy() & kBits, entropy() & kBits,
                     entropy() & kBits);
}

}  // namespace zeus::colosseum

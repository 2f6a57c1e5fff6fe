#include "zeus/daemon/grant.h"

#include <algorithm>

namespace zeus::daemon {
namespace {

template <class T, class Choose>
std::optional<T> Stricter(const std::optional<T>& a, const std::optional<T>& b, Choose choose) {
  if (!a || !b) return a ? a : b;
  return choose(*a, *b);
}

template <class T>
std::optional<T> Higher(const std::optional<T>& a, const std::optional<T>& b) {
  return Stricter(a, b, [](T one, T other) { return std::max(one, other); });
}

template <class T>
std::optional<T> Lower(const std::optional<T>& a, const std::optional<T>& b) {
  return Stricter(a, b, [](T one, T other) { return std::min(one, other); });
}

}  // namespace

KnobBounds KnobBounds::And(const KnobBounds& other) const {
  return {.min_watts = Higher(min_watts, other.min_watts),
          .max_share = Lower(max_share, other.max_share),
          .min_hertz = Higher(min_hertz, other.min_hertz)};
}

}  // namespace zeus::daemon

#include "zeus/optimizer/collective.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace zeus {
namespace {

// A Collective exchanges doubles only, so text is packed into them. A double holds integers of six
// bytes exactly, and a sum of one such integer and zeros is exact, too.
constexpr std::size_t kBytesPerNumber = 6;

std::size_t NumbersFor(std::size_t bytes) {
  return (bytes + kBytesPerNumber - 1) / kBytesPerNumber;
}

std::vector<double> ToNumbers(const std::string& text) {
  std::vector<double> numbers(NumbersFor(text.size()), 0.0);
  for (std::size_t i = text.size(); i-- > 0;) {
    double& number = numbers[i / kBytesPerNumber];
    number = number * 256 + static_cast<unsigned char>(text[i]);
  }
  return numbers;
}

std::string ToText(std::span<const double> numbers, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    auto number = static_cast<std::uint64_t>(numbers[i / kBytesPerNumber]);
    text[i] = static_cast<char>(number >> (8 * (i % kBytesPerNumber)) & 0xff);
  }
  return text;
}

}  // namespace

Result<bool> Agreement::AtLeader(bool holds) {
  if (alone()) return holds;
  double value = holds ? 1.0 : 0.0;
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast({&value, 1}, 0));
  return value != 0.0;
}

Result<std::vector<double>> Agreement::FromLeader(std::vector<double> numbers) {
  if (alone()) return numbers;
  auto count = static_cast<double>(numbers.size());
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast({&count, 1}, 0));
  numbers.resize(static_cast<std::size_t>(count));
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast(numbers, 0));
  return numbers;
}

Result<std::string> Agreement::TextFromLeader(std::string text) {
  if (alone()) return text;
  auto size = static_cast<double>(text.size());
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast({&size, 1}, 0));
  text.resize(static_cast<std::size_t>(size));
  std::vector<double> numbers = ToNumbers(text);
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast(numbers, 0));
  return ToText(numbers, text.size());
}

Result<std::vector<std::string>> Agreement::Gather(const std::string& text) {
  const auto rank = static_cast<std::size_t>(collective_.rank());
  std::vector<double> sizes(static_cast<std::size_t>(collective_.size()), 0.0);
  sizes[rank] = static_cast<double>(text.size());
  ZEUS_RETURN_IF_ERROR(collective_.Sum(sizes));

  std::vector<std::size_t> places{0};
  for (const double size : sizes)
    places.push_back(places.back() + NumbersFor(static_cast<std::size_t>(size)));
  std::vector<double> numbers(places.back(), 0.0);
  std::ranges::copy(ToNumbers(text), numbers.begin() + static_cast<std::ptrdiff_t>(places[rank]));
  ZEUS_RETURN_IF_ERROR(collective_.Sum(numbers));

  std::vector<std::string> texts;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    texts.push_back(ToText(std::span(numbers).subspan(places[i], places[i + 1] - places[i]),
                           static_cast<std::size_t>(sizes[i])));
  return texts;
}

Status Agreement::Together(Status status) {
  if (alone()) return status;
  double failed = status.ok() ? 0.0 : 1.0;
  ZEUS_RETURN_IF_ERROR(collective_.Max({&failed, 1}));
  if (!status.ok() || failed == 0.0) return status;
  return Error{ErrorCode::kUnavailable, "another rank of this job failed: its log tells why"};
}

}  // namespace zeus

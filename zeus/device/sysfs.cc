#include "zeus/device/sysfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <string>
#include <system_error>
#include <utility>

#include "zeus/device/privilege.h"

namespace zeus {

std::vector<std::filesystem::path> ListEntries(const std::filesystem::path& directory,
                                               std::string_view prefix) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) entries.push_back(entry->path());
  }
  std::ranges::sort(entries, [](const auto& a, const auto& b) {
    const std::string left = a.filename().string();
    const std::string right = b.filename().string();
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return entries;
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return std::isprint(static_cast<unsigned char>(c)) != 0; });
}

namespace {

// Hardware keeps limits in steps of 1/8 W or coarser; a value further away was not taken.
constexpr Watts kStep(1.0);

constexpr Watts kLowest(1.0);

}  // namespace

Result<SysfsPowerLimit> SysfsPowerLimit::Open(Attributes attributes, Writer write) {
  SysfsPowerLimit limit(std::move(attributes), std::move(write));
  ZEUS_TRY(const Watts stored, limit.Stored());
  const auto rated = ReadUnsigned(limit.attributes_.rated);
  limit.highest_ = stored;
  if (rated.ok())
    limit.highest_ = std::max(stored, Watts::FromMicro(static_cast<double>(rated.value())));
  if (limit.highest_ < kLowest) {
    return Error{ErrorCode::kNotSupported, limit.attributes_.limit.string() +
                                               ": no limit is set and the rated power is unknown"};
  }
  limit.found_ = stored == Watts(0) ? limit.highest_ : stored;
  return limit;
}

Result<PowerLimit> SysfsPowerLimit::Current() const {
  ZEUS_TRY(const Watts stored, Stored());
  const Watts highest = std::max(highest_, stored);
  const Watts obeyed = stored == Watts(0) || !Enabled() ? highest : stored;
  return PowerLimit{.range = {.min = kLowest, .max = highest},
                    .default_limit = found_,
                    .requested = obeyed,
                    .enforced = obeyed};
}

Result<PowerLimit> SysfsPowerLimit::Set(Watts limit) const {
  if (!(limit >= kLowest && limit <= highest_)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("power limit {} W is outside 0 to {} W",
                                                          limit.value(), highest_.value())};
  }
  if (!Enabled()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the limit would not be obeyed: enable it with: echo 1 | sudo tee {}",
                             attributes_.enabled.string())};
  }
  auto written = write_(attributes_.limit, fmt::format("{}", std::llround(limit.ToMicro())));
  if (!written.ok()) return WriteError(std::move(written).error());

  ZEUS_TRY(PowerLimit now, Current());
  if (now.enforced > limit + kStep) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: asked for {} W, but {} W is in force", attributes_.limit.string(),
                             limit.value(), now.enforced.value())};
  }
  now.requested = limit;
  return now;
}

Result<Watts> SysfsPowerLimit::Stored() const {
  ZEUS_TRY(const std::uint64_t microwatts, ReadUnsigned(attributes_.limit));
  return Watts::FromMicro(static_cast<double>(microwatts));
}

bool SysfsPowerLimit::Enabled() const {
  if (attributes_.enabled.empty()) return true;
  const auto enabled = ReadUnsigned(attributes_.enabled);
  return !enabled.ok() || enabled.value() != 0;
}

Error SysfsPowerLimit::WriteError(Error error) const {
  // powercap answers ENODATA whatever went wrong below it; in practice that is the lock bit which
  // firmware sets in the limit register (linux: drivers/powercap/intel_rapl_common.c).
  if (error.message == FileError(attributes_.limit, ENODATA).message) {
    return {ErrorCode::kNotSupported, attributes_.limit.string() +
                                          ": locked by firmware: unlock the power limit in the "
                                          "BIOS setup"};
  }
  if (error.code == ErrorCode::kPermissionDenied)
    error.message += fmt::format(": {}", RefusalAdvice());
  return error;
}

}  // namespace zeus

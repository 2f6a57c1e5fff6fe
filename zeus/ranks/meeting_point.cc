#include "zeus/ranks/meeting_point.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAddress = "ZEUS_RANKS_ADDRESS";
constexpr const char* kToken = "ZEUS_RANKS_TOKEN";
constexpr const char* kFolder = "ZEUS_RANKS_DIR";

std::string NewToken() {
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:014x}", SystemEntropy());
  return token;
}

std::string AddressText(const ::sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    const auto& four = reinterpret_cast<const ::sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    const auto& six = reinterpret_cast<const ::sockaddr_in6&>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr))
      ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

// Addresses under which other machines may reach this one.
std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ::ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    if (std::string text = AddressText(*one->ifa_addr); !text.empty())
      addresses.push_back(std::move(text));
  }
  ::freeifaddrs(list);
  return addresses;
}

Result<MeetingAddress> ParseAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const Error wrong = InvalidArgument(fmt::format(
      "{} is {}: it must be host:port, with a port that is free on the machine of rank 0", kAddress,
      Quote(text)));
  if (colon == std::string::npos || colon == 0) return wrong;
  const auto port = ParseUnsigned(text.substr(colon + 1));
  if (!port.ok() || port.value() == 0 || port.value() > std::numeric_limits<std::uint16_t>::max())
    return wrong;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return MeetingAddress{.hosts = {std::move(host)},
                        .port = static_cast<std::uint16_t>(port.value())};
}

Result<MeetingAddress> AddressFromJson(const Json& json) {
  if (!json.is_object()) return InvalidArgument("no object");
  MeetingAddress address;
  ZEUS_TRY(address.hosts, GetField<std::vector<std::string>>(json, "hosts"));
  ZEUS_TRY(address.port, GetField<std::uint16_t>(json, "port"));
  ZEUS_TRY(address.token, GetField<std::string>(json, "token"));
  ZEUS_TRY(const auto boot, GetField<std::string>(json, "boot"));
  // Another machine's loopback address would be a stranger's port on this one.
  if (!boot.empty() && boot == CurrentBootTime().boot)
    address.hosts.insert(address.hosts.begin(), "127.0.0.1");
  return address;
}

}  // namespace

Result<MeetingPoint> MeetingPoint::In(fs::path folder, const RankPlace& place) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("ranks cannot meet in {}: {}", folder.string(), failed.message())};
  MeetingPoint point;
  point.folder_ = std::move(folder);
  point.name_ = fmt::format("{:016x}", LaunchNumber(place));
  return point;
}

Result<MeetingPoint> MeetingPoint::Of(const RankPlace& place, const Environment& environment) {
  if (const auto address = environment(kAddress); address && !address->empty()) {
    MeetingPoint point;
    ZEUS_TRY(point.address_, ParseAddress(*address));
    point.address_->token = environment(kToken).value_or(place.job);
    return point;
  }
  if (const auto folder = environment(kFolder); folder && !folder->empty())
    return In(*folder, place);
  const auto folder = UserDataFolder(environment, "ranks");
  if (!folder)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("ranks have no place to meet: set {} to a folder that all nodes see, "
                             "or {} to host:port of rank 0",
                             kFolder, kAddress)};
  return In(*folder, place);
}

fs::path MeetingPoint::FileOf(int term) const {
  return folder_ / fmt::format("{}.{}", name_, term);
}

Result<std::string> MeetingPoint::Claim(int term, std::uint16_t port) {
  if (address_) return address_->token;
  const Json content = {{"schema", "zeus.ranks/1"},
                        {"hosts", OwnAddresses()},
                        {"port", port},
                        {"boot", CurrentBootTime().boot},
                        {"token", NewToken()}};
  // A link appears with its content, and only where there is none.
  const fs::path file = FileOf(term);
  const fs::path draft = file.string() + fmt::format(".{:x}", SystemEntropy());
  ZEUS_RETURN_IF_ERROR(ReplaceFile(draft, JsonText(content) + "\n", Readers::kOwnerOnly,
                                   Durability::kSurvivesProcess));
  const int linked = ::link(draft.c_str(), file.c_str());
  const int reason = errno;
  ::unlink(draft.c_str());
  if (linked == 0) return content["token"].get<std::string>();
  if (reason == EEXIST)
    return Error{ErrorCode::kConflict, fmt::format("{} is there already", file.string())};
  return FileError(file, reason);
}

std::string MeetingPoint::Where() const {
  if (address_)
    return fmt::format("at {}:{} ({})", address_->hosts.front(), address_->port, kAddress);
  return fmt::format("in the folder {}, which must be the same on all nodes ({} names another)",
                     folder_.string(), kFolder);
}

std::optional<MeetingAddress> MeetingPoint::Find(int term) const {
  if (address_) return term == 0 ? address_ : std::nullopt;
  const auto text = ReadSmallFile(FileOf(term));
  if (!text.ok()) return std::nullopt;
  const auto json = ParseJson(text.value());
  if (!json.ok()) return std::nullopt;
  auto address = AddressFromJson(json.value());
  if (!address.ok()) return std::nullopt;
  return std::move(address).value();
}

void MeetingPoint::Dissolve(int term) const {
  if (!address_) ::unlink(FileOf(term).c_str());
}

}  // namespace zeus

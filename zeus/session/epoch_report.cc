#include "zeus/session/epoch_report.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

// An interval below this share of the mean epoch is not an epoch …
constexpr double kLeastShare = 0.05;
// … unless it lasts longer than this: the mean may contain a long compilation in the first epoch.
constexpr Seconds kLongestRest{1.0};
// A reader that was not stopped looks more often than this.
constexpr Seconds kBlind{0.2};

template <class Unit>
Status ReadQuantity(const Json& json, const char* field, std::optional<Unit>& into) {
  ZEUS_TRY(const std::optional<double> number, GetOptionalField<double>(json, field));
  if (!number) return Ok();
  constexpr double kMost = 1e21;  // Beyond it a sum loses small summands.
  if (!std::isfinite(*number) || *number < 0 || *number > kMost)
    return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\" cannot be {}", field, *number)};
  into = Unit(*number);
  return Ok();
}

Status ReadEpoch(const Json& json, EpochReport& report) {
  ZEUS_TRY(const std::optional<double> number, GetOptionalField<double>(json, "epoch"));
  if (!number) return Ok();
  constexpr double kMostEpochs = 1e9;
  if (!(*number >= 1 && *number <= kMostEpochs) || *number != std::floor(*number))
    return Error{ErrorCode::kInvalidArgument,
                 "\"epoch\" counts the completed epochs: a whole number from 1"};
  report.epoch = static_cast<int>(*number);
  return Ok();
}

}  // namespace

Result<EpochReport> ParseEpochReport(std::string_view line) {
  ZEUS_TRY(const Json json, ParseJson(line));
  if (!json.is_object())
    return Error{ErrorCode::kInvalidArgument, R"(a report is an object as {"metric": 0.93})"};
  EpochReport report;
  const auto metric = json.find("metric");
  if (metric != json.end() && metric->is_null()) {
    report.metric = std::numeric_limits<double>::quiet_NaN();
  } else {
    ZEUS_TRY(report.metric, GetField<double>(json, "metric"));
  }
  ZEUS_RETURN_IF_ERROR(ReadEpoch(json, report));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "time_seconds", report.time));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "energy_joules", report.energy));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "power_limit_watts", report.power_limit));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "epoch_time_seconds", report.epoch_time));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "epoch_energy_joules", report.epoch_energy));
  return report;
}

EpochTiming EpochArrivals::Judge(std::size_t epochs, TimePoint now, Seconds blind) {
  const std::size_t before = std::exchange(epochs_, epochs_ + epochs);
  const Seconds lasted = now - std::exchange(last_, now);
  const Seconds mean = Seconds(now - begun_) / static_cast<double>(epochs_);
  if (before > 0 && lasted < kLeastShare * mean && lasted < kLongestRest)
    return EpochTiming::kTooSoon;
  if (epochs > 1 || (blind > kBlind && blind > kLeastShare * mean)) return EpochTiming::kLumped;
  return EpochTiming::kKnown;
}

namespace {

constexpr std::size_t kLargestReport = 64 * 1024;
constexpr std::size_t kMostConnections = 64;
constexpr int kBacklog = 16;

Error CannotListen(const std::filesystem::path& path) {
  return {ErrorCode::kUnavailable, fmt::format("cannot listen for reports at {}: {}", path.string(),
                                               std::generic_category().message(errno))};
}

bool IsHttp(std::string_view received) {
  for (const std::string_view method : {"POST ", "PUT ", "GET ", "HEAD ", "DELETE "})
    if (received.starts_with(method)) return true;
  return false;
}

bool SendWhole(int socket, std::string_view text) {
  return ::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

// Appends what has arrived. Returns true when nothing more will come.
bool Receive(int socket, std::string& received) {
  std::array<char, 4096> piece{};
  ssize_t got = 0;
  while ((got = ::recv(socket, piece.data(), piece.size(), 0)) > 0 &&
         received.size() < kLargestReport)
    received.append(piece.data(), static_cast<std::size_t>(got));
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

struct HttpRequest {
  std::string body;
  std::size_t length;  // Bytes of head and body.
};

// Returns nullopt until the request is complete.
std::optional<HttpRequest> ParseHttp(std::string_view received) {
  const std::size_t head = received.find("\r\n\r\n");
  if (head == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kName = "content-length:";
  const std::string headers = LowerCase(received.substr(0, head));
  std::size_t length = 0;
  if (const std::size_t at = headers.find(kName); at != std::string::npos) {
    const std::size_t end = headers.find('\r', at);
    const auto number = ParseUnsigned(
        Trim(std::string_view(headers).substr(at + kName.size(), end - at - kName.size())));
    length = number.ok() ? number.value() : kLargestReport;
  }
  const std::size_t begin = head + 4;
  if (received.size() - begin < length) return std::nullopt;
  return HttpRequest{std::string(received.substr(begin, length)), begin + length};
}

bool AnswerHttp(int socket, const Json& answer) {
  const std::string body = JsonText(answer);
  return SendWhole(
      socket,
      fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}"
                  "\r\n\r\n{}",
                  answer.contains("error") ? "400 Bad Request" : "200 OK", body.size(), body));
}

}  // namespace

Result<std::unique_ptr<ReportSocket>> ReportSocket::Open() {
  // Socket names are limited to 107 bytes: the folder that TMPDIR names might not fit.
  std::string name = "/tmp/zeus-train-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return CannotListen(name);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  std::unique_ptr<ReportSocket> socket(new ReportSocket(name, listener));
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket->path().c_str(), sizeof address.sun_path - 1);
  if (listener < 0 ||
      ::bind(listener, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, kBacklog) != 0)
    return CannotListen(socket->path());
  return socket;
}

ReportSocket::~ReportSocket() {
  std::error_code ignored;
  std::filesystem::remove(path(), ignored);
  std::filesystem::remove(folder_, ignored);
}

std::vector<::pollfd> ReportSocket::WaitFor() const {
  std::vector<::pollfd> events{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const Connection& connection : connections_)
    events.push_back({.fd = connection.socket.get(), .events = POLLIN, .revents = 0});
  return events;
}

void ReportSocket::Accept() {
  while (connections_.size() < kMostConnections) {
    const int accepted = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0) return;
    connections_.emplace_back(accepted);
  }
}

void ReportSocket::Serve(const Handler& handler) {
  Accept();
  connections_.remove_if(
      [&handler](Connection& connection) { return !Serve(connection, handler); });
}

bool ReportSocket::Serve(Connection& connection, const Handler& handler) {
  std::string& received = connection.received;
  const bool ended = Receive(connection.socket.get(), received);
  while (!received.empty()) {
    if (IsHttp(received)) {
      const auto request = ParseHttp(received);
      if (!request) break;
      received.erase(0, request->length);
      if (!AnswerHttp(connection.socket.get(), handler(request->body))) return false;
      continue;
    }
    const std::size_t end = received.find('\n');
    if (end == std::string::npos && !ended) break;
    const std::string line(Trim(std::string_view(received).substr(0, end)));
    received.erase(0, end == std::string::npos ? end : end + 1);
    // The sender may have gone; then the answer is lost.
    if (!line.empty()) (void)SendWhole(connection.socket.get(), JsonText(handler(line)) + "\n");
  }
  return !ended && received.size() < kLargestReport;
}

}  // namespace zeus

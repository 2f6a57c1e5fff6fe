#include "zeus/gateway/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "zeus/base/text.h"

namespace zeus::gateway {
namespace {

constexpr std::array<std::string_view, 7> kHopByHop = {
    "connection", "keep-alive",        "proxy-connection", "te",
    "trailer",    "transfer-encoding", "upgrade"};

char LowerLetter(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool IsTokenCharacter(char letter) {
  if ((letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
      (letter >= 'A' && letter <= 'Z'))
    return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(letter) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsTokenCharacter);
}

// Calls `visit` with each trimmed element of a comma-separated list until it returns true. Returns
// whether it did.
template <class Visit>
bool AnyListElement(std::string_view list, Visit&& visit) {
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view element = Trim(list.substr(0, comma));
    if (!element.empty() && visit(element)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

// Removes and returns the first line of `text`, without its end.
std::string_view NextHeadLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Returns the minor version of "HTTP/1.x", or nullopt.
std::optional<int> ParseHttpVersion(std::string_view text) {
  if (text.size() != 8 || !text.starts_with("HTTP/1.") || text[7] < '0' || text[7] > '9')
    return std::nullopt;
  return text[7] - '0';
}

bool HoldsControlCharacters(std::string_view value) {
  return std::ranges::any_of(value, [](char letter) {
    return (static_cast<unsigned char>(letter) < 0x20 && letter != '\t') || letter == 0x7f;
  });
}

Status ParseFields(std::string_view text, const HeadLimits& limits, HeaderFields& fields) {
  while (!text.empty()) {
    const std::string_view line = NextHeadLine(text);
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t')
      return InvalidArgument("a field of the head is continued on a second line");
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !IsToken(name))
      return InvalidArgument(fmt::format("{} is no field of a head", Quote(line)));
    const std::string_view value = Trim(line.substr(colon + 1));
    if (HoldsControlCharacters(value))
      return InvalidArgument(fmt::format("the field {} holds control characters", Quote(name)));
    if (fields.all().size() == limits.fields)
      return InvalidArgument(fmt::format("the head has more than {} fields", limits.fields));
    fields.Add(name, value);
  }
  return Ok();
}

// The length by Content-Length: nullopt without the field.
Result<std::optional<std::uint64_t>> ContentLength(const HeaderFields& fields) {
  std::optional<std::uint64_t> length;
  for (const auto& field : fields.all()) {
    if (!EqualWithoutCase(field.name, "content-length")) continue;
    std::optional<Error> wrong;
    AnyListElement(field.value, [&](std::string_view element) {
      const bool digits = std::ranges::all_of(element, [](char c) { return c >= '0' && c <= '9'; });
      const auto value = ParseUnsigned(element);
      if (!digits || !value.ok() || (length && *length != value.value())) {
        wrong = InvalidArgument(
            fmt::format("the Content-Length {} is not one number", Quote(field.value)));
        return true;
      }
      length = value.value();
      return false;
    });
    if (wrong) return *wrong;
    if (!length) return InvalidArgument("the Content-Length is empty");
  }
  return length;
}

// Whether the message is chunked.
Result<bool> IsChunked(const HeaderFields& fields) {
  bool chunked = false;
  bool other = false;
  for (const auto& field : fields.all()) {
    if (!EqualWithoutCase(field.name, "transfer-encoding")) continue;
    AnyListElement(field.value, [&](std::string_view coding) {
      other = other || chunked || !EqualWithoutCase(coding, "chunked");
      chunked = EqualWithoutCase(coding, "chunked");
      return false;
    });
  }
  if (other)
    return Error{ErrorCode::kNotSupported, "only the transfer coding \"chunked\" is supported"};
  return chunked;
}

bool KeepsByVersion(int minor_version, const HeaderFields& fields) {
  if (fields.HasToken("connection", "close")) return false;
  return minor_version >= 1 || fields.HasToken("connection", "keep-alive");
}

}  // namespace

bool EqualWithoutCase(std::string_view one, std::string_view other) {
  return one.size() == other.size() &&
         std::equal(one.begin(), one.end(), other.begin(),
                    [](char a, char b) { return LowerLetter(a) == LowerLetter(b); });
}

std::string_view PathOfTarget(std::string_view target) {
  return target.substr(0, target.find_first_of("?#"));
}

void HeaderFields::Add(std::string_view name, std::string_view value) {
  fields_.push_back({.name = std::string(name), .value = std::string(value)});
}

void HeaderFields::Remove(std::string_view name) {
  std::erase_if(fields_, [name](const Field& field) { return EqualWithoutCase(field.name, name); });
}

void HeaderFields::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

const std::string* HeaderFields::Find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      fields_, [name](const Field& field) { return EqualWithoutCase(field.name, name); });
  return found == fields_.end() ? nullptr : &found->value;
}

std::string_view HeaderFields::Get(std::string_view name) const {
  const std::string* value = Find(name);
  return value == nullptr ? std::string_view() : std::string_view(*value);
}

bool HeaderFields::HasToken(std::string_view name, std::string_view token) const {
  return std::ranges::any_of(fields_, [&](const Field& field) {
    return EqualWithoutCase(field.name, name) &&
           AnyListElement(field.value, [token](std::string_view element) {
             // TE and Transfer-Encoding have parameters: "trailers;q=0.5".
             return EqualWithoutCase(Trim(element.substr(0, element.find(';'))), token);
           });
  });
}

void HeaderFields::RemoveHopByHop() {
  std::vector<std::string> named;
  for (const Field& field : fields_)
    if (EqualWithoutCase(field.name, "connection"))
      AnyListElement(field.value, [&named](std::string_view element) {
        named.emplace_back(element);
        return false;
      });
  std::erase_if(fields_, [&named](const Field& field) {
    const auto is_it = [&field](std::string_view name) {
      return EqualWithoutCase(field.name, name);
    };
    return std::ranges::any_of(kHopByHop, is_it) || std::ranges::any_of(named, is_it);
  });
}

void HeaderFields::AppendTo(std::string& out) const {
  for (const Field& field : fields_)
    out.append(field.name).append(": ").append(field.value).append("\r\n");
}

bool RequestHead::KeepsConnection() const { return KeepsByVersion(minor_version, fields); }

Result<BodyFraming> RequestHead::Framing() const {
  ZEUS_TRY(const bool chunked, IsChunked(fields));
  ZEUS_TRY(const std::optional<std::uint64_t> length, ContentLength(fields));
  if (chunked && (length || minor_version == 0))
    return InvalidArgument("the request is chunked, which its other fields contradict");
  if (chunked) return BodyFraming{.kind = BodyFraming::Kind::kChunked};
  if (length && *length > 0)
    return BodyFraming{.kind = BodyFraming::Kind::kLength, .length = *length};
  return BodyFraming{};
}

bool ResponseHead::KeepsConnection() const { return KeepsByVersion(minor_version, fields); }

Result<BodyFraming> ResponseHead::Framing(std::string_view method) const {
  if (method == "HEAD" || status == 204 || status == 304 || status < 200) return BodyFraming{};
  ZEUS_TRY(const bool chunked, IsChunked(fields));
  // RFC 9112, 6.3: a transfer coding overrides a length.
  if (chunked) return BodyFraming{.kind = BodyFraming::Kind::kChunked};
  ZEUS_TRY(const std::optional<std::uint64_t> length, ContentLength(fields));
  if (!length) return BodyFraming{.kind = BodyFraming::Kind::kUntilClose};
  if (*length == 0) return BodyFraming{};
  return BodyFraming{.kind = BodyFraming::Kind::kLength, .length = *length};
}

std::optional<std::size_t> FindHeadEnd(std::string_view bytes, std::size_t searched) {
  // The end may have begun in the last bytes that were looked at before.
  std::size_t at = searched > 3 ? searched - 3 : 0;
  while ((at = bytes.find('\n', at)) != std::string_view::npos) {
    const std::string_view rest = bytes.substr(at + 1);
    if (rest.starts_with('\n')) return at + 2;
    if (rest.starts_with("\r\n")) return at + 3;
    ++at;
  }
  return std::nullopt;
}

Result<RequestHead> ParseRequestHead(std::string_view text, const HeadLimits& limits) {
  const std::string_view line = NextHeadLine(text);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  RequestHead head;
  if (first == std::string_view::npos || first == last)
    return InvalidArgument("this is no HTTP/1.1 request");
  const auto version = ParseHttpVersion(line.substr(last + 1));
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool visible = std::ranges::all_of(target, [](char letter) {
    return static_cast<unsigned char>(letter) > 0x20 && letter != 0x7f;
  });
  if (!version || !IsToken(line.substr(0, first)) || target.empty() || !visible)
    return InvalidArgument("this is no HTTP/1.1 request");
  head.method = line.substr(0, first);
  head.target = target;
  head.minor_version = *version;
  ZEUS_RETURN_IF_ERROR(ParseFields(text, limits, head.fields));
  return head;
}

Result<ResponseHead> ParseResponseHead(std::string_view text, const HeadLimits& limits) {
  const std::string_view line = NextHeadLine(text);
  const auto version = ParseHttpVersion(line.substr(0, line.find(' ')));
  ResponseHead head;
  if (!version || line.size() < 12)
    return InvalidArgument("the answer is no HTTP/1.1: " + Quote(line.substr(0, 40)));
  const auto status = ParseUnsigned(line.substr(9, 3));
  if (!status.ok() || status.value() < 100 || (line.size() > 12 && line[12] != ' '))
    return InvalidArgument("the answer has no status: " + Quote(line.substr(0, 40)));
  head.status = static_cast<int>(status.value());
  head.minor_version = *version;
  if (line.size() > 13) head.reason = line.substr(13);
  ZEUS_RETURN_IF_ERROR(ParseFields(text, limits, head.fields));
  return head;
}

}  // namespace zeus::gateway

#include "zeus/gateway/body_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "zeus/base/text.h"

namespace zeus::gateway {
namespace {

constexpr std::size_t kLongestLine = 8 * 1024;  // Bytes of a chunk's size line or of a trailer.
constexpr std::size_t kMostTrailerBytes = 16 * 1024;

}  // namespace

BodyDecoder::BodyDecoder(const BodyFraming& framing) {
  switch (framing.kind) {
    case BodyFraming::Kind::kNone:
      break;
    case BodyFraming::Kind::kLength:
      left_ = framing.length;
      state_ = left_ > 0 ? State::kBytes : State::kDone;
      break;
    case BodyFraming::Kind::kChunked:
      chunked_ = true;
      state_ = State::kChunkSize;
      break;
    case BodyFraming::Kind::kUntilClose:
      state_ = State::kUntilClose;
      break;
  }
}

Status BodyDecoder::Decode(std::string_view& in, std::string& out) {
  while (true) {
    ZEUS_TRY(const std::string_view run, Next(in));
    if (run.empty()) return Ok();
    out.append(run);
  }
}

Result<std::string_view> BodyDecoder::Next(std::string_view& in) {
  while (!in.empty()) {
    if (state_ == State::kDone) break;
    if (state_ == State::kUntilClose) return std::exchange(in, std::string_view());
    if (state_ == State::kBytes) {
      const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
      const std::string_view run = in.substr(0, size);
      in.remove_prefix(size);
      left_ -= size;
      if (left_ == 0) state_ = chunked_ ? State::kChunkEnd : State::kDone;
      return run;
    }
    ZEUS_RETURN_IF_ERROR(ConsumeLine(in));
  }
  return std::string_view();
}

Status BodyDecoder::ConsumeLine(std::string_view& in) {
  const std::size_t end = in.find('\n');
  line_.append(in.substr(0, end));
  in.remove_prefix(end == std::string_view::npos ? in.size() : end + 1);
  if (line_.size() > kLongestLine) return InvalidArgument("a line of the chunked body is too long");
  if (end == std::string_view::npos) return Ok();
  const std::string line = std::exchange(line_, {});
  std::string_view text = line;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (state_ == State::kChunkSize) return BeginChunk(text);
  if (state_ == State::kTrailers) return AddTrailer(text);
  if (!text.empty()) return InvalidArgument("a chunk of the body is longer than its size");
  state_ = State::kChunkSize;
  return Ok();
}

Status BodyDecoder::BeginChunk(std::string_view line) {
  const std::string_view digits = Trim(line.substr(0, line.find(';')));
  const bool hexadecimal = std::ranges::all_of(digits, [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f') ||
           (letter >= 'A' && letter <= 'F');
  });
  const auto size = ParseUnsigned(digits, 16);
  if (!hexadecimal || digits.size() > 15 || !size.ok())
    return InvalidArgument(fmt::format("{} is no size of a chunk", Quote(digits)));
  left_ = size.value();
  state_ = left_ > 0 ? State::kBytes : State::kTrailers;
  return Ok();
}

Status BodyDecoder::AddTrailer(std::string_view line) {
  if (line.empty()) {
    state_ = State::kDone;
    return Ok();
  }
  trailer_bytes_ += line.size();
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || trailer_bytes_ > kMostTrailerBytes)
    return InvalidArgument("the trailers of the chunked body are malformed or too long");
  trailers_.Add(line.substr(0, colon), Trim(line.substr(colon + 1)));
  return Ok();
}

void AppendChunk(std::string_view bytes, std::string& out) {
  if (bytes.empty()) return;
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out.append(bytes).append("\r\n");
}

void AppendLastChunk(const HeaderFields& trailers, std::string& out) {
  out += "0\r\n";
  trailers.AppendTo(out);
  out += "\r\n";
}

}  // namespace zeus::gateway

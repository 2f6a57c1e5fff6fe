#include "zeus/kubernetes/grpc_exchange.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::kubernetes {
namespace {

constexpr std::size_t kPrefix = 5;            // Each message begins with a flag and its length.
constexpr std::size_t kMostOutput = 1 << 20;  // Bytes that wait to be sent.
constexpr std::size_t kLongestHeader = 1024;  // As much of a value is kept.
constexpr int kUnimplemented = 12;            // https://grpc.io/docs/guides/status-codes/

Error Broken(std::string_view why) {
  return {ErrorCode::kUnavailable, fmt::format("the gRPC call failed: {}", why)};
}

std::string Framed(const std::string& message) {
  std::string framed(kPrefix, '\0');
  for (std::size_t i = 0; i < 4; ++i)
    framed[1 + i] = static_cast<char>((message.size() >> (8 * (3 - i))) & 0xffU);
  return framed + message;
}

nghttp2_nv Header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {.name = bytes(name),
          .value = bytes(value),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

// The callbacks of nghttp2 run inside TakeOutput() and Receive().
class GrpcExchange::Session {
 public:
  explicit Session(const Request& request)
      : limit_(request.limit), output_(Framed(request.message)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    failed_ = nghttp2_session_callbacks_new(&callbacks) != 0;
    if (failed_) return;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &Session::OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Session::OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Session::OnClose);
    failed_ = nghttp2_session_client_new(&session_, callbacks, this) != 0;
    nghttp2_session_callbacks_del(callbacks);
    failed_ = failed_ || !Submit(request.method);
  }
  ~Session() { nghttp2_session_del(session_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<std::string> TakeOutput() {
    if (failed_) return Broken("HTTP/2 could not begin");
    std::string output;
    for (;;) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size < 0) return Broken(nghttp2_strerror(static_cast<int>(size)));
      if (size == 0) return output;
      // A server that asks for answers without reading them.
      if (output.size() + static_cast<std::size_t>(size) > kMostOutput)
        return Broken("the server asks for too much at once");
      output.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
  }

  Status Receive(std::string_view bytes) {
    if (failed_) return Broken("HTTP/2 could not begin");
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (too_large_) return Broken(fmt::format("the answer is larger than {} bytes", limit_));
    if (taken < 0) return Broken(nghttp2_strerror(static_cast<int>(taken)));
    if (nghttp2_session_want_read(session_) == 0 && !closed_)
      return Broken("the server ended the connection");
    return Ok();
  }

  bool closed() const { return closed_; }

  Result<std::string> Answer() {
    if (status_ != "200")
      return Broken(fmt::format("the server answered with status {}", Quote(status_)));
    if (!grpc_status_)
      return Broken(reset_ == NGHTTP2_NO_ERROR
                        ? "the answer has no gRPC status"
                        : fmt::format("the server reset it ({})", nghttp2_http2_strerror(reset_)));
    const auto code = ParseUnsigned(*grpc_status_);
    if (!code.ok() || code.value() != 0) return ErrorOf(code.ok() ? code.value() : 2);
    return Message();
  }

 private:
  bool Submit(const std::string& method) {
    const std::array headers = {
        Header(":method", "POST"),   Header(":scheme", "http"),
        Header(":path", method),     Header(":authority", "localhost"),
        Header("te", "trailers"),    Header("content-type", "application/grpc"),
        Header("user-agent", "zeus")};
    const nghttp2_data_provider body{.source = {.ptr = this}, .read_callback = &Session::ReadBody};
    if (nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0) != 0) return false;
    stream_ =
        nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &body, nullptr);
    return stream_ >= 0;
  }

  Error ErrorOf(std::uint64_t code) const {
    const std::string text = grpc_message_.empty() ? "" : ": " + Printable(grpc_message_);
    return {code == kUnimplemented ? ErrorCode::kNotSupported : ErrorCode::kUnavailable,
            fmt::format("the server refused the gRPC call with code {}{}", code, text)};
  }

  Result<std::string> Message() {
    if (data_.size() < kPrefix) return Broken("the answer has no message");
    // Nothing was said of compression, so nobody may use it.
    if (data_[0] != '\0') return Broken("the answer is compressed");
    std::size_t size = 0;
    for (std::size_t i = 1; i < kPrefix; ++i)
      size = (size << 8U) | static_cast<std::uint8_t>(data_[i]);
    if (size != data_.size() - kPrefix)
      return Broken(
          fmt::format("the answer says {} bytes and has {}", size, data_.size() - kPrefix));
    data_.erase(0, kPrefix);
    return std::move(data_);
  }

  // NOLINTNEXTLINE(readability-function-size): nghttp2 asks for these parameters.
  static ssize_t ReadBody(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t length,
                          std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& self = *static_cast<Session*>(source->ptr);
    const std::size_t size = std::min(length, self.output_.size() - self.sent_);
    std::memcpy(buffer, self.output_.data() + self.sent_, size);
    self.sent_ += size;
    if (self.sent_ == self.output_.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  // NOLINTNEXTLINE(readability-function-size): nghttp2 asks for these parameters.
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_length, const std::uint8_t* value, std::size_t value_length,
                      std::uint8_t, void* user) {
    auto& self = *static_cast<Session*>(user);
    if (frame->hd.stream_id != self.stream_) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_length);
    const std::string text(reinterpret_cast<const char*>(value),
                           std::min(value_length, kLongestHeader));
    if (key == ":status") self.status_ = text;
    if (key == "grpc-status") self.grpc_status_ = text;
    if (key == "grpc-message") self.grpc_message_ = text;
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): nghttp2 asks for these parameters.
  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                    std::size_t length, void* user) {
    auto& self = *static_cast<Session*>(user);
    if (stream != self.stream_) return 0;
    self.too_large_ = self.data_.size() + length > self.limit_ + kPrefix;
    if (self.too_large_) return NGHTTP2_ERR_CALLBACK_FAILURE;
    self.data_.append(reinterpret_cast<const char*>(data), length);
    return 0;
  }

  static int OnClose(nghttp2_session*, std::int32_t stream, std::uint32_t code, void* user) {
    auto& self = *static_cast<Session*>(user);
    if (stream != self.stream_) return 0;
    self.closed_ = true;
    self.reset_ = code;
    return 0;
  }

  const std::size_t limit_;
  const std::string output_;
  std::size_t sent_ = 0;
  nghttp2_session* session_ = nullptr;
  std::int32_t stream_ = -1;
  bool failed_ = false;
  bool too_large_ = false;
  bool closed_ = false;
  std::uint32_t reset_ = 0;
  std::string status_{};
  std::optional<std::string> grpc_status_{};
  std::string grpc_message_{};
  std::string data_{};
};

GrpcExchange::GrpcExchange(const Request& request) : session_(std::make_unique<Session>(request)) {}
GrpcExchange::~GrpcExchange() = default;

Result<std::string> GrpcExchange::TakeOutput() { return session_->TakeOutput(); }
Status GrpcExchange::Receive(std::string_view bytes) { return session_->Receive(bytes); }
bool GrpcExchange::done() const { return session_->closed(); }
Result<std::string> GrpcExchange::Answer() { return session_->Answer(); }

}  // namespace zeus::kubernetes

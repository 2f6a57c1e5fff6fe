#pragma once

// A part of proxy.cc.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/gateway/proxy_upstream.h"

namespace zeus::gateway {

// Collects a whole small answer of an upstream. It keeps itself alive until it has called `done`.
class FetchCall final : public ResponseSink, public std::enable_shared_from_this<FetchCall> {
 public:
  using Done = std::function<void(Result<Fetched>)>;
  static constexpr std::size_t kLargestBody = std::size_t{16} << 20;

  explicit FetchCall(Done done) : done_(std::move(done)) {}

  void Start(ProxyContext& context, std::size_t upstream, std::string_view target,
             const HeaderFields& fields) {
    const Upstream& to = *context.upstreams[upstream];
    std::string request =
        fmt::format("GET {}{} HTTP/1.1\r\nHost: {}\r\n", to.prefix(), target, to.host_field());
    fields.AppendTo(request);
    request += "\r\n";
    self_ = shared_from_this();
    call_ = std::make_shared<UpstreamCall>(context, upstream, "GET", *this);
    call_->Start(std::move(request), true);
  }

  void OnInterimHead(ResponseHead& /*head*/) override {}
  void OnResponseHead(ResponseHead& head, const BodyFraming& /*framing*/) override {
    answer_.status = head.status;
  }
  void OnResponseBody(std::string_view bytes) override {
    answer_.body.append(bytes);
    if (answer_.body.size() <= kLargestBody) return;
    call_->Abort();
    End(Error{ErrorCode::kUnavailable, "the answer is too large"});
  }
  void OnResponsePiece() override {}
  void OnResponseEnd(const HeaderFields& /*trailers*/) override { End(std::move(answer_)); }
  void OnRequestSent() override {}
  void OnCallFailed(int /*status*/, const std::string& why) override {
    End(Error{ErrorCode::kUnavailable, why});
  }

 private:
  void End(Result<Fetched> result) {
    const auto keep = std::exchange(self_, nullptr);
    if (done_) std::exchange(done_, nullptr)(std::move(result));
  }

  Done done_;
  Fetched answer_{};
  std::shared_ptr<UpstreamCall> call_{};
  std::shared_ptr<FetchCall> self_{};
};

}  // namespace zeus::gateway

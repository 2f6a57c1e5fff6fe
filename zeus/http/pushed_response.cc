#include "zeus/http/pushed_response.h"

#include <utility>

namespace zeus::http {

template <class Change>
void PushedResponse::Add(Change change) {
  std::shared_ptr<const std::function<void()>> wake;
  {
    const std::lock_guard lock(mutex_);
    if (news_.empty()) wake = wake_;
    change(news_);
  }
  if (wake) (*wake)();
}

void PushedResponse::Finish(Answer answer) {
  Add([&](News& news) { news.whole = std::move(answer); });
}

void PushedResponse::Start(Answer head) {
  Add([&](News& news) {
    news.bytes = std::exchange(head.body, {});
    news.head = std::move(head);
  });
}

void PushedResponse::Push(std::string_view piece) {
  Add([&](News& news) { news.bytes += piece; });
}

void PushedResponse::Offer() {
  Add([](News& news) { news.offered = true; });
}

bool PushedResponse::SendNow(const SharedBytes& bytes) {
  if (outlet_ == nullptr) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!news_.empty()) return false;
  }
  return outlet_->SendHere(bytes);
}

void PushedResponse::End() {
  Add([](News& news) { news.ended = true; });
}

void PushedResponse::Abort() {
  Add([](News& news) { news.aborted = true; });
}

PushedResponse::News PushedResponse::Next() {
  News news;
  {
    const std::lock_guard lock(mutex_);
    news = std::exchange(news_, {});
  }
  if (std::exchange(news.offered, false) && pull_)
    if (const SharedBytes pulled = pull_()) news.bytes += *pulled;
  return news;
}

std::optional<PushedResponse::SharedBytes> PushedResponse::NextOffered() {
  {
    const std::lock_guard lock(mutex_);
    if (!news_.offered || news_.whole || news_.head || !news_.bytes.empty() || news_.ended ||
        news_.aborted)
      return std::nullopt;
    news_.offered = false;
  }
  return pull_ ? pull_() : nullptr;
}

void PushedResponse::WakeBy(std::function<void()> wake, std::shared_ptr<Courier> courier) {
  auto shared = wake ? std::make_shared<const std::function<void()>>(std::move(wake)) : nullptr;
  const std::lock_guard lock(mutex_);
  wake_.swap(shared);
  courier_.swap(courier);
}

std::shared_ptr<Courier> PushedResponse::courier() const {
  const std::lock_guard lock(mutex_);
  return courier_;
}

void PushedResponse::ClientLeft() {
  std::function<void()> left;
  {
    const std::lock_guard lock(mutex_);
    left = std::exchange(left_, nullptr);
  }
  if (left) left();
}

}  // namespace zeus::http

#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/http/courier.h"
#include "zeus/http/message.h"

namespace zeus::http {

// A response that another thread completes later: at once, or in pieces that are sent as they come
// and have an end. No thread waits meanwhile, and one thread of sockets serves thousands. A handler
// returns it in Answer::pushed; whoever completes it must stop before the server is destroyed.
// Thread-safe.
class PushedResponse {
 public:
  // Bytes that several responses send; null: none.
  using SharedBytes = std::shared_ptr<const std::string>;

  // `left` is called once on the thread of the sockets when the client leaves before the end. It
  // must not block.
  explicit PushedResponse(std::function<void()> left) : left_(std::move(left)) {}
  // For streams that outrun their clients: `pull` returns the next bytes of the body, and is called
  // on the thread of the sockets after Offer() and once the client has taken all earlier bytes. It
  // must not block. What it does not return yet stays with the caller, who may drop it.
  PushedResponse(std::function<void()> left, std::function<SharedBytes()> pull)
      : pull_(std::move(pull)), left_(std::move(left)) {}

  // The whole response.
  void Finish(Answer answer);

  // A response whose body comes in pieces; `head.body` is its first piece.
  void Start(Answer head);
  void Push(std::string_view piece);
  void Offer();  // There is something to pull.
  // Sends bytes of the body past pull() where the client has taken everything before and nothing
  // else waits: that is several times cheaper than Offer(). For tasks of courier() alone. Returns
  // false where it cannot: offer them.
  bool SendNow(const SharedBytes& bytes);
  void End();
  // Cuts the connection, so that the client sees that the response is not complete.
  void Abort();

  // The following are for the server.

  // Returns the bytes that came since the last call.
  struct News {
    std::optional<Answer> whole{};
    std::optional<Answer> head{};
    std::string bytes{};
    bool offered = false;
    bool ended = false;
    bool aborted = false;

    bool empty() const {
      return !whole && !head && bytes.empty() && !offered && !ended && !aborted;
    }
  };
  News Next();
  // Returns the pulled bytes, null for none, when nothing but Offer() was called since the last
  // call: the usual case of a stream, which then copies nothing. nullopt: Next() has the news.
  std::optional<SharedBytes> NextOffered();
  // `wake` is called from any thread after the first news since Next(). `courier` runs tasks where
  // the response is sent.
  void WakeBy(std::function<void()> wake, std::shared_ptr<Courier> courier = nullptr);
  void ClientLeft();
  // The connection while it waits for news, for SendNow(); null: it does not wait. Used on the
  // thread of the sockets alone.
  class Outlet {
   public:
    virtual ~Outlet() = default;
    // Returns false where the bytes cannot be taken.
    virtual bool SendHere(const SharedBytes& bytes) = 0;
  };
  void SetOutlet(Outlet* outlet) { outlet_ = outlet; }
  // Null while no server sends the response.
  std::shared_ptr<Courier> courier() const;

 private:
  template <class Change>
  void Add(Change change);

  const std::function<SharedBytes()> pull_{};  // Null: all bytes are pushed.
  Outlet* outlet_ = nullptr;
  mutable std::mutex mutex_;
  std::shared_ptr<Courier> courier_{};  // Guarded by mutex_.
  News news_;                           // Guarded by mutex_, as are all below.
  // Null until the server waits. Shared, since it is called without the lock.
  std::shared_ptr<const std::function<void()>> wake_{};
  std::function<void()> left_;
};

}  // namespace zeus::http

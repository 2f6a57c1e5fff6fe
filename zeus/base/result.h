#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace zeus {

// The closed set of errors. Each code has one HTTP status and one exit code
// (apps/zeus/exit_code.h); add a code only when some caller must act differently on it.
enum class ErrorCode {
  kInvalidArgument,   // The caller asked for something meaningless. Do not retry.
  kNotFound,          // No such GPU, job or window.
  kConflict,          // Meaningful, but at odds with what is already there. Look, then ask again.
  kNotSupported,      // This device cannot do it, ever.
  kPermissionDenied,  // Needs root or the daemon.
  kUnavailable,       // Failed now, may work later. The only retryable code.
  kInternal,          // A broken invariant or a corrupted store.
};

struct Error {
  ErrorCode code;
  std::string message;

  bool retryable() const { return code == ErrorCode::kUnavailable; }

  // Prepends what the caller was doing: "set power limit on GPU 2: permission denied".
  Error While(std::string_view doing) && {
    message.insert(0, std::string(doing) + ": ");
    return std::move(*this);
  }
  Error While(std::string_view doing) const& { return Error(*this).While(doing); }
};

inline Error InvalidArgument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

// A value, or the reason why there is none. value() and error() may only be called for the side
// that ok() announces.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return state_.index() == 0; }
  const T& value() const& { return std::get<0>(state_); }
  T& value() & { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status Ok() { return std::monostate(); }

}  // namespace zeus

#define ZEUS_CONCAT_INNER(a, b) a##b
#define ZEUS_CONCAT(a, b) ZEUS_CONCAT_INNER(a, b)

// ZEUS_TRY(const Joules energy, meter.TotalEnergy()); binds the value or returns the error.
#define ZEUS_TRY(declaration, expression)                          \
  auto ZEUS_CONCAT(zeus_result_, __LINE__) = (expression);         \
  if (!ZEUS_CONCAT(zeus_result_, __LINE__).ok())                   \
    return std::move(ZEUS_CONCAT(zeus_result_, __LINE__)).error(); \
  declaration = std::move(ZEUS_CONCAT(zeus_result_, __LINE__)).value()

// For calls that return Status.
#define ZEUS_RETURN_IF_ERROR(expression)                      \
  do {                                                        \
    if (auto zeus_outcome = (expression); !zeus_outcome.ok()) \
      return std::move(zeus_outcome).error();                 \
  } while (false)

#include "zeus/mpi/mpi_collective.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <exception>
#include <limits>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

Error MpiError(std::string_view doing, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int size = 0;
  if (MPI_Error_string(code, text.data(), &size) != MPI_SUCCESS) size = 0;
  return {ErrorCode::kUnavailable,
          fmt::format("{} the other ranks failed, they may be gone: {}", doing,
                      Printable(std::string_view(text.data(), static_cast<std::size_t>(size))))};
}

Error NotRunning(std::string_view reason) {
  return {ErrorCode::kUnavailable, fmt::format("MPI cannot be used: {}", reason)};
}

// Returns whether this call initialised MPI.
Result<bool> InitialiseIfNeeded() {
  int done = 0;
  if (MPI_Finalized(&done) == MPI_SUCCESS && done != 0)
    return NotRunning("the program has finalised it already");
  if (MPI_Initialized(&done) == MPI_SUCCESS && done != 0) return false;
  int provided = 0;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS) return NotRunning("it does not start: run the program with mpirun");
  return true;
}

}  // namespace

class MpiCollective::Communicator {
 public:
  // Duplicates `original`, so that MPI returns errors on the duplicate instead of ending the
  // program.
  static Result<std::unique_ptr<Communicator>> Duplicate(MPI_Comm original, bool initialised) {
    auto made = std::make_unique<Communicator>(initialised);
    ZEUS_RETURN_IF_ERROR(made->Check("joining", MPI_Comm_dup(original, &made->handle_)));
    ZEUS_RETURN_IF_ERROR(
        made->Check("joining", MPI_Comm_set_errhandler(made->handle_, MPI_ERRORS_RETURN)));
    ZEUS_RETURN_IF_ERROR(made->Check("joining", MPI_Comm_rank(made->handle_, &made->rank_)));
    ZEUS_RETURN_IF_ERROR(made->Check("joining", MPI_Comm_size(made->handle_, &made->size_)));
    return made;
  }

  explicit Communicator(bool initialised) : initialised_(initialised) {}
  ~Communicator() {
    int finalised = 0;
    // Both calls below wait for the other ranks, which would hang if those are gone, or if this
    // rank alone leaves by an exception. Without the calls, mpirun ends the job when this process
    // ends.
    if (broken_ || std::uncaught_exceptions() > 0 || MPI_Finalized(&finalised) != MPI_SUCCESS ||
        finalised != 0)
      return;
    if (handle_ != MPI_COMM_NULL) MPI_Comm_free(&handle_);
    if (initialised_) MPI_Finalize();
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Reduces to rank 0 and broadcasts from there: an all-reduce may round differently on each rank,
  // but all ranks must make the same decisions.
  Status Reduce(std::span<double> values, MPI_Op operation, std::string_view doing) {
    ZEUS_TRY(const int count, Count(values));
    const void* send = rank_ == 0 ? MPI_IN_PLACE : values.data();
    void* receive = rank_ == 0 ? values.data() : nullptr;
    ZEUS_RETURN_IF_ERROR(
        Check(doing, MPI_Reduce(send, receive, count, MPI_DOUBLE, operation, 0, handle_)));
    return Broadcast(values, 0, doing);
  }

  Status Broadcast(std::span<double> values, int root, std::string_view doing) {
    ZEUS_TRY(const int count, Count(values));
    return Check(doing, MPI_Bcast(values.data(), count, MPI_DOUBLE, root, handle_));
  }

 private:
  Status Check(std::string_view doing, int code) {
    if (code == MPI_SUCCESS) return Ok();
    broken_ = true;
    return MpiError(doing, code);
  }

  static Result<int> Count(std::span<double> values) {
    if (values.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return static_cast<int>(values.size());
    return Error{ErrorCode::kInvalidArgument, "too many numbers for one message of MPI"};
  }

  const bool initialised_;
  MPI_Comm handle_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool broken_ = false;
};

Result<std::unique_ptr<MpiCollective>> MpiCollective::World() {
  ZEUS_TRY(const bool initialised, InitialiseIfNeeded());
  ZEUS_TRY(auto communicator, Communicator::Duplicate(MPI_COMM_WORLD, initialised));
  return std::unique_ptr<MpiCollective>(new MpiCollective(std::move(communicator)));
}

Result<std::unique_ptr<MpiCollective>> MpiCollective::Of(int communicator) {
  int running = 0;
  if (MPI_Initialized(&running) != MPI_SUCCESS || running == 0)
    return NotRunning("initialise it before there is a communicator");
  const MPI_Comm original = MPI_Comm_f2c(communicator);
  if (original == MPI_COMM_NULL)
    return Error{ErrorCode::kInvalidArgument, "this is not a communicator of MPI"};
  ZEUS_TRY(auto duplicate, Communicator::Duplicate(original, false));
  return std::unique_ptr<MpiCollective>(new MpiCollective(std::move(duplicate)));
}

MpiCollective::MpiCollective(std::unique_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)) {}
MpiCollective::~MpiCollective() = default;

int MpiCollective::rank() const { return communicator_->rank(); }
int MpiCollective::size() const { return communicator_->size(); }

Status MpiCollective::Sum(std::span<double> values) {
  return communicator_->Reduce(values, MPI_SUM, "adding up over");
}

Status MpiCollective::Max(std::span<double> values) {
  return communicator_->Reduce(values, MPI_MAX, "comparing with");
}

Status MpiCollective::Broadcast(std::span<double> values, int root) {
  if (root >= 0 && root < size()) return communicator_->Broadcast(values, root, "telling");
  return Error{ErrorCode::kInvalidArgument, fmt::format("there is no rank {}", root)};
}

}  // namespace zeus

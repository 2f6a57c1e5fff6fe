#pragma once

#include <memory>
#include <span>

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

// The ranks of an MPI program, on a communicator of their own, so that messages do not mix with
// those of the program. MPI errors are returned as a Status; no call of this class ends the
// program. All ranks get bit-identical results. One owner; no other thread may call MPI at the same
// time, unless the program initialised MPI for several threads.
class MpiCollective final : public Collective {
 public:
  // All ranks of the program call this together, and destroy the result together. If the program
  // has not initialised MPI, this does, and the destructor finalises it.
  static Result<std::unique_ptr<MpiCollective>> World();
  // Makes a collective of the ranks of a communicator, given as MPI_Comm_c2f(communicator).
  static Result<std::unique_ptr<MpiCollective>> Of(int communicator);

  ~MpiCollective() override;
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;

  int rank() const override;
  int size() const override;
  Status Sum(std::span<double> values) override;
  Status Max(std::span<double> values) override;
  Status Broadcast(std::span<double> values, int root) override;

 private:
  class Communicator;
  explicit MpiCollective(std::unique_ptr<Communicator> communicator);

  std::unique_ptr<Communicator> communicator_;
};

}  // namespace zeus

#include "examples/training/blas_threads.h"

#include <dlfcn.h>

namespace zeus::examples {

void UseOneBlasThread() {
  // OpenBLAS has its own threads, which torch's settings do not affect. Other BLAS libraries lack
  // this function.
  using SetThreads = void (*)(int);
  const auto set_threads =
      reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

}  // namespace zeus::examples

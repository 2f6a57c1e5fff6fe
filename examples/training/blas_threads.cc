#include "examples/training/blas_threads.h"

#include <dlfcn.h>

namespace zeus::examples {

void UseOneBlasThread() {
  // OpenBLAS has threads of its own, which torch does not know of; another BLAS has no such
  // function.
  using SetThreads = void (*)(int);
  const auto set_threads =
      reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

}  // namespace zeus::examples

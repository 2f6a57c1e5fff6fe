#pragma once

namespace zeus::examples {

// Makes the BLAS library, if it can be told, compute products of matrices with one thread. With
// more threads the order of additions, and so the losses, would depend on the machine.
void UseOneBlasThread();

}  // namespace zeus::examples

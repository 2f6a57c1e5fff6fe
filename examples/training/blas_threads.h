#pragma once

namespace zeus::examples {

// Products of matrices are computed by one thread from now on, where the library that does them can
// be told. More threads add up in another order, so that the losses would depend on the machine.
void UseOneBlasThread();

}  // namespace zeus::examples

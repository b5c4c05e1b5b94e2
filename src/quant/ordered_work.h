// Tasks on several threads, started in the order of their numbers: the pipeline's reading order.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace halfbyte::quant {

using NumberedTask = std::function<base::Status(size_t task)>;

// Runs tasks 0 .. tasks-1. Every thread gets a task function (and with it buffers) of its own from `make`; `after` (may be empty) is called
// after each task, from its thread. A failure stops the others from starting; the error returned is that of the lowest task that failed:
// which thread failed first is chance, the message should not be.
base::Status RunInOrder(size_t tasks, int threads, const std::function<NumberedTask()>& make, const std::function<void()>& after = {});

}  // namespace halfbyte::quant

// Host memory for weights, caches and staging, and what the machine (or the cgroup it runs in) has of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace halfbyte::platform {

// Zeroed, aligned to 64 bytes (2 MiB from 4 MiB on, with huge pages asked for). Zero bytes give a valid pointer. kOutOfMemory otherwise.
base::Result<void*> AllocateHost(size_t bytes);
void FreeHost(void* data, size_t bytes);
// Gives whole pages of such memory back to the system; they read as zero and come back when they are written.
void DropHostPages(void* data, size_t bytes);

// Bytes that a new large allocation may take: the smaller of the system's available memory and what the cgroups have left (cgroup.h).
uint64_t AvailableMemory();
// Highest resident size of this process so far (VmHWM), in bytes.
uint64_t PeakResidentBytes();
uint64_t ResidentBytes();

}  // namespace halfbyte::platform

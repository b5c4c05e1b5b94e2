// halfbyte devices: what this machine has and which backends can run on it.
#include <cstdio>

#include "commands.h"
#include "kernels/create_backend.h"
#include "platform/cpu_features.h"
#include "platform/memory.h"
#include "platform/parallel.h"

namespace halfbyte::app {
namespace {

base::Status Devices(Context& context) {
  base::Json out = base::Json::MakeObject(), backends = base::Json::MakeArray();
  out.Set("isa", platform::Cpu().ToString());
  out.Set("threads", platform::AllowedThreads());
  out.Set("available_memory_bytes", platform::AvailableMemory());
  if (!context.json)
    context.out.Format("cpu: %s\nthreads allowed: %d\nmemory free: %.1f GB\n", platform::Cpu().ToString().c_str(), platform::AllowedThreads(), static_cast<double>(platform::AvailableMemory()) / 1e9);
  for (const char* name : {"cpu", "cuda", "reference"}) {
    base::Json row = base::Json::MakeObject();
    row.Set("name", name);
    auto backend = kernels::CreateBackend(name, {});
    row.Set("available", backend.has_value());
    std::string text;
    if (backend) {
      base::Json kernels = base::Json::MakeObject();
      for (const auto& [op, kernel] : (*backend)->Kernels()) { kernels.Set(op, kernel); text += " " + op + "=" + kernel; }
      row.Set("kernels", std::move(kernels));
    } else {
      text = " not available: " + backend.error().ToString();
      row.Set("why", backend.error().ToString());
    }
    if (!context.json) context.out.Format("backend %s:%s\n", name, text.c_str());
    backends.Push(std::move(row));
  }
  out.Set("backends", std::move(backends));
  if (context.json) context.out.Json(out, 1);
  return {};
}

}  // namespace

void RegisterDevices(CLI::App& program, Context& context) {
  program.add_subcommand("devices", "what was found: instruction sets, cores allowed, memory, backends")->callback([&context] {
    context.command = [&context] { return Devices(context); };
  });
}

}  // namespace halfbyte::app

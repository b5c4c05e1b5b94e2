#include "server/context.h"

#include <chrono>
#include <cstdio>
#include <sys/random.h>

namespace halfbyte::server {

std::string Context::Fingerprint() const {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : base::StrCat(options.model_name, "|", options.quantization, "|", options.device, "|", weight_version.load())) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char text[32];
  std::snprintf(text, sizeof text, "fp_%010llx", static_cast<unsigned long long>(hash & 0xffffffffffu));
  return text;
}

void Context::MakeGrammars() {
  if (!tokenizer) return;
  std::vector<std::string> bytes(static_cast<size_t>(vocab()));
  for (int32_t t = 0; t < static_cast<int32_t>(bytes.size()); ++t)
    if (!tokenizer->IsSpecial(t)) bytes[static_cast<size_t>(t)] = tokenizer->TokenBytes(t);
  grammars = std::make_unique<Grammars>(std::move(bytes), engine->traits().eos);
}

void Context::Shutdown() {
  if (!engine) return;
  draining = true;
  parsers.Stop();  // nothing is submitted from here on
  engine->AbortAll(base::Error(base::ErrorCode::kCancelled, "the server is stopping"));
  texts.Stop();    // the last events have been answered
  engine.reset();
}

std::string NewId(std::string_view prefix) {
  unsigned char bytes[16] = {};
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    static std::atomic<uint64_t> counter{0};
    const uint64_t n = ++counter;
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(n >> (8 * i));
  }
  std::string id(prefix);
  for (unsigned char b : bytes) {
    id += "0123456789abcdef"[b >> 4];
    id += "0123456789abcdef"[b & 15];
  }
  return id;
}

int64_t UnixSeconds() { return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace halfbyte::server

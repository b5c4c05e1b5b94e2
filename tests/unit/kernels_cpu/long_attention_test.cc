// Contexts of several splits (kernel_table.h: kAttentionSplit), which the differential kit's sequences are too short for.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "platform/cpu_features.h"
#include "platform/parallel.h"
#include "support/attention_world.h"
#include "support/compare_rows.h"

namespace halfbyte::test {
namespace {

using tensor::DType;

constexpr int64_t kLength = 1300;  // two whole splits and a part of a third

std::unique_ptr<kernels::Backend> Cpu(const std::string& machine) {
  return std::move(*kernels::CreateCpuBackend({.kernels = {{"attention", machine}}}));
}

std::vector<std::string> Machines() {
  const auto& cpu = platform::Cpu();
  std::vector<std::string> out{"avx2"};
  if (cpu.HasAvx512()) out.push_back("avx512");
  if (cpu.HasAvx512Bf16()) out.push_back("avx512bf16");
  return out;
}

std::vector<AttentionShape> Shapes() {
  AttentionShape exact{.heads = 4, .kv_heads = 2, .head_dim = 32};
  AttentionShape rounded = exact;
  rounded.kv = rounded.out = DType::kBF16;
  rounded.exact = false;
  AttentionShape windowed = rounded;
  windowed.window = 600;
  return {exact, rounded, windowed};
}

// A prompt in `sizes`, then three generated rows, one at a time.
AttentionResult Play(kernels::Backend& backend, const AttentionShape& shape, const std::vector<int64_t>& sizes) {
  AttentionWorld world(backend, shape, 1, kLength + 3, true);
  world.Prefill(0, sizes);
  for (int64_t p = kLength; p < kLength + 3; ++p) world.Step({{0, p, 1}}, 0);
  return world.result();
}

TEST(LongAttention, AgreesWithReference) {
  for (const AttentionShape& s : Shapes()) {
    const auto oracle = kernels::CreateReferenceBackend({});
    const AttentionResult want = Play(*oracle, s, {kLength});
    for (const std::string& machine : Machines()) {
      SCOPED_TRACE(machine + " " + s.ToString());
      const auto backend = Cpu(machine);
      const AttentionResult got = Play(*backend, s, {kLength});
      std::vector<float> a, b;
      for (const auto& [key, row] : want.out) {
        const auto& mine = got.out.at(key);
        a.insert(a.end(), mine.begin(), mine.end());
        b.insert(b.end(), row.begin(), row.end());
      }
      ExpectRowsClose(a, b, static_cast<int64_t>(want.out.size()) * s.heads,
                      s.exact ? RowBound{1e-5, 1e-5, 0} : RowBound{1.5e-2, 1.5e-2, 0});
    }
  }
}

// Chunk borders on and beside those of splits; one thread runs a row's splits one after the other, five run them side by side.
TEST(LongAttention, SplitsAndChunksDoNotShow) {
  for (const AttentionShape& s : Shapes()) {
    for (const std::string& machine : Machines()) {
      SCOPED_TRACE(machine + " " + s.ToString());
      const auto backend = Cpu(machine);
      const int threads = platform::Threads();
      platform::SetThreads(1);
      const AttentionResult want = Play(*backend, s, {kLength});
      for (int count : {1, 5}) {
        platform::SetThreads(count);
        for (const std::vector<int64_t>& sizes :
             {std::vector<int64_t>{kLength}, {512, 512, 276}, {511, 2, 511, 1, 275}, {100, 1200}}) {
          const AttentionResult got = Play(*backend, s, sizes);
          for (const auto& [key, row] : want.out)
            ASSERT_NO_FATAL_FAILURE(ExpectSameBits(got.out.at(key), row, "position " + std::to_string(key.second)));
          ASSERT_FALSE(HasNonfatalFailure()) << count << " threads, first chunk " << sizes[0];
        }
      }
      platform::SetThreads(threads);
    }
  }
}

}  // namespace
}  // namespace halfbyte::test

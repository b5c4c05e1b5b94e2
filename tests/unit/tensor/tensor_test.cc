#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

#include "platform/memory.h"
#include "platform/parallel.h"
#include "tensor/buffer.h"
#include "tensor/format.h"
#include "tensor/shape.h"

namespace halfbyte::tensor {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) EXPECT_EQ(DTypeFromName(DTypeName(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_EQ(DTypeFromName("Q9"), std::nullopt);
}

TEST(Shape, OverflowAndNegativeExtentsAreErrors) {
  EXPECT_EQ(*Shape({}).CheckedElements(), 1);
  EXPECT_EQ(*Shape({0, 16}).CheckedElements(), 0);
  EXPECT_FALSE(Shape({int64_t{1} << 33, int64_t{1} << 33}).CheckedElements());
  EXPECT_FALSE(Shape({-1}).CheckedElements());
  EXPECT_FALSE(TensorBytes(DType::kF64, Shape({int64_t{1} << 60})));
  EXPECT_FALSE(TensorBytes(DType::kF4, Shape({3})));
  EXPECT_EQ(*TensorBytes(DType::kF4, Shape({4})), 2);
}

TEST(Format, BytesCountScalesAndPartialBlocks) {
  EXPECT_EQ(Format::Nvfp4().Bytes(768, 2048), 768 * 2048 / 2 + 768 * 128 + 4);
  EXPECT_EQ(Format::Fp8Block(128, 128).Bytes(200, 144), 200 * 144 + 4 * 2 * 2);
  EXPECT_EQ(Format::Bf16().Bytes(3, 5), 30);
  EXPECT_EQ(Format::Fp8(Outer::kPerRow).ToString(), "FP8 per row");
}

TEST(Buffer, IsZeroedAlignedAndMovable) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{5} << 20}) {
    auto b = Buffer::Host(bytes);
    ASSERT_TRUE(b);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data()) % 64, 0u);
    EXPECT_EQ(std::accumulate(b->span<uint8_t>().begin(), b->span<uint8_t>().end(), 0), 0);
    std::memset(b->data(), 7, bytes);
    void* address = b->data();
    Buffer moved = std::move(*b);
    EXPECT_EQ(moved.data(), address);
  }
  EXPECT_FALSE(Buffer::Host(size_t{1} << 60));
}

TEST(ParallelFor, CoversEveryItemOnceForAnyThreadCount) {
  for (int threads : {1, 2, 5}) {
    platform::SetThreads(threads);
    std::vector<std::atomic<int>> hits(1001);
    platform::ParallelFor(1001, 7, [&](int64_t begin, int64_t end) { for (int64_t i = begin; i < end; ++i) ++hits[i]; });
    for (auto& h : hits) EXPECT_EQ(h, 1);
  }
}

TEST(Memory, ReportsSomethingSensible) {
  EXPECT_GT(platform::AvailableMemory(), 1u << 20);
  EXPECT_GE(platform::PeakResidentBytes(), platform::ResidentBytes());
  EXPECT_GE(platform::AllowedThreads(), 1);
}

}  // namespace
}  // namespace halfbyte::tensor

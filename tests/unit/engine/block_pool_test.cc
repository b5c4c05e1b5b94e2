#include "engine/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace halfbyte::engine {
namespace {

using Ids = std::vector<int32_t>;

TEST(BlockPool, HandsOutEachBlockOnceAndTakesItBack) {
  BlockPool pool(3);
  std::set<int32_t> got;
  for (int i = 0; i < 3; ++i) got.insert(*pool.Allocate());
  EXPECT_EQ(got.size(), 3u);
  EXPECT_FALSE(pool.Allocate());
  EXPECT_EQ(pool.owned(), 3);
  pool.Release(1);
  EXPECT_EQ(pool.available(), 1);
  EXPECT_EQ(*pool.Allocate(), 1);
}

TEST(BlockPool, PublishedContentIsFoundUntilItsBlockIsNeeded) {
  BlockPool pool(2);
  const int32_t a = *pool.Allocate(), b = *pool.Allocate();
  const ContentId ca = pool.Publish(a, kNoContent, Ids{1, 2});
  const ContentId cb = pool.Publish(b, ca, Ids{3, 4});
  EXPECT_NE(ca, cb);
  pool.Release(b);
  pool.Release(a);
  EXPECT_EQ(pool.cached(), 2);
  EXPECT_EQ(pool.available(), 2);
  ASSERT_TRUE(pool.Find(kNoContent, Ids{1, 2}));
  EXPECT_EQ(pool.Find(kNoContent, Ids{1, 2})->block, a);
  EXPECT_EQ(pool.Find(ca, Ids{3, 4})->block, b);
  EXPECT_FALSE(pool.Find(kNoContent, Ids{3, 4})) << "the same tokens after another past are something else";
  EXPECT_FALSE(pool.Find(kNoContent, Ids{1, 2, 3}));
  EXPECT_EQ(*pool.Allocate(), b) << "released first, reused first";
  EXPECT_FALSE(pool.Find(ca, Ids{3, 4}));
  EXPECT_TRUE(pool.Find(kNoContent, Ids{1, 2}));
}

TEST(BlockPool, RetainingACachedBlockTakesItOutOfTheQueueOfReuse) {
  BlockPool pool(3);
  std::vector<int32_t> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(*pool.Allocate());
    pool.Publish(blocks.back(), kNoContent, Ids{i});
  }
  for (int32_t b : blocks) pool.Release(b);
  pool.Retain(blocks[1]);  // from the middle of the list
  EXPECT_EQ(pool.available(), 2);
  EXPECT_EQ(*pool.Allocate(), blocks[0]);
  EXPECT_EQ(*pool.Allocate(), blocks[2]);
  EXPECT_FALSE(pool.Allocate());
  EXPECT_TRUE(pool.Find(kNoContent, Ids{1}));
  pool.Retain(blocks[1]);
  pool.Release(blocks[1]);
  EXPECT_EQ(pool.references(blocks[1]), 1);
}

TEST(BlockPool, EqualContentsShareOneId) {
  BlockPool pool(4);
  const int32_t a = *pool.Allocate(), b = *pool.Allocate(), c = *pool.Allocate();
  const ContentId first = pool.Publish(a, kNoContent, Ids{7});
  EXPECT_EQ(pool.Publish(b, kNoContent, Ids{7}), first);
  const ContentId next = pool.Publish(c, first, Ids{8});
  EXPECT_EQ(pool.Find(first, Ids{8})->content, next);
  pool.Release(b);  // the twin was never to be found: it is free, not cached
  EXPECT_EQ(pool.cached(), 0);
}

TEST(BlockPool, ForgetEmptiesTheCacheAndKeepsOwners) {
  BlockPool pool(2);
  const int32_t a = *pool.Allocate(), b = *pool.Allocate();
  pool.Publish(a, kNoContent, Ids{1});
  pool.Publish(b, kNoContent, Ids{2});
  pool.Release(a);
  pool.Forget();
  EXPECT_EQ(pool.cached(), 0);
  EXPECT_EQ(pool.owned(), 1);
  EXPECT_FALSE(pool.Find(kNoContent, Ids{1}));
  EXPECT_FALSE(pool.Find(kNoContent, Ids{2}));
  pool.Release(b);
  EXPECT_EQ(pool.available(), 2);
  EXPECT_EQ(pool.cached(), 0);
}

TEST(BlockPool, MistakesAreCaught) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.Release(0), "no owner");
  EXPECT_DEATH(pool.Retain(0), "cannot be retained");
}

}  // namespace
}  // namespace halfbyte::engine

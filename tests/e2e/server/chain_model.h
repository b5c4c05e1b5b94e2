// A model folder whose greedy answers are known without training (user-cases part D): embedding = identity, attention and experts zero, and row j of the
// head has a 1 at column i where j follows i. Token 511 ends.
#pragma once

#include <map>

#include "unit/checkpoint/test_files.h"

namespace halfbyte::server {

inline constexpr int kChainVocab = 512, kChainEnd = 511;

using Successors = std::map<int, int>;

// The chains of T17, each started by the byte that names its case, and 'l' -> 'l' -> ... without an end.
Successors TextChains();

// After `certain` nothing but its follower can come: all other logits are -inf (head rows whose product with the one-hot input overflows).
void WriteChainModel(const checkpoint::TemporaryFolder& folder, const Successors& successors, const std::string& subfolder = "", int certain = -1);

}  // namespace halfbyte::server

// StatePool: the memory that sequences keep between steps, per layer one of two kinds:
//   paged   K and V in blocks of block_tokens tokens; a sequence holds a list of block numbers, the same in every layer
//   fixed   a state of constant size (recurrent, convolution); a sequence holds one slot number, the same in every layer
// The pool is memory and addresses only; who owns which block or slot is the engine's business (engine/sequence_state.h).
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "kernels/api/backend.h"
#include "kernels/api/kv_cache.h"

namespace halfbyte::model {

struct PagedState {
  kernels::KvSpec kv;
  int64_t window = 0;  // tokens a later query can still see; 0: all
};
struct FixedState {
  int64_t bytes = 0;
};
using LayerState = std::variant<PagedState, FixedState>;

class StatePool {
 public:
  // blocks and slots may be 0 where no layer needs them.
  static base::Result<std::unique_ptr<StatePool>> Create(kernels::Backend& backend, std::vector<LayerState> layers, int64_t blocks, int64_t slots);

  // Bytes of one block over all paged layers, and of one slot over all fixed layers.
  static int64_t BlockBytes(const std::vector<LayerState>& layers);
  static int64_t SlotBytes(const std::vector<LayerState>& layers);

  int64_t blocks() const { return blocks_; }
  int64_t slots() const { return slots_; }
  const std::vector<LayerState>& layers() const { return layers_; }

  kernels::KvLayer Kv(int layer) const;               // of a paged layer
  std::byte* Slot(int layer, int64_t slot) const;     // of a fixed layer

  // Zeroes a slot in every fixed layer (a new sequence starts from a zero state).
  base::Status ClearSlot(int64_t slot);
  // Copies a block, or a slot, over all layers: prefix sharing with divergence, snapshots and restores.
  base::Status CopyBlock(int64_t from, int64_t to);
  base::Status CopySlot(int64_t from, int64_t to);
  // Gives the memory back to the system; everything reads as zero afterwards, and memory comes back when it is written.
  void Drop() { for (tensor::Buffer& b : buffers_) b.DropHost(); }

 private:
  StatePool() = default;
  kernels::Backend* backend_ = nullptr;
  std::vector<LayerState> layers_;
  std::vector<tensor::Buffer> buffers_;  // one a layer
  int64_t blocks_ = 0, slots_ = 0;
};

}  // namespace halfbyte::model

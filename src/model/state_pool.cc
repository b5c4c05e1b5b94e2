#include "model/state_pool.h"

#include <cstring>

namespace halfbyte::model {
namespace {

int64_t BytesPerBlock(const LayerState& s) { return std::holds_alternative<PagedState>(s) ? kernels::KvBlockBytes(std::get<PagedState>(s).kv) : 0; }
int64_t BytesPerSlot(const LayerState& s) { return std::holds_alternative<FixedState>(s) ? std::get<FixedState>(s).bytes : 0; }

}  // namespace

int64_t StatePool::BlockBytes(const std::vector<LayerState>& layers) {
  int64_t n = 0;
  for (const LayerState& s : layers) n += BytesPerBlock(s);
  return n;
}
int64_t StatePool::SlotBytes(const std::vector<LayerState>& layers) {
  int64_t n = 0;
  for (const LayerState& s : layers) n += BytesPerSlot(s);
  return n;
}

base::Result<std::unique_ptr<StatePool>> StatePool::Create(kernels::Backend& backend, std::vector<LayerState> layers, int64_t blocks, int64_t slots) {
  std::unique_ptr<StatePool> pool(new StatePool);
  pool->backend_ = &backend;
  for (const LayerState& s : layers) {
    HB_ASSIGN_OR_RETURN(tensor::Buffer buffer, backend.Allocate(static_cast<size_t>(BytesPerBlock(s) * blocks + BytesPerSlot(s) * slots)));
    pool->buffers_.push_back(std::move(buffer));
  }
  pool->layers_ = std::move(layers);
  pool->blocks_ = blocks;
  pool->slots_ = slots;
  return pool;
}

kernels::KvLayer StatePool::Kv(int layer) const {
  const auto& s = std::get<PagedState>(layers_[static_cast<size_t>(layer)]);
  return {s.kv, blocks_, const_cast<std::byte*>(buffers_[static_cast<size_t>(layer)].as<std::byte>())};
}

std::byte* StatePool::Slot(int layer, int64_t slot) const {
  HB_CHECK(0 <= slot && slot < slots_, "slot ", slot, " of ", slots_);
  return const_cast<std::byte*>(buffers_[static_cast<size_t>(layer)].as<std::byte>()) + slot * BytesPerSlot(layers_[static_cast<size_t>(layer)]);
}

base::Status StatePool::ClearSlot(int64_t slot) {
  for (size_t l = 0; l < layers_.size(); ++l)
    if (int64_t n = BytesPerSlot(layers_[l])) {
      std::vector<std::byte> zero(static_cast<size_t>(n));
      HB_RETURN_IF_ERROR(backend_->Upload(Slot(static_cast<int>(l), slot), zero.data(), zero.size()));
    }
  return {};
}

base::Status StatePool::CopyBlock(int64_t from, int64_t to) {
  HB_CHECK(0 <= from && from < blocks_ && 0 <= to && to < blocks_);
  for (size_t l = 0; l < layers_.size(); ++l)
    if (int64_t n = BytesPerBlock(layers_[l])) {
      std::vector<std::byte> copy(static_cast<size_t>(n));
      std::byte* base = buffers_[l].as<std::byte>();
      HB_RETURN_IF_ERROR(backend_->Download(copy.data(), base + from * n, copy.size()));
      HB_RETURN_IF_ERROR(backend_->Upload(base + to * n, copy.data(), copy.size()));
    }
  return {};
}

base::Status StatePool::CopySlot(int64_t from, int64_t to) {
  for (size_t l = 0; l < layers_.size(); ++l)
    if (int64_t n = BytesPerSlot(layers_[l])) {
      std::vector<std::byte> copy(static_cast<size_t>(n));
      HB_RETURN_IF_ERROR(backend_->Download(copy.data(), Slot(static_cast<int>(l), from), copy.size()));
      HB_RETURN_IF_ERROR(backend_->Upload(Slot(static_cast<int>(l), to), copy.data(), copy.size()));
    }
  return {};
}

}  // namespace halfbyte::model

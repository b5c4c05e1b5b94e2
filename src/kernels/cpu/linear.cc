// Dense products: pack x once a row form, then cut (part, panels, tiles of x) into tasks. No cut changes a result
// (common/linear_template.h).
#include <algorithm>
#include <cstring>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/packed_linear.h"
#include "platform/cpu_features.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::cpu {
namespace {

// Rows [begin, end) of x in the form that kernels of one act and tile height read. Groups of rows that are kept apart have their
// own.
struct PackedRows {
  RowType act;
  int tile_rows;
  int64_t begin, end;
  int64_t depth = 0;
  const void* data = nullptr;
  int64_t offset = 0;  // into the scratch memory; unused where x serves as it is
};

struct Job {
  const LinearPart* part;
  LinearView view;
  LinearRun run;
  int64_t scratch_bytes;
  size_t x;  // index of its PackedRows
  int64_t tiles, panel_step, tile_step;
  int64_t first_task, panel_tasks;
};

int64_t UnitBytes(RowType act, int64_t k) { return act == RowType::kF32 ? 4 * k : 2 * k; }

// One row in the kernel's own form, not in need of padding: x itself is its packed form.
bool ServesAsItIs(const Matrix& x, const PackedRows& p) {
  return p.act != RowType::kBf16Steps && p.end - p.begin == 1 && x.cols % kPackedDepth == 0 && (x.dtype == DType::kBF16) == (p.act == RowType::kBf16);
}

// Rows of a last tile that do not exist are zero.
void PackSteps(const std::byte* in, int64_t rows, int64_t tile_rows, int64_t k, int64_t ld, int64_t depth, std::byte* out) {
  constexpr int64_t kBytes = 64;  // of a row in a step
  if (rows < tile_rows || k < depth) std::memset(out, 0, static_cast<size_t>(tile_rows * depth * 2));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t at = 0; at < 2 * k; at += kBytes)
      std::memcpy(out + at * tile_rows + r * kBytes, in + r * ld * 2 + at, static_cast<size_t>(std::min(kBytes, 2 * k - at)));
}

int64_t PackedBytes(const PackedRows& p) {
  const int64_t rows = p.end - p.begin, whole = (rows + p.tile_rows - 1) / p.tile_rows * p.tile_rows;
  return UnitBytes(p.act, p.depth) * (p.act == RowType::kBf16Steps ? whole : rows);
}

void PackRows(const Matrix& x, PackedRows& p, const RowKernels& rows, std::byte* scratch) {
  const int64_t tiles = (p.end - p.begin + p.tile_rows - 1) / p.tile_rows, bf16 = x.dtype == DType::kBF16;
  std::byte* out = scratch + p.offset;
  p.data = out;
  platform::ParallelFor(tiles, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t row = p.begin + t * p.tile_rows, n = std::min<int64_t>(p.tile_rows, p.end - row);
      auto* in = static_cast<const std::byte*>(x.data) + row * x.ld * (bf16 ? 2 : 4);
      std::byte* tile = out + UnitBytes(p.act, p.depth) * t * p.tile_rows;
      if (p.act == RowType::kBf16Steps) PackSteps(in, n, p.tile_rows, x.cols, x.ld, p.depth, tile);
      else if (p.act == RowType::kF32) rows.pack_f32(in, bf16, n, x.cols, x.ld, p.depth, reinterpret_cast<float*>(tile));
      else rows.pack_bf16(in, bf16, n, x.cols, x.ld, p.depth, reinterpret_cast<uint32_t*>(tile));
    }
  });
}

size_t FindRows(std::vector<PackedRows>& all, RowType act, int tile_rows, int64_t begin, int64_t end, int64_t depth) {
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].act == act && all[i].tile_rows == tile_rows && all[i].begin == begin && all[i].end == end) return i;
  all.push_back({act, tile_rows, begin, end, depth});
  return all.size() - 1;
}

// A task should read at least this many weight bytes or do as much arithmetic, so that starting it (about a microsecond) is free.
constexpr int64_t kTaskBytes = 128 << 10;
constexpr int64_t kPanelGroup = 4;

void CutJob(Job& job) {
  const LinearView& v = job.view;
  int64_t work = std::max<int64_t>(1, v.panel_bytes * std::max<int64_t>(1, job.tiles / 4));
  job.panel_step = std::clamp<int64_t>(kTaskBytes / work, 1, v.panels);
  job.panel_step = (job.panel_step + kPanelGroup - 1) / kPanelGroup * kPanelGroup;
  job.panel_tasks = (v.panels + job.panel_step - 1) / job.panel_step;
  // Few panels and many rows: cut the rows too.
  int64_t want = 4 * platform::Threads();
  int64_t cuts = job.panel_tasks >= want
                     ? 1
                     : std::min<int64_t>((want + job.panel_tasks - 1) / job.panel_tasks, std::max<int64_t>(1, job.tiles / 4));
  job.tile_step = (job.tiles + cuts - 1) / cuts;
}

void RunTask(const Job& job, const PackedRows& x, int64_t task) {
  const LinearPart& part = *job.part;
  LinearCall call;
  call.w = job.view;
  call.x = x.data;
  call.rows = x.end - x.begin;
  call.x_depth = x.depth;
  call.out = part.out.row<float>(x.begin);
  call.out_ld = part.out.ld;
  call.bias = part.bias;
  call.accumulate = part.accumulate;
  if (job.scratch_bytes > 0) call.scratch = ThreadScratch(job.scratch_bytes);
  int64_t panel = task % job.panel_tasks * job.panel_step, tile = task / job.panel_tasks * job.tile_step;
  job.run(call, panel, std::min(panel + job.panel_step, job.view.panels), tile, std::min(tile + job.tile_step, job.tiles));
}

// x as NVFP4 with a static scale: E2M1 x E4M3, exact in BF16 and F32; the scale itself goes to the product. Valid until the next call.
Matrix QuantizeStatic(const Matrix& x, float input_scale) {
  static thread_local Scratch memory;
  const bool bf16 = x.dtype == DType::kBF16;
  const moe::RowFormat format = bf16 ? moe::RowFormat::kBf16 : moe::RowFormat::kF32;
  const int64_t stride = moe::RecordBytes(format, moe::RoundUp(x.cols, moe::kG));
  std::byte* out = memory.Get(stride * x.rows);
  const auto prepare = platform::Cpu().HasAvx512() ? moe::PrepareRowAvx512 : moe::PrepareRowAvx2;
  platform::ParallelFor(x.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const void* row = bf16 ? static_cast<const void*>(x.row<uint16_t>(r)) : x.row<float>(r);
      prepare({moe::Form::kNvfp4Static, format, false, input_scale, bf16, row, x.cols, out + r * stride});
    }
  });
  return {out, x.dtype, x.rows, x.cols, stride / (bf16 ? 2 : 4)};
}

// `alpha` multiplies the products.
void RunPlain(const LinearOp& op, float alpha, const KernelChoice& kernels, Scratch& scratch) {
  const Matrix& x = op.x;
  if (x.rows == 0) return;
  HB_CHECK(x.dtype == DType::kF32 || x.dtype == DType::kBF16, tensor::DTypeName(x.dtype));
  const bool bf16 = x.dtype == DType::kBF16;
  std::vector<PackedRows> packed;
  std::vector<Job> jobs;
  for (const LinearPart& part : op.parts) {
    LinearView view = static_cast<const PackedLinear*>(part.weight)->view();
    HB_CHECK(alpha == 1.0f || view.kind == LinearKind::kNvfp4, "an input scale for weights that are not NVFP4");
    view.outer *= alpha;
    HB_CHECK(x.cols == view.k && part.out.cols == view.n && part.out.rows == x.rows && part.out.dtype == DType::kF32, "x [",
             x.rows, ", ", x.cols, "], W [", view.n, ", ", view.k, "], out [", part.out.rows, ", ", part.out.cols, "]");
    auto add = [&](const LinearKernel& kernel, LinearRun run, int64_t begin, int64_t end) {
      if (begin == end || view.panels == 0) return;
      size_t rows = FindRows(packed, kernel.act, kernel.tile_rows, begin, end, PaddedDepth(x.cols));
      jobs.push_back({&part, view, run, kernel.scratch_bytes ? kernel.scratch_bytes(view) : 0, rows,
                      (end - begin + kernel.tile_rows - 1) / kernel.tile_rows, 0, 0, 0, 0});
    };
    const int kind = static_cast<int>(view.kind);
    const LinearKernel &prompt = *kernels.linear[true][kind][bf16], &generated = *kernels.linear[false][kind][bf16];
    if (prompt.run_prompt == generated.run_generated) {
      add(prompt, prompt.run_prompt, 0, x.rows);
    } else {
      add(prompt, prompt.run_prompt, 0, op.prompt_rows);
      add(generated, generated.run_generated, op.prompt_rows, x.rows);
    }
  }
  int64_t bytes = 0;
  for (PackedRows& p : packed) {
    p.offset = bytes;
    if (!ServesAsItIs(x, p)) bytes += PackedBytes(p);
  }
  std::byte* memory = scratch.Get(bytes);
  for (PackedRows& p : packed) {
    if (ServesAsItIs(x, p)) p.data = static_cast<const std::byte*>(x.data) + p.begin * x.ld * tensor::DTypeBits(x.dtype) / 8;
    else PackRows(x, p, *kernels.rows, memory);
  }
  int64_t tasks = 0;
  for (Job& job : jobs) {
    CutJob(job);
    job.first_task = tasks;
    tasks += job.panel_tasks * ((job.tiles + job.tile_step - 1) / job.tile_step);
  }
  platform::ParallelFor(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      size_t j = jobs.size() - 1;
      while (jobs[j].first_task > t) --j;
      RunTask(jobs[j], packed[jobs[j].x], t - jobs[j].first_task);
    }
  });
}

}  // namespace

void RunLinear(const LinearOp& op, const KernelChoice& kernels, Scratch& scratch) {
  for (size_t i = 0; i < op.parts.size();) {  // parts with one input_scale side by side share its x
    const float scale = op.parts[i].weight->input_scale();
    size_t end = i + 1;
    while (end < op.parts.size() && op.parts[end].weight->input_scale() == scale) ++end;
    const Matrix x = scale > 0 ? QuantizeStatic(op.x, scale) : op.x;
    RunPlain({x, op.prompt_rows, op.parts.subspan(i, end - i)}, scale > 0 ? scale : 1.0f, kernels, scratch);
    i = end;
  }
}

}  // namespace halfbyte::kernels::cpu

// One workspace a calling thread: decode must not allocate.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "kernels/cpu/moe/experts.h"
#include "kernels/cpu/moe/run.h"
#include "kernels/cpu/moe/routing.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// Grows, keeps its memory and is never cleared: every step writes what the next one reads.
class Scratch {
 public:
  std::byte* Bytes(int64_t bytes) {
    if (bytes > static_cast<int64_t>(buffer_.bytes())) {
      auto grown = tensor::Buffer::Host(static_cast<size_t>(bytes + bytes / 4));
      HB_CHECK(grown.has_value(), "no memory for ", bytes, " bytes of expert activations");
      buffer_ = std::move(*grown);
    }
    return buffer_.as<std::byte>();
  }

 private:
  tensor::Buffer buffer_;
};

struct RowForm {
  Form form = Form::kPlain;
  RowFormat format = RowFormat::kF32;
  bool round = false;
  float input_scale = 1.0f;
  bool sorted = false;  // records of x in sorted order, a token's once for each of its experts

  friend bool operator==(const RowForm&, const RowForm&) = default;
};

// Rows [begin, end) of one operand in one form; rows are tokens, or sorted positions of h.
struct Records {
  RowForm form;
  int64_t begin = 0, end = 0;
  int64_t stride = 0;
  std::byte* data = nullptr;  // of row 0
  float* row_scale = nullptr;
};

// All forms of an operand that the kernels of a layer want: at most plain and quantized, in two formats each, for two classes.
constexpr int kForms = 6;
struct Operand {
  std::array<Records, kForms> records;
  int count = 0;
  std::array<Scratch, kForms> data, scale, sorted_data, sorted_scale;
};

// Which kernels a group uses.
struct Gemm {
  const MoeKernel* kernel[2] = {};  // of the two tiles of a pair; they share rows and GEMM and may decode differently
  const Records* records = nullptr;
};

struct Workspace {
  Routing routing;
  std::vector<Item> items;
  Operand x, h;
  Scratch hidden, y;
  std::vector<Gemm> gate_up, down;  // by group
};

// body(i) for i in [0, n), in order of i as threads become free.
template <typename Body>
void ForItems(int64_t n, const Body& body) {
  std::atomic<int64_t> next{0};
  platform::ParallelFor(std::min<int64_t>(n, platform::Threads()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
    }
  });
}

class MoeRun {
 public:
  MoeRun(const MoeOp& op, Workspace& ws)
      : op_(op), w_(static_cast<const CpuExperts&>(*op.experts)), spec_(w_.spec()), steps_(w_.kernels().steps), ws_(ws) {
    HB_CHECK(op.x.cols == spec_.d && op.out.cols == spec_.d && op.out.rows == op.x.rows && op.out.dtype == DType::kF32, "x [T, D], out F32 [T, D]");
    HB_CHECK(op.x.dtype == DType::kF32 || op.x.dtype == DType::kBF16, "x is BF16 or F32");
  }

  void Run() {
    SortRows(op_, ws_.routing);
    x_scale_ = w_.InputScale(false);
    h_scale_ = w_.InputScale(true);
    ldh_ = RoundUp(spec_.f, kTile);
    hidden_ = reinterpret_cast<float*>(ws_.hidden.Bytes(routed() * ldh_ * 4));
    y_ = reinterpret_cast<float*>(ws_.y.Bytes(routed() * spec_.d * 4));
    PlanGroups();
    Prepare(ws_.x, op_.x);
    GateUp();
    if (op_.observer)
      for (const RowGroup& g : ws_.routing.groups) op_.observer->Hidden(g.expert, Matrix(hidden_ + g.begin * ldh_, DType::kF32, g.rows, spec_.f, ldh_));
    Prepare(ws_.h, Matrix(hidden_, DType::kF32, routed(), spec_.f, ldh_));
    Down();
    Combine();
  }

 private:
  int64_t routed() const { return static_cast<int64_t>(ws_.routing.token.size()); }

  // What a matrix wants of its rows, given as plain BF16 or F32.
  RowClass ClassFor(WeightKind kind, bool bf16) const {
    if (kind == WeightKind::kNvfp4 && spec_.activations == ActivationForm::kInt8Groups) return RowClass::kInt8;
    if (kind == WeightKind::kNvfp4 && spec_.activations != ActivationForm::kPlain) return RowClass::kNvfp4;
    return bf16 ? RowClass::kBf16 : RowClass::kF32;
  }

  RowForm FormFor(RowClass rows, RowFormat format, bool down) const {
    RowForm form;
    form.format = format;
    form.round = down && spec_.round_hidden;
    if (rows == RowClass::kInt8) form.form = Form::kInt8;
    if (rows == RowClass::kNvfp4) form.form = spec_.activations == ActivationForm::kNvfp4Static ? Form::kNvfp4Static : Form::kNvfp4PerToken;
    if (form.form == Form::kNvfp4Static) form.input_scale = down ? h_scale_ : x_scale_;
    return form;
  }

  // The records of a form, for the rows of a class as well.
  static const Records* Find(Operand& operand, const RowForm& form, int64_t begin, int64_t end) {
    int i = 0;
    while (i < operand.count && !(operand.records[i].form == form)) ++i;
    HB_CHECK(i < kForms, "more row forms than a layer can have");
    Records& r = operand.records[i];
    if (i == operand.count) {
      ++operand.count;
      r = {};
      r.form = form;
      r.begin = begin;
      r.end = end;
    }
    r.begin = std::min(r.begin, begin);
    r.end = std::max(r.end, end);
    return &r;
  }

  Gemm Plan(WeightKind a, WeightKind b, bool bf16, bool down, bool prompt) {
    const KernelSet& set = w_.kernels();
    RowClass rows = ClassFor(a, bf16);
    Gemm g{{set.For(a, rows, prompt), set.For(b, rows, prompt)}, nullptr};
    if (g.kernel[0]->gemm != g.kernel[1]->gemm) {  // gate and up of different kinds: both through FP32 panels
      rows = RowClass::kF32;
      g = {{set.For(a, rows, prompt), set.For(b, rows, prompt)}, nullptr};
    }
    const int64_t rows_per_token = down ? op_.top_k : 1, middle = op_.prompt_rows * rows_per_token, all = op_.x.rows * rows_per_token;
    RowForm form = FormFor(rows, g.kernel[0]->rows, down);
    form.sorted = !down && g.kernel[0]->contiguous_rows;
    g.records = Find(down ? ws_.h : ws_.x, form, prompt ? 0 : middle, prompt ? middle : all);
    return g;
  }

  void PlanGroups() {
    ws_.gate_up.clear();
    ws_.down.clear();
    ws_.x.count = ws_.h.count = 0;
    for (const RowGroup& group : ws_.routing.groups) {
      const WeightKind gate = w_.layout(group.expert, ExpertPart::kGate).kind, up = w_.layout(group.expert, ExpertPart::kUp).kind;
      const WeightKind down = w_.layout(group.expert, ExpertPart::kDown).kind;
      ws_.gate_up.push_back(Plan(gate, up, op_.x.dtype == DType::kBF16, false, group.prompt));
      ws_.down.push_back(Plan(down, down, spec_.round_hidden, true, group.prompt));
    }
  }

  // Rows of x or h (sorted positions) into all the forms that are wanted.
  void Prepare(Operand& operand, const Matrix& source) const {
    const auto prepare = steps_.prepare;
    for (int i = 0; i < operand.count; ++i) {
      Records& r = operand.records[i];
      r.stride = RecordBytes(r.form.format, RoundUp(source.cols, kG));
      r.data = operand.data[i].Bytes((source.rows + 31) * r.stride);  // AMX reads whole tiles
      r.row_scale = reinterpret_cast<float*>(operand.scale[i].Bytes(source.rows * 4));
      platform::ParallelFor(r.end - r.begin, 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = r.begin + begin; row < r.begin + end; ++row) {
          const bool bf16 = source.dtype == DType::kBF16;
          const void* x = bf16 ? static_cast<const void*>(source.row<uint16_t>(row)) : source.row<float>(row);
          r.row_scale[row] = prepare({r.form.form, r.form.format, r.form.round, r.form.input_scale, bf16, x, source.cols, r.data + row * r.stride});
        }
      });
      if (r.form.sorted) SortRecords(r, operand.sorted_data[i], operand.sorted_scale[i]);
    }
  }

  void SortRecords(Records& r, Scratch& data, Scratch& scale) const {
    std::byte* to = data.Bytes((routed() + 31) * r.stride);
    auto* to_scale = reinterpret_cast<float*>(scale.Bytes(routed() * 4));
    platform::ParallelFor((r.end - r.begin) * op_.top_k, 8, [&](int64_t begin, int64_t end) {
      for (int64_t p = r.begin * op_.top_k + begin; p < r.begin * op_.top_k + end; ++p) {
        const int64_t token = ws_.routing.token[p];
        std::memcpy(to + p * r.stride, r.data + token * r.stride, static_cast<size_t>(r.stride));
        to_scale[p] = r.row_scale[token];
      }
    });
    r.data = to;
    r.row_scale = to_scale;
  }

  TileRef Tile(const MoeKernel& kernel, int64_t expert, ExpertPart part, int64_t tile) const {
    const PartLayout& p = w_.layout(expert, part);
    return {w_.tile(p, tile), kernel.decode, p.block_cols, p.e5m2};
  }

  // Rows [begin, end) by a pair of tiles; after(sums, row scales) takes the sums. record_of: sorted position -> row of the operand.
  template <typename RecordOf, typename After>
  static void PairOfTiles(const Gemm& g, const TileRef& w0, const TileRef& w1, int64_t k, int64_t begin, int64_t end, const RecordOf& record_of, const After& after) {
    alignas(64) float sums[kMostRows * kPair];
    const std::byte* rows[kMostRows];
    float scales[kMostRows];
    for (int64_t r = begin; r < end; ++r) {
      const int64_t record = record_of(r);
      rows[r - begin] = g.records->data + record * g.records->stride;
      scales[r - begin] = g.records->row_scale[record];
    }
    g.kernel[0]->gemm({{w0, w1}, k, rows, end - begin, sums});
    after(sums, scales);
  }

  void GateUp() {
    MakeItems(ws_.routing, RoundUp(spec_.f, kTile) / kTile, platform::Threads(), ws_.items);
    ForItems(static_cast<int64_t>(ws_.items.size()), [&](int64_t i) { GateUpItem(ws_.items[i]); });
  }

  void GateUpItem(const Item& item) const {
    const RowGroup& group = ws_.routing.groups[item.group];
    const Gemm& g = ws_.gate_up[item.group];
    const float gate_scale = w_.outer(group.expert, ExpertPart::kGate), up_scale = w_.outer(group.expert, ExpertPart::kUp);
    for (int64_t t = item.tile_begin; t < item.tile_end; ++t) {
      const TileRef gate = Tile(*g.kernel[0], group.expert, ExpertPart::kGate, t), up = Tile(*g.kernel[1], group.expert, ExpertPart::kUp, t);
      PairOfTiles(g, gate, up, spec_.d, item.row_begin, item.row_end, [&](int64_t p) { return g.records->form.sorted ? p : ws_.routing.token[p]; },
                  [&](const float* sums, const float* scales) {
                    steps_.swiglu({sums, item.row_end - item.row_begin, gate_scale, up_scale, scales, hidden_ + item.row_begin * ldh_ + t * kTile, ldh_});
                  });
    }
  }

  void Down() {
    MakeItems(ws_.routing, RoundUp(spec_.d, kPair) / kPair, platform::Threads(), ws_.items);
    ForItems(static_cast<int64_t>(ws_.items.size()), [&](int64_t i) { DownItem(ws_.items[i]); });
  }

  void DownItem(const Item& item) const {
    const RowGroup& group = ws_.routing.groups[item.group];
    const Gemm& g = ws_.down[item.group];
    const float scale = w_.outer(group.expert, ExpertPart::kDown);
    for (int64_t t = item.tile_begin; t < item.tile_end; ++t) {
      const TileRef left = Tile(*g.kernel[0], group.expert, ExpertPart::kDown, 2 * t), right = Tile(*g.kernel[0], group.expert, ExpertPart::kDown, 2 * t + 1);
      PairOfTiles(g, left, right, spec_.f, item.row_begin, item.row_end, [](int64_t p) { return p; }, [&](const float* sums, const float* scales) {
        steps_.scale({sums, item.row_end - item.row_begin, std::min(kPair, spec_.d - t * kPair), scale, scales,
                      y_ + item.row_begin * spec_.d + t * kPair, spec_.d});
      });
    }
  }

  void Combine() {
    platform::ParallelFor(op_.x.rows, 4, [&](int64_t begin, int64_t end) {
      std::vector<const float*> y(static_cast<size_t>(op_.top_k));
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t s = 0; s < op_.top_k; ++s) y[s] = y_ + ws_.routing.position[t * op_.top_k + s] * spec_.d;
        steps_.combine({y.data(), op_.weights.data() + t * op_.top_k, op_.top_k, spec_.d, op_.out.row<float>(t)});
      }
    });
  }

  const MoeOp& op_;
  const CpuExperts& w_;
  const ExpertsSpec& spec_;
  const MoeSteps& steps_;
  Workspace& ws_;
  float x_scale_ = 1.0f, h_scale_ = 1.0f;
  int64_t ldh_ = 0;
  float* hidden_ = nullptr;  // F32 [routed rows, F rounded up to 16]
  float* y_ = nullptr;       // F32 [routed rows, D]
};

}  // namespace

void Run(const MoeOp& op) {
  if (op.x.rows == 0) return;
  thread_local Workspace workspace;
  MoeRun(op, workspace).Run();
}

}  // namespace halfbyte::kernels::cpu::moe

// Loading with conversion never holds the 16-bit model: a Qwen3-MoE of 2.2 GB in BF16 with wide experts is loaded in a process of its own, whose peak
// resident size must stay below
//     packed weights + two experts' sources for each worker + 256 MiB.
// Prints what the load reached (parameters/s, GB/s) for one and for two workers, or for those given: peak_memory 1 2 4 8 16; and beside it what it cannot
// do without, each alone: reading the file, and first use of the memory for the packed weights (the kernel zeroes it).
//   peak_memory --write FOLDER   writes the model and keeps it (tools/measure_conversion.py)
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/load.h"
#include "platform/memory.h"
#include "platform/parallel.h"
#include "tensor/buffer.h"

namespace halfbyte {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLayers = 2, kExperts = 22, kHidden = 2048, kWidth = 4096, kVocab = 8192;
constexpr int64_t kExpertBytes = 3 * kHidden * kWidth * 2;
constexpr int64_t kFixedBytes = int64_t{256} << 20;

struct Tensor { std::string name; int64_t rows, cols; };

std::vector<Tensor> Tensors() {
  std::vector<Tensor> out = {{"model.embed_tokens.weight", kVocab, kHidden}, {"model.norm.weight", kHidden, 0}};
  for (int64_t l = 0; l < kLayers; ++l) {
    const std::string layer = base::StrCat("model.layers.", l, ".");
    for (auto [name, rows, cols] : std::initializer_list<std::tuple<const char*, int64_t, int64_t>>{
             {"input_layernorm", kHidden, 0}, {"post_attention_layernorm", kHidden, 0}, {"self_attn.q_norm", 128, 0}, {"self_attn.k_norm", 128, 0}, {"self_attn.q_proj", kHidden, kHidden},
             {"self_attn.k_proj", 256, kHidden}, {"self_attn.v_proj", 256, kHidden}, {"self_attn.o_proj", kHidden, kHidden}, {"mlp.gate", kExperts, kHidden}})
      out.push_back({base::StrCat(layer, name, ".weight"), rows, cols});
    // All gates, then all ups, then all downs: what belongs together is far apart in the file.
    for (const char* part : {"gate_proj", "up_proj", "down_proj"})
      for (int64_t e = 0; e < kExperts; ++e) {
        const bool down = part == std::string("down_proj");
        out.push_back({base::StrCat(layer, "mlp.experts.", e, ".", part, ".weight"), down ? kHidden : kWidth, down ? kWidth : kHidden});
      }
  }
  return out;
}

// BF16 of random signs and mantissas, exponents 2^-8 to 2^-5: one block of it, repeated over the file at changing offsets.
std::vector<uint16_t> RandomBlock() {
  std::vector<uint16_t> block(size_t{8} << 20);
  uint64_t state = 1;
  for (uint16_t& v : block) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t r = state >> 33;
    v = static_cast<uint16_t>((r & 0x807F) | ((119 + (r >> 20) % 4) << 7));
  }
  return block;
}

bool WriteModel(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << base::StrCat(R"({"model_type": "qwen3_moe", "hidden_act": "silu", "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "num_experts_per_tok": 2,)",
      R"( "norm_topk_prob": true, "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "max_position_embeddings": 4096, "hidden_size": )", kHidden, R"(, "num_hidden_layers": )", kLayers,
      R"(, "num_experts": )", kExperts, R"(, "moe_intermediate_size": )", kWidth, R"(, "vocab_size": )", kVocab, "}");
  std::string header = "{";
  uint64_t offset = 0;
  const std::vector<Tensor> tensors = Tensors();
  auto bytes = [](const Tensor& t) { return static_cast<uint64_t>(t.rows * std::max<int64_t>(t.cols, 1) * 2); };
  for (const Tensor& t : tensors) {
    header += base::StrCat(offset ? "," : "", "\"", t.name, R"(":{"dtype":"BF16","shape":[)", t.rows, t.cols ? base::StrCat(",", t.cols) : "", R"(],"data_offsets":[)", offset, ",", offset + bytes(t), "]}");
    offset += bytes(t);
  }
  header += "}";
  std::FILE* f = std::fopen((folder / "model.safetensors").c_str(), "wb");
  if (!f) return false;
  const uint64_t length = header.size();
  bool ok = std::fwrite(&length, 8, 1, f) == 1 && std::fwrite(header.data(), 1, length, f) == length;
  const std::vector<uint16_t> block = RandomBlock();
  size_t shift = 0;
  for (const Tensor& t : tensors)
    for (uint64_t left = bytes(t) / 2; left && ok;) {
      shift = (shift + 7919) % (block.size() / 2);
      const size_t n = std::min<uint64_t>(left, block.size() - shift);
      ok = std::fwrite(block.data() + shift, 2, n, f) == n;
      left -= n;
    }
  return std::fclose(f) == 0 && ok;
}

// User and system time of this process, all threads.
double CpuSeconds() {
  struct rusage use {};
  ::getrusage(RUSAGE_SELF, &use);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

template <typename Body>
double Seconds(const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// All bytes of the file into one buffer a worker.
void ReadAlone(const fs::path& file, int threads) {
  constexpr int64_t kChunk = int64_t{4} << 20;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const int64_t chunks = (static_cast<int64_t>(fs::file_size(file)) + kChunk - 1) / kChunk;
  platform::ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      std::vector<char> buffer(kChunk);
      for (int64_t i = worker; i < chunks; i += threads)
        if (::pread(fd, buffer.data(), kChunk, i * kChunk) <= 0) std::abort();
    }
  });
  ::close(fd);
}

// First use of so much memory.
void TouchAlone(int64_t bytes) {
  constexpr int64_t kPage = 4096, kChunk = int64_t{2} << 20;
  auto memory = tensor::Buffer::Host(static_cast<size_t>(bytes));
  if (!memory) std::abort();
  auto* p = memory->as<volatile char>();
  platform::ParallelFor(bytes / kChunk, 1, [&](int64_t begin, int64_t end) { for (int64_t at = begin * kChunk; at < end * kChunk; at += kPage) p[at] = 1; });
}

// In the child: loads and prints one line of JSON.
int LoadAndReport(const char* folder, int threads) {
  const uint64_t before = platform::PeakResidentBytes();
  const double cpu_before = CpuSeconds();
  model::LoadSettings settings;
  settings.quantization = "w4a16";
  settings.device = "cpu";
  settings.threads = threads;
  const auto loaded = model::LoadModel(folder, settings);
  if (!loaded) { std::fprintf(stderr, "%s\n", loaded.error().ToString().c_str()); return 1; }
  base::Json out = base::Json::MakeObject();
  out.Set("peak", platform::PeakResidentBytes());
  out.Set("before", before);
  out.Set("packed", loaded->packed_bytes);
  out.Set("seconds", loaded->stats.seconds);
  out.Set("cpu_seconds", CpuSeconds() - cpu_before);
  out.Set("parameters", loaded->stats.parameters);
  out.Set("bytes_read", loaded->stats.bytes_read);
  out.Set("read_alone", Seconds([&] { ReadAlone(fs::path(folder) / "model.safetensors", threads); }));
  out.Set("touch_alone", Seconds([&] { TouchAlone(loaded->packed_bytes); }));
  std::printf("%s\n", out.Dump().c_str());
  return 0;
}

base::Json RunChild(const fs::path& folder, int threads) {
  const std::string command = base::StrCat("'", fs::read_symlink("/proc/self/exe").string(), "' --load '", folder.string(), "' ", threads);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  const int status = ::pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  auto json = base::Json::Parse(text);
  return json ? *json : base::Json();
}

std::vector<int> g_workers = {1, 2};

// Removed however the test ends.
struct Scratch {
  fs::path path = fs::path(HALFBYTE_BUILD_DIR) / base::StrCat("peak_memory_model.", ::getpid());
  ~Scratch() { std::error_code ec; fs::remove_all(path, ec); }
};

TEST(PeakMemory, PackedWeightsAndTwoExpertsAWorker) {
  struct statvfs disk {};
  ::statvfs(HALFBYTE_BUILD_DIR, &disk);
  if (static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize < (uint64_t{4} << 30)) GTEST_SKIP() << "less than 4 GiB of disk for the generated model";
  if (platform::AvailableMemory() < (uint64_t{3} << 30)) GTEST_SKIP() << "less than 3 GiB of memory";
  const Scratch scratch;
  ASSERT_TRUE(WriteModel(scratch.path)) << scratch.path;
  ASSERT_GE(fs::file_size(scratch.path / "model.safetensors"), uint64_t{2} << 30);

  for (int threads : g_workers) {
    const base::Json r = RunChild(scratch.path, threads);
    ASSERT_TRUE(r.is_object());
    const int64_t peak = r.Find("peak")->as_int(), packed = r.Find("packed")->as_int(), bound = packed + 2 * kExpertBytes * threads + kFixedBytes;
    const double seconds = r.Find("seconds")->as_double(), parameters = static_cast<double>(r.Find("parameters")->as_int());
    std::printf("%d worker%s: %.3f G parameters/s (%.3f for a second of one core's time), %.2f GB/s, %.2f s; peak %.1f MB = packed %.1f + %.1f MB (of which %.1f MB before the load; bound packed + %.1f MB); alone: reading %.2f s, first use of the packed memory %.2f s\n", threads, threads > 1 ? "s" : "",
                parameters / 1e9 / seconds, parameters / 1e9 / r.Find("cpu_seconds")->as_double(), static_cast<double>(r.Find("bytes_read")->as_int()) / 1e9 / seconds, seconds, static_cast<double>(peak) / 1e6,
                static_cast<double>(packed) / 1e6, static_cast<double>(peak - packed) / 1e6, static_cast<double>(r.Find("before")->as_int()) / 1e6, static_cast<double>(bound - packed) / 1e6, r.Find("read_alone")->as_double(), r.Find("touch_alone")->as_double());
    EXPECT_LE(peak, bound);
    // The figures are plausible: everything was read, and the packed model is what the peak mostly is.
    EXPECT_GE(r.Find("bytes_read")->as_int(), int64_t{2} << 30);
    EXPECT_GT(peak, packed);
    EXPECT_LT(packed, int64_t{1} << 30);
  }
}

}  // namespace
}  // namespace halfbyte

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--load") return halfbyte::LoadAndReport(argv[2], std::atoi(argv[3]));
  if (argc == 3 && std::string(argv[1]) == "--write") return halfbyte::WriteModel(argv[2]) ? 0 : 1;
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) halfbyte::g_workers.clear();
  for (int i = 1; i < argc; ++i) halfbyte::g_workers.push_back(std::max(1, std::atoi(argv[i])));
  return RUN_ALL_TESTS();
}

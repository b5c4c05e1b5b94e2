// Halfbyte as a C++ library: loads a Hugging Face model folder, its routed experts becoming NVFP4 while they load, and generates from it.
//
//   auto model = halfbyte::Model::Load("/path/to/model");
//   if (!model) { std::cerr << model.error().message << "\n"; return 1; }
//   auto answer = model->Chat({{"user", "Why is the sky blue?"}});
//   if (answer) std::cout << answer->text << "\n";
//
// Needs C++17 and nothing else: no other library's types appear here. No function throws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#if defined(__GNUC__)
#define HALFBYTE_API __attribute__((visibility("default")))
#else
#define HALFBYTE_API
#endif

namespace halfbyte {

struct Error {
  enum class Code {
    kInvalidArgument,  // the call makes no sense as it is
    kNotFound,         // a file or model that is not there
    kBadFile,          // a file whose content breaks its format
    kUnsupported,      // well formed, but not something this build or machine can do
    kOutOfMemory,      // does not fit; for models checked before anything is read
    kIo,               // the operating system said no
    kUnavailable,      // try again later
    kInternal,
  };
  Code code = Code::kInternal;
  std::string message;  // one line: what, where, what to do about it
};

// A value or the Error that came instead of it. Reading the one that is not there is undefined, as with std::optional.
template <typename T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// The flags of the `halfbyte` program of the same names; the documentation of run modes is docs/modes.md.
struct LoadOptions {
  std::string quantization = "auto";  // auto, none, w4a16, w4a8, nvfp4_online, modelopt_fp4
  std::string device = "auto";        // auto, cpu, cuda, cuda:N, reference
  int threads = 0;                    // 0: all that the process may use
  std::vector<std::string> ignore_layers;      // experts of these modules stay as they are
  std::string dense_quantization = "none";     // none, fp8, nvfp4
  std::string kv_cache_dtype = "auto";         // auto, bf16, fp8_e4m3
  bool exact = false;                 // FP32 arithmetic throughout
  std::string chat_template;          // a Jinja file instead of the model's own; empty: the model's own
  int64_t max_batch = 32;             // answers computed at once
  int64_t kv_cache_tokens = 0;        // of all of them together; 0: as many as half of the free memory holds, at most max_batch * the model's length
  // What is done to every tensor, before a byte of data is read; may be empty.
  std::function<void(const std::string& load_report)> report;
};

struct GenerateOptions {
  int64_t max_tokens = 256;
  double temperature = 0;  // 0: greedy
  double top_p = 1;
  double min_p = 0;
  int64_t top_k = 0;       // 0: all
  uint64_t seed = 0;
  std::vector<std::string> stop;  // the text ends before the first of these
  bool ignore_eos = false;        // the model's end tokens are tokens like others
  // Called for each token with the text that became certain with it (often none, never a broken character); false ends the answer.
  // Comes from a thread of the library and must not call the same Model.
  std::function<bool(int32_t token, const std::string& text)> on_token;
};

struct Completion {
  std::vector<int32_t> prompt_tokens;
  std::vector<int32_t> tokens;  // the end token included
  std::string text;             // without the end token; empty where the model has no tokenizer
  std::string finish_reason;    // "stop", "length"
  double first_token_seconds = 0, total_seconds = 0;
};

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// A loaded model. Generate and its kin may be called from many threads at once; their work is computed together, and on the CPU an answer is
// the same to the last bit whatever runs beside it.
class HALFBYTE_API Model {
 public:
  // model: a folder, "org/name" (a snapshot in the local Hugging Face cache), or "demo".
  static Result<Model> Load(const std::string& model, const LoadOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();  // ends what still runs

  Result<Completion> Generate(const std::vector<int32_t>& prompt, const GenerateOptions& options = {}) const;
  // The text is encoded with the special tokens that the tokenizer puts around it.
  Result<Completion> GenerateText(const std::string& prompt, const GenerateOptions& options = {}) const;
  // The messages go through the model's chat template.
  Result<Completion> Chat(const std::vector<Message>& messages, const GenerateOptions& options = {}) const;

  Result<std::vector<int32_t>> Encode(const std::string& text, bool add_special_tokens = true) const;
  Result<std::string> Decode(const std::vector<int32_t>& tokens, bool skip_special_tokens = true) const;

  int64_t vocabulary() const;
  int64_t max_length() const;  // of prompt and answer together
  std::string family() const;  // "qwen3_moe"

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "0.1.0"
HALFBYTE_API const char* Version();

}  // namespace halfbyte

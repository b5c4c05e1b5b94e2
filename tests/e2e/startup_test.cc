// What goes wrong at start, for every command with a model: one clear line on stderr and exit 1, before anything has cost time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace halfbyte::e2e {
namespace {

namespace fs = std::filesystem;
using checkpoint::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kDemo = HALFBYTE_SOURCE_DIR "/models/demo";

// Commands in full, but for the model; FILE is a file that fits the command.
struct Command {
  const char* name;
  std::vector<std::string> arguments;
  const char* file = "";
  bool loads = true;  // false: it reads headers, or writes files piece by piece, and needs no memory for the whole model
};
const std::vector<Command>& Commands() {
  static const auto& commands = *new std::vector<Command>{
      {"generate", {"generate", "--prompt", "Olga saves"}},
      {"generate --tokens", {"generate", "--tokens", "1,2,3"}},
      {"chat", {"chat"}},
      {"serve", {"serve", "--port", "0"}},
      {"quantize", {"quantize", "--out", "FILE.new"}, "", false},
      {"inspect", {"inspect"}, "", false},
      {"eval logits", {"eval", "logits", "--tokens", "FILE", "--out", "FILE.new"}, "[[1, 2, 3]]"},
      {"eval perplexity", {"eval", "perplexity", "--documents", "FILE"}, "{\"text\": \"Olga saves $23 every week.\"}"},
      {"eval compare", {"eval", "compare", "--against", "none", "--documents", "FILE"}, "{\"text\": \"Olga saves $23 every week.\"}"},
      {"eval gsm8k", {"eval", "gsm8k", "--file", "FILE"}, "{\"question\": \"How many?\", \"answer\": \"4\"}"},
      {"bench", {"bench"}},
  };
  return commands;
}

std::string FailureWith(const Command& c, const std::string& model, const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("file", c.file).string();
  std::vector<std::string> arguments = c.arguments;
  for (std::string& a : arguments)
    if (a.starts_with("FILE")) a = file + a.substr(4);
  arguments.insert(arguments.end(), {"--model", model});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const std::string error = FailureOf(arguments);
  for (const auto& entry : fs::directory_iterator(folder.path())) EXPECT_EQ(entry.path(), file) << "left behind";
  return error;
}

class StartUp : public testing::TestWithParam<Command> {};

TEST_P(StartUp, WrongPath) { EXPECT_EQ(FailureWith(GetParam(), "/no/such/folder"), "there is no folder /no/such/folder"); }

TEST_P(StartUp, FolderWithoutAModel) {
  const TemporaryFolder empty;
  EXPECT_THAT(FailureWith(GetParam(), empty.path().string()), HasSubstr(empty.path().string()));
}

TEST_P(StartUp, TruncatedShard) {
  const ModelCopy model(kDemo);
  const fs::path shard = model.path() / "model-00002-of-00002.safetensors";
  fs::resize_file(shard, fs::file_size(shard) - 1);
  EXPECT_THAT(FailureWith(GetParam(), model.string()), HasSubstr(shard.string()));
}

TEST_P(StartUp, UnknownFamilyListsTheKnownOnes) {
  const ModelCopy model(kDemo);
  model.Change("config.json", "\"qwen3_moe\"", "\"gemma9\"");
  model.Change("config.json", "Qwen3MoeForCausalLM", "Gemma9ForCausalLM");
  EXPECT_THAT(FailureWith(GetParam(), model.string()), AllOf(HasSubstr("unknown model family \"gemma9\""), HasSubstr("qwen3_moe, qwen2_moe, mixtral, olmoe, llama, qwen3")));
}

// A made-up model of some 10 TB, refused before anything is allocated or read.
TEST_P(StartUp, OutOfMemoryBeforeLoading) {
  if (!GetParam().loads) return;
  const ModelCopy model(kDemo);
  std::ofstream(model.path() / "config.json") << R"({"model_type": "qwen3_moe", "hidden_act": "silu", "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
    "num_hidden_layers": 100, "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 8192, "vocab_size": 150000, "max_position_embeddings": 4096})";
  for (const char* mode : {"none", "w4a16"})
    EXPECT_THAT(FailureWith(GetParam(), model.string(), {"--load-format", "dummy", "--quantization", mode}), AllOf(HasSubstr("this model needs"), HasSubstr("GiB are free")));
}

TEST_P(StartUp, WrongUsage) {
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.push_back("--no-such-flag");
  EXPECT_THAT(WrongUsageOf(arguments), HasSubstr("--no-such-flag"));
}

INSTANTIATE_TEST_SUITE_P(Commands, StartUp, testing::ValuesIn(Commands()), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

}  // namespace
}  // namespace halfbyte::e2e

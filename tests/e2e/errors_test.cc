// What goes wrong at start: one clear line on stderr and exit 1; wrong usage: exit 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::e2e {
namespace {

namespace fs = std::filesystem;
using checkpoint::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kTiny = HALFBYTE_TEST_DATA "/models/qwen3_moe";

struct Copy : ModelCopy {
  explicit Copy(const fs::path& from = kTiny) : ModelCopy(from) {}
};

std::string LoadFailure(const fs::path& model, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"generate", "--model", model.string(), "--tokens", "1,2,3"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return FailureOf(std::move(arguments));
}

TEST(Errors, WrongPaths) {
  EXPECT_EQ(LoadFailure("/no/such/folder"), "there is no folder /no/such/folder");
  EXPECT_THAT(LoadFailure(kTiny / "model.safetensors"), HasSubstr("is a file, a model is a folder"));
  TemporaryFolder empty;
  EXPECT_THAT(LoadFailure(empty.path()), AllOf(HasSubstr(empty.path().string()), HasSubstr("no config.json")));
  EXPECT_THAT(FailureOf({"generate", "--model", "some-org/some-model", "--tokens", "1"}, {.environment = {{"HF_HOME", empty.path().string()}}}),
              AllOf(HasSubstr("hf download some-org/some-model"), HasSubstr(empty.path().string())));
}

TEST(Errors, TruncatedAndMissingShards) {
  Copy truncated;
  fs::resize_file(truncated.path() / "model.safetensors", 200'000);
  EXPECT_THAT(LoadFailure(truncated.path()), HasSubstr((truncated.path() / "model.safetensors").string()));
  Copy missing;
  fs::remove(missing.path() / "model.safetensors");
  EXPECT_THAT(LoadFailure(missing.path()), AllOf(HasSubstr("no *.safetensors"), HasSubstr("the download may be incomplete")));
  Copy demo(HALFBYTE_SOURCE_DIR "/models/demo");
  fs::remove(demo.path() / "model-00002-of-00002.safetensors");
  EXPECT_THAT(LoadFailure(demo.path()), AllOf(HasSubstr("model-00002-of-00002.safetensors"), HasSubstr("the download may be incomplete")));
}

TEST(Errors, BrokenConfigs) {
  Copy m;
  m.Change("config.json", "{", "{{");
  EXPECT_THAT(LoadFailure(m.path()), HasSubstr("config.json"));
  Copy size;
  size.Change("config.json", "\"hidden_size\": 64", "\"hidden_size\": \"64\"");
  EXPECT_THAT(LoadFailure(size.path()), AllOf(HasSubstr("config.json"), HasSubstr("hidden_size")));
  Copy other;
  other.Change("config.json", "\"hidden_size\": 64", "\"hidden_size\": 128");
  EXPECT_THAT(LoadFailure(other.path()), AllOf(HasSubstr("model.embed_tokens.weight"), HasSubstr("[256, 64]")));
}

TEST(Errors, ModesThatDoNotFitTheModel) {
  EXPECT_THAT(LoadFailure(HALFBYTE_TEST_DATA "/models/llama", {"--quantization", "w4a16"}), AllOf(HasSubstr("no experts"), HasSubstr("--dense-quantization")));
  EXPECT_THAT(LoadFailure(kTiny, {"--device", "cuda"}), HasSubstr("CUDA"));
}

TEST(Errors, RequestsThatCannotBeServed) {
  EXPECT_THAT(FailureOf({"generate", "--model", kTiny.string(), "--tokens", "1,256"}), AllOf(HasSubstr("token 256"), HasSubstr("[0, 256)"), testing::Not(HasSubstr("loaded"))));
  EXPECT_THAT(FailureOf({"generate", "--model", kTiny.string(), "--prompt", "text"}), HasSubstr("tokenizer.json"));
  Copy plain(HALFBYTE_SOURCE_DIR "/models/demo");
  fs::remove(plain.path() / "tokenizer_config.json");
  EXPECT_THAT(FailureOf({"generate", "--model", plain.path().string(), "--prompt", "text", "--chat"}), HasSubstr("--chat-template"));
  EXPECT_THAT(FailureOf({"generate", "--prompt-file", "/no/such/file"}), HasSubstr("/no/such/file"));
  EXPECT_THAT(FailureOf({"eval", "logits", "--model", kTiny.string(), "--tokens", "/no/such/file", "--out", "/tmp/never"}), HasSubstr("/no/such/file"));
  EXPECT_THAT(FailureOf({"eval", "perplexity", "--documents", "/no/such/file"}), HasSubstr("/no/such/file"));
  EXPECT_THAT(FailureOf({"inspect", "--config", "/no/such/file"}), HasSubstr("/no/such/file"));
  EXPECT_THAT(FailureOf({"tokenize", "--model", kTiny.string(), "--text", "x"}), HasSubstr("tokenizer.json"));
  TemporaryFolder folder;
  const fs::path tokens = folder.Write("t.json", "[[1, 2], [3, 999]]");
  EXPECT_THAT(FailureOf({"eval", "logits", "--model", kTiny.string(), "--tokens", tokens.string(), "--out", (folder.path() / "o").string()}), HasSubstr(tokens.string()));
  folder.Write("t.json", "[[1, 2]]");
  EXPECT_THAT(FailureOf({"eval", "logits", "--model", kTiny.string(), "--tokens", tokens.string(), "--out", "/no/such/folder/o"}), HasSubstr("/no/such/folder/o"));
}

TEST(Errors, AnUnknownCommandIsNamed) { EXPECT_THAT(RunProgram({"frobnicate"}).err, HasSubstr("no command \"frobnicate\"")); }

TEST(Errors, HelpAndVersionSucceed) {
  EXPECT_THAT(RunProgram({"--version"}).out, HasSubstr("halfbyte "));
  const Output help = RunProgram({"--help"});
  EXPECT_EQ(help.exit, 0);
  for (const char* command : {"generate", "chat", "inspect", "eval", "bench", "tokenize", "detokenize", "template", "devices"}) EXPECT_THAT(help.out, HasSubstr(command));
  EXPECT_EQ(RunProgram({"generate", "--help"}).exit, 0);
}

}  // namespace
}  // namespace halfbyte::e2e

// Files and texts that a command is given: read with a bound, never waited for, and explained where they are no good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "e2e/program.h"

namespace halfbyte::e2e {
namespace {

namespace fs = std::filesystem;
using checkpoint::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const fs::path kTiny = HALFBYTE_TEST_DATA "/models/qwen3_moe";
const fs::path kDemo = HALFBYTE_SOURCE_DIR "/models/demo";

// Every flag that names a file to read, in a command that would work with a good one.
std::vector<std::vector<std::string>> Readers(const TemporaryFolder& folder) {
  return {{"generate", "--prompt-file"}, {"eval", "perplexity", "--documents"}, {"eval", "perplexity", "--text"}, {"eval", "compare", "--against", "none", "--documents"},
          {"eval", "gsm8k", "--file"}, {"eval", "logits", "--out", (folder.path() / "o").string(), "--tokens"}, {"inspect", "--config"}, {"generate", "--prompt", "x", "--chat", "--chat-template"}};
}

TEST(Inputs, ThatAreNoFilesAreRefusedAtOnce) {
  const TemporaryFolder folder;
  const fs::path fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::vector<std::string>& reader : Readers(folder)) {
    for (const auto& [path, what] : std::vector<std::pair<std::string, std::string>>{{"/dev/zero", "a device"}, {fifo.string(), "a FIFO"}, {folder.path().string(), "a folder"}}) {
      std::vector<std::string> arguments = reader;
      arguments.push_back(path);
      const std::string error = FailureOf(arguments, {.seconds = 120});
      EXPECT_THAT(error, AllOf(HasSubstr(path), HasSubstr(reader.back() == "--chat-template" ? "not a regular file" : what))) << testing::PrintToString(arguments);
      if (reader.back() != "--config" && reader.back() != "--chat-template") { EXPECT_THAT(error, HasSubstr(reader.back() + " - reads stdin")); }
    }
    std::vector<std::string> missing = reader;
    missing.push_back("/no/such/file");
    EXPECT_THAT(FailureOf(missing), HasSubstr("/no/such/file"));
  }
}

TEST(Inputs, HaveABound) {
  const TemporaryFolder folder;
  const fs::path large = folder.Write("large", "");
  fs::resize_file(large, uint64_t{300} << 20);
  EXPECT_THAT(FailureOf({"generate", "--prompt-file", large.string()}), AllOf(HasSubstr(large.string()), HasSubstr("at most")));
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"generate", "--prompt-file", "-"}, {"tokenize"}, {"detokenize"}, {"template"}}) {
    const Output o = RunProgram(command, {.seconds = 300, .stdin_path = "/dev/zero"});
    EXPECT_EQ(o.exit, 1) << command[0];
    EXPECT_THAT(o.err, HasSubstr("stdin has more than 256 MiB")) << command[0];
  }
}

TEST(Inputs, DashIsStdin) {
  const std::string text = "Tom has 5 apples.";
  const std::vector<std::string> more = {"--max-tokens", "8", "-q"};
  auto run = [&](std::vector<std::string> arguments, const std::string& in) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, {.stdin_text = in});
  };
  const Output want = run({"generate", "--prompt", text}, ""), got = run({"generate", "--prompt-file", "-"}, text);
  EXPECT_EQ(got.exit, 0) << got.err;
  EXPECT_EQ(got.out, want.out);
  const Output scored = RunProgram({"eval", "perplexity", "--documents", "-", "-q"}, {.stdin_text = "{\"text\": \"Olga saves $23 every week.\"}\n"});
  EXPECT_EQ(scored.exit, 0) << scored.err;
}

TEST(Inputs, AStdinThatCannotBeReadIsAFailure) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"generate", "--prompt-file", "-"}, {"tokenize"}, {"tokenize", "--jsonl"}, {"template"}}) {
    const Output o = RunProgram(command, {.stdin_path = "/"});
    EXPECT_EQ(o.exit, 1) << command[0];
    EXPECT_THAT(o.err, HasSubstr("stdin cannot be read")) << command[0];
  }
}

TEST(Inputs, AnEmptyPromptIsSaidToBeEmpty) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("empty", "").string();
  EXPECT_THAT(FailureOf({"generate", "--prompt-file", file}), AllOf(HasSubstr(file), HasSubstr("is empty")));
  EXPECT_THAT(WrongUsageOf({"generate", "--prompt", ""}), HasSubstr("empty"));
}

TEST(Inputs, TextThatIsNotUtf8IsCounted) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("text", "Olga \xFF saves \xC3 23 \xE2\x82 dollars every week").string();
  const Output o = RunProgram({"generate", "--prompt-file", file, "--max-tokens", "1", "-q"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_THAT(o.err, AllOf(HasSubstr("warning"), HasSubstr("not UTF-8 in 3 places"), HasSubstr("U+FFFD")));
  EXPECT_THAT(RunProgram({"tokenize", "--text", "a\xFF"}).err, HasSubstr("not UTF-8 in 1 place;"));
  EXPECT_THAT(RunProgram({"eval", "perplexity", "--text", file, "-q"}).err, HasSubstr("not UTF-8 in 3 places"));
  EXPECT_EQ(RunProgram({"tokenize", "--text", "aé"}).err, "");
}

TEST(Inputs, TemplateArgumentsHaveTheirTypes) {
  for (const char* line : {R"({"messages": [], "tools": 5})", R"({"messages": [], "tools": {}})", R"({"messages": [], "extra": []})", R"({"messages": {}})"}) {
    EXPECT_EQ(RunProgram({"template"}, {.stdin_text = line}).exit, 1) << line;
    EXPECT_THAT(RunProgram({"template", "--jsonl"}, {.stdin_text = line}).out, HasSubstr("\"error\"")) << line;
  }
}

TEST(Inputs, LogitsOfNothingAndOutputsThatWouldDoHarm) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "o.safetensors").string();
  auto failure = [&](const std::string& tokens, const std::string& model, const std::string& to) {
    return FailureOf({"eval", "logits", "--model", model, "--tokens", folder.Write("t.json", tokens).string(), "--out", to});
  };
  for (const char* tokens : {"[]", "[[]]", "[1]", "{}", "[[1], []]", "[[-1]]", "[[1.5]]", "[[2147483648]]"})
    EXPECT_THAT(failure(tokens, kTiny.string(), out), AllOf(HasSubstr("t.json"), HasSubstr("a list of lists of token ids"))) << tokens;
  EXPECT_THAT(failure("[[1]]", kTiny.string(), "/no/such/folder/o"), HasSubstr("no folder /no/such/folder"));
  const ModelCopy model(kTiny);
  for (const char* name : {"model.safetensors", "config.json"}) {
    const std::string before = ReadFile(model.path() / name);
    EXPECT_THAT(failure("[[1]]", model.string(), (model.path() / name).string()), AllOf(HasSubstr(name), HasSubstr("a file of the model")));
    EXPECT_EQ(ReadFile(model.path() / name), before);
  }
  EXPECT_FALSE(fs::exists(out));
}

TEST(Inputs, AnswersAndCachesAreCheckedBeforeLoading) {
  // Longer than the model's context is no error: the answer ends there.
  EXPECT_EQ(RunProgram({"generate", "--chat", "--prompt", "2 + 2?", "--max-tokens", "1000000000000000000", "-q"}).exit, 0);
  EXPECT_THAT(FailureOf({"bench", "--prompt-tokens", "100000"}), AllOf(HasSubstr("2048"), HasSubstr("--prompt-tokens")));
  EXPECT_THAT(FailureOf({"bench", "--context", "2000"}), AllOf(HasSubstr("2048"), HasSubstr("--context")));
  // Some 4 MB of keys and values a token, in a model of a few hundred MB that is never made.
  const TemporaryFolder folder;
  folder.Write("config.json", R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 4096, "num_hidden_layers": 4,
    "intermediate_size": 64, "vocab_size": 256, "max_position_embeddings": 10000000})");
  const std::string model = folder.path().string();
  auto failure = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--model", model, "--load-format", "dummy"});
    return FailureOf(arguments);
  };
  EXPECT_THAT(failure({"generate", "--tokens", "1", "--max-tokens", "9000000"}), AllOf(HasSubstr("KV cache"), HasSubstr("--max-tokens"), Not(HasSubstr("--max-batch"))));
  EXPECT_THAT(failure({"bench", "--batch", "4096"}), AllOf(HasSubstr("KV cache"), HasSubstr("--batch"), Not(HasSubstr("--max-batch"))));
  EXPECT_THAT(failure({"bench", "--context", "9000000"}), AllOf(HasSubstr("KV cache"), HasSubstr("--context")));
  EXPECT_THAT(failure({"serve", "--port", "0", "--skip-tokenizer-init", "--kv-cache-tokens", "9000000"}), AllOf(HasSubstr("KV cache"), HasSubstr("--kv-cache-tokens")));
}

TEST(Inputs, WhatServeNeedsIsThereBeforeLoading) {
  EXPECT_THAT(FailureOf({"serve", "--port", "0", "--allow-weight-root", "/no/such/folder"}), AllOf(HasSubstr("--allow-weight-root"), HasSubstr("/no/such/folder")));
  const TemporaryFolder folder;
  const std::string text = folder.Write("text", "no certificate").string();
  for (const char* path : {"/dev/zero", "/no/such/file", "/"})
    for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{{"--api-key-file", path}, {"--tls-cert", path, "--tls-key", text}, {"--tls-key", path, "--tls-cert", text}}) {
      std::vector<std::string> arguments = {"serve", "--port", "0"};
      arguments.insert(arguments.end(), flags.begin(), flags.end());
      EXPECT_THAT(FailureOf(arguments, {.seconds = 120}), AllOf(HasSubstr(flags[0]), HasSubstr(path))) << testing::PrintToString(flags);
    }
  EXPECT_THAT(FailureOf({"serve", "--port", "0", "--tls-cert", text, "--tls-key", text}), AllOf(HasSubstr("--tls-cert"), HasSubstr(text)));
  EXPECT_THAT(FailureOf({"serve", "--port", "0", "--model", kTiny.string()}), AllOf(HasSubstr("no tokenizer.json"), HasSubstr("--skip-tokenizer-init")));
}

TEST(Inputs, WithoutAHomeTheUserDatabaseSaysWhereTheCacheIs) {
  const std::vector<std::string> none = {"HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"};
  const std::string error = FailureOf({"generate", "--model", "some-org/some-model", "--tokens", "1"}, {.unset = none});
  EXPECT_THAT(error, testing::AnyOf(HasSubstr("cache /"), HasSubstr("set HF_HOME"))) << "a cache relative to the working directory";
}

TEST(Inputs, ConfigsThatMakeNoSense) {
  const TemporaryFolder folder;
  const std::string good = ReadFile(kTiny / "config.json");
  auto with = [&](const std::string& field, const std::string& value) {
    auto json = base::Json::Parse(good);
    json->Set(field, *base::Json::Parse(value));
    return FailureOf({"inspect", "--config", folder.Write("config.json", json->Dump()).string()});
  };
  for (const auto& [field, value] : std::vector<std::pair<std::string, std::string>>{
           {"rms_norm_eps", "-1e-6"}, {"rms_norm_eps", "5"}, {"decoder_sparse_step", "0"}, {"decoder_sparse_step", "-1"}, {"architectures", "5"}, {"architectures", "[5]"},
           {"num_nextn_predict_layers", "-1"}, {"num_hidden_layers", "0"}, {"model_type", "5"}})
    EXPECT_THAT(with(field, value), HasSubstr(field)) << value;
  EXPECT_THAT(FailureOf({"inspect", "--config", folder.Write("config.json", "[]").string()}), HasSubstr("an object is wanted"));
  // Where tensors are there too.
  const ModelCopy model(kTiny);
  auto json = base::Json::Parse(good);
  json->Set("decoder_sparse_step", 0);
  std::ofstream(model.path() / "config.json") << json->Dump();
  EXPECT_THAT(FailureOf({"inspect", "--model", model.string()}), HasSubstr("decoder_sparse_step"));
}

// A num_hidden_layers that is too small would make a shallower model, quietly.
TEST(Inputs, LayersBeyondTheConfigsCount) {
  const ModelCopy model(kTiny);
  auto json = base::Json::Parse(ReadFile(model.path() / "config.json"));
  const int64_t layers = json->Find("num_hidden_layers")->as_int();
  ASSERT_GT(layers, 1);
  auto write = [&] { std::ofstream(model.path() / "config.json") << json->Dump(); };
  json->Set("num_hidden_layers", layers - 1);
  write();
  for (const char* command : {"inspect", "generate --tokens 1", "quantize --out"}) {
    std::vector<std::string> arguments;
    std::istringstream in(command);
    for (std::string w; in >> w;) arguments.push_back(w);
    if (arguments.back() == "--out") arguments.push_back((model.path() / "new").string());
    arguments.insert(arguments.end(), {"--model", model.string()});
    EXPECT_THAT(FailureOf(arguments), AllOf(HasSubstr(base::StrCat("model.layers.", layers - 1, ".")), HasSubstr("num_hidden_layers"), HasSubstr("num_nextn_predict_layers"))) << command;
  }
  json->Set("num_nextn_predict_layers", 1);
  write();
  EXPECT_THAT(RunProgram({"inspect", "--model", model.string()}).out, HasSubstr("(MTP layer)"));
}

TEST(Inputs, TokenizersThatLackSomething) {
  const TemporaryFolder folder;
  auto failure = [&](const std::string& model) {
    folder.Write("tokenizer.json", "{\"model\": " + model + "}");
    return FailureOf({"tokenize", "--model", folder.path().string(), "--text", "ab"});
  };
  EXPECT_THAT(failure(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})"), AllOf(HasSubstr("id 0"), HasSubstr("\"a\""), HasSubstr("\"b\"")));
  EXPECT_THAT(failure(R"({"type": "BPE", "vocab": {"a": 0, "b": 1}})"), HasSubstr("\"merges\" is missing"));
  fs::resize_file(folder.path() / "tokenizer.json", uint64_t{64} << 30);  // of holes
  EXPECT_THAT(FailureOf({"tokenize", "--model", folder.path().string(), "--text", "ab"}), HasSubstr("at most 1073741824"));
  EXPECT_THAT(FailureOf({"generate", "--model", folder.path().string(), "--prompt", "ab"}), HasSubstr("at most 1073741824"));
  fs::remove(folder.path() / "tokenizer.json");
  folder.Write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  EXPECT_EQ(RunProgram({"tokenize", "--model", folder.path().string(), "--text", "ab"}).out, "{\"ids\":[0,1]}\n");
}

}  // namespace
}  // namespace halfbyte::e2e

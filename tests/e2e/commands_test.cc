// The commands' contract: keys of their JSON, where a model is found, one line out for one line in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"
#include "support/golden_file.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::e2e {
namespace {

namespace fs = std::filesystem;
using base::Json;
using checkpoint::TemporaryFolder;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const std::string kTiny = HALFBYTE_TEST_DATA "/models/qwen3_moe";
constexpr const char* kProblem = "Olga saves $23 every week for 13 weeks. A bicycle costs $311. How many more dollars are needed to buy it?";

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  if (object.is_object()) for (const auto& [key, value] : object.as_object()) keys.push_back(key);
  return keys;
}
void ExpectKeys(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) EXPECT_THAT(Keys(object), Contains(std::string(key)));
}
std::vector<int64_t> Ints(const Json* list) {
  std::vector<int64_t> out;
  if (list && list->is_array()) for (const Json& v : list->as_array()) out.push_back(v.as_int());
  return out;
}
std::string Joined(const std::vector<int64_t>& ids) {
  std::string out;
  for (int64_t id : ids) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

TEST(Generate, AnswersAWordProblemWithTheLoadReport) {
  const Output o = RunProgram({"generate", "--model", "demo", "--chat", "--prompt", kProblem});
  EXPECT_EQ(o.exit, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("#### 12"));
  EXPECT_THAT(o.err, AllOf(HasSubstr("NVFP4"), HasSubstr("loaded"), HasSubstr("G parameters/s")));
  EXPECT_EQ(RunProgram({"generate", "--chat", "--prompt", kProblem, "-q"}).err, "");
}

// The cache is for as many tokens as the model can have, whatever is asked for.
TEST(Generate, MoreTokensThanTheModelHasAreAskedFor) {
  const Json j = RunJson({"generate", "--chat", "--prompt", kProblem, "--json", "-q", "--max-tokens", "1000000000"});
  EXPECT_EQ(j.Find("finish_reason")->as_string(), "stop");
  EXPECT_THAT(j.Find("text")->as_string(), HasSubstr("#### 12"));
}

TEST(Generate, JsonFromTokensNeedsNoTokenizer) {
  const test::GoldenFile expected = test::ReadGolden(kTiny + "/expected.safetensors");
  std::vector<int64_t> prompt = expected.at("input_ids").As<int64_t>(), greedy = expected.at("greedy").As<int64_t>();
  prompt.resize(8);
  if (auto end = std::find(greedy.begin(), greedy.end(), 2); end != greedy.end()) greedy.erase(end + 1, greedy.end());  // 2 is the model's end token
  const Json j = RunJson({"generate", "--model", kTiny, "--tokens", Joined(prompt), "--max-tokens", "24", "--quantization", "none", "--exact", "--json", "-q"});
  ExpectKeys(j, {"prompt_tokens", "tokens", "text", "finish_reason", "timings"});
  EXPECT_EQ(Ints(j.Find("prompt_tokens")), prompt);
  EXPECT_EQ(Ints(j.Find("tokens")), greedy);
  EXPECT_TRUE(j.Find("text")->is_null());
  EXPECT_EQ(j.Find("finish_reason")->as_string(), greedy.back() == 2 ? "stop" : "length");
  ExpectKeys(*j.Find("timings"), {"first_token_seconds", "total_seconds"});
}

TEST(Generate, TextStopStringsAndLimits) {
  const Json whole = RunJson({"generate", "--chat", "--prompt", kProblem, "--json", "-q"});
  const std::string text = whole.Find("text")->as_string();
  EXPECT_EQ(whole.Find("finish_reason")->as_string(), "stop");
  EXPECT_EQ(Ints(whole.Find("tokens")).back(), 2);                 // the end token is among the tokens
  EXPECT_EQ(text.find("<|"), text.npos) << text;                   // and not in the text
  const Json cut = RunJson({"generate", "--chat", "--prompt", kProblem, "--json", "-q", "--max-tokens", "5"});
  EXPECT_EQ(cut.Find("finish_reason")->as_string(), "length");
  EXPECT_EQ(Ints(cut.Find("tokens")).size(), 5u);
  EXPECT_TRUE(text.starts_with(cut.Find("text")->as_string()));
  const Json stopped = RunJson({"generate", "--chat", "--prompt", kProblem, "--json", "-q", "--stop", "####"});
  EXPECT_EQ(stopped.Find("text")->as_string(), text.substr(0, text.find("####")));
  EXPECT_EQ(stopped.Find("finish_reason")->as_string(), "stop");
  EXPECT_EQ(RunProgram({"generate", "--chat", "--prompt", kProblem, "-q"}).out, text + "\n");
}

// On a terminal both are one text: the answer's line ends before the line of figures begins.
TEST(Generate, TheAnswerEndsBeforeTheFigures) {
  const TemporaryFolder folder;
  const std::string both = folder.Write("both", "").string();
  const Output o = RunProgram({"generate", "--prompt", "Olga saves", "--max-tokens", "3"}, {.stdout_path = both, .stderr_path = both});
  EXPECT_EQ(o.exit, 0);
  EXPECT_THAT(ReadFile(both), testing::ContainsRegex("\n[0-9]+ prompt tokens, 3 generated"));
}

TEST(Chat, AnswersMessagesFromAPipe) {
  const Output o = RunProgram({"chat", "-q", "--temperature", "0"}, {.stdin_text = std::string(kProblem) + "\n"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_THAT(o.out, HasSubstr("#### 12"));
  EXPECT_EQ(o.err, "");
}

TEST(Generate, PromptFromAFileIsThePrompt) {
  TemporaryFolder folder;
  const fs::path file = folder.Write("p.txt", kProblem);
  EXPECT_EQ(RunProgram({"generate", "--chat", "--prompt-file", file.string(), "-q"}).out, RunProgram({"generate", "--chat", "--prompt", kProblem, "-q"}).out);
}

TEST(Generate, SamplingIsRepeatableWithASeed) {
  auto sampled = [](const char* seed) { return RunProgram({"generate", "--prompt", "Tom has", "--temperature", "1.5", "--seed", seed, "--max-tokens", "30", "-q"}).out; };
  EXPECT_EQ(sampled("7"), sampled("7"));
  EXPECT_NE(sampled("7"), sampled("8"));
}

TEST(Generate, DummyWeightsNeedOnlyAConfig) {
  TemporaryFolder folder;
  fs::copy(kTiny + "/config.json", folder.path() / "config.json");
  const Json j = RunJson({"generate", "--model", folder.path().string(), "--tokens", "1,2,3", "--load-format", "dummy", "--max-tokens", "4", "--json", "-q"});
  EXPECT_FALSE(Ints(j.Find("tokens")).empty());
}

// A snapshot in a Hugging Face cache: its files are links into blobs/.
class Cache {
 public:
  Cache() {
    const fs::path repository = folder_.path() / "hub" / "models--some-org--demo-model", snapshot = repository / "snapshots" / "0123abcd";
    fs::create_directories(repository / "blobs");
    fs::create_directories(snapshot);
    int n = 0;
    for (const auto& entry : fs::directory_iterator(HALFBYTE_SOURCE_DIR "/models/demo")) {
      const std::string blob = base::StrCat("blob", n++);
      fs::copy(entry.path(), repository / "blobs" / blob);
      fs::create_symlink(fs::path("..") / ".." / "blobs" / blob, snapshot / entry.path().filename());
    }
    folder_.Write("hub/models--some-org--demo-model/refs/main", "0123abcd\n");
  }
  fs::path home() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(Models, AreFoundInTheHuggingFaceCache) {
  const Cache cache;
  const std::string want = RunProgram({"generate", "--chat", "--prompt", kProblem, "-q"}).out;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"HF_HOME", cache.home().string()}, {"HF_HUB_CACHE", (cache.home() / "hub").string()}}) {
    const Output o = RunProgram({"generate", "--model", "some-org/demo-model", "--chat", "--prompt", kProblem, "-q"}, {.environment = {{name, value}}});
    EXPECT_EQ(o.exit, 0) << o.err;
    EXPECT_EQ(o.out, want);
  }
}

TEST(Inspect, SaysTheSameWithAndWithoutLoading) {
  const Json j = RunJson({"inspect", "--quantization", "w4a16", "--json"});
  ExpectKeys(j, {"family", "parameters", "groups", "patterns", "warnings", "bytes_before", "bytes_after", "peak_bytes"});
  ExpectKeys(j.Find("groups")->as_array()[0], {"role", "layers", "count", "source", "target", "bytes_before", "bytes_after"});
  EXPECT_EQ(j.Find("family")->as_string(), "qwen3_moe");
  EXPECT_LT(j.Find("bytes_after")->as_int(), j.Find("bytes_before")->as_int());
  const Json bare = RunJson({"inspect", "--config", HALFBYTE_SOURCE_DIR "/models/demo/config.json", "--quantization", "w4a16", "--json"});
  for (const char* key : {"family", "parameters", "bytes_before", "bytes_after"}) EXPECT_EQ(*bare.Find(key), *j.Find(key)) << key;
  // --ignore-layers: the count of matches, and a pattern without one.
  const Json ignored = RunJson({"inspect", "--quantization", "w4a16", "--ignore-layers", "model.layers.0,model.layers.99", "--json"});
  ASSERT_EQ(ignored.Find("patterns")->as_array().size(), 2u);
  ExpectKeys(ignored.Find("patterns")->as_array()[0], {"pattern", "from", "matches"});
  EXPECT_GT(ignored.Find("patterns")->as_array()[0].Find("matches")->as_int(), 0);
  EXPECT_EQ(ignored.Find("patterns")->as_array()[1].Find("matches")->as_int(), 0);
  EXPECT_THAT(ignored.Find("warnings")->Dump(), HasSubstr("model.layers.99"));
}

TEST(Eval, JsonKeys) {
  TemporaryFolder folder;
  const std::string documents = folder.Write("d.jsonl", "{\"text\": \"Olga saves $23 every week.\"}\n\n{\"text\": \"A bicycle costs $311.\"}\n").string();
  const Json perplexity = RunJson({"eval", "perplexity", "--documents", documents, "--json", "-q"});
  ExpectKeys(perplexity, {"perplexity", "mean_nll", "tokens_scored"});
  const std::string text = folder.Write("t.txt", "Olga saves $23 every week. A bicycle costs $311. How many more dollars are needed to buy it?").string();
  ExpectKeys(RunJson({"eval", "perplexity", "--text", text, "--window", "16", "--json", "-q"}), {"perplexity", "mean_nll", "tokens_scored"});
  const Json compare = RunJson({"eval", "compare", "--documents", documents, "--quantization", "w4a16", "--against", "none", "--json", "-q"});
  ExpectKeys(compare, {"mean_kl", "worst_kl", "top1_agreement", "perplexity", "perplexity_against", "tokens_scored"});
  EXPECT_GT(compare.Find("mean_kl")->as_double(), 0);
  EXPECT_NEAR(compare.Find("perplexity")->as_double(), perplexity.Find("perplexity")->as_double(), 1e-9);
  const Json same = RunJson({"eval", "compare", "--documents", documents, "--quantization", "none", "--against", "none", "--json", "-q"});
  EXPECT_EQ(same.Find("mean_kl")->as_double(), 0);
  EXPECT_EQ(same.Find("top1_agreement")->as_double(), 1);
  const std::string problems = folder.Write("p.jsonl", base::StrCat(R"({"question": ")", kProblem, R"(", "answer": "12"})", "\n", R"({"question": ")", kProblem, R"(", "answer": "so it is #### 13"})", "\n")).string();
  const Json gsm8k = RunJson({"eval", "gsm8k", "--file", problems, "--json", "-q"});
  EXPECT_EQ(gsm8k.Find("accuracy")->as_double(), 0.5);
  EXPECT_EQ(gsm8k.Find("right")->as_int(), 1);
  EXPECT_EQ(gsm8k.Find("total")->as_int(), 2);
}

TEST(Eval, LogitsAreWrittenWholeUnderTheirNames) {
  TemporaryFolder folder;
  const std::string tokens = folder.Write("t.json", "[[1, 2, 3], [7]]").string(), out = (folder.path() / "o.safetensors").string();
  EXPECT_EQ(RunProgram({"eval", "logits", "--model", kTiny, "--tokens", tokens, "--out", out, "-q"}).exit, 0);
  const test::GoldenFile file = test::ReadGolden(out);
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(file.at("logits.0").shape, (std::vector<int64_t>{3, 256}));
  EXPECT_EQ(file.at("logits.1").shape, (std::vector<int64_t>{1, 256}));
  EXPECT_EQ(file.at("logits.1").dtype, "F32");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path())) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre("t.json", "o.safetensors"));  // nothing temporary
}

// Each line of stdin gives one line, whatever is in it.
TEST(Jsonl, OneLineInOneLineOut) {
  auto check = [](const std::vector<std::string>& arguments, const std::vector<std::pair<std::string, const char*>>& lines) {
    std::string in;
    for (const auto& [line, key] : lines) in += line + "\n";
    const Output o = RunProgram(arguments, {.stdin_text = in});
    EXPECT_EQ(o.exit, 0) << o.err;
    const std::vector<std::string> out = Lines(o.out);
    ASSERT_EQ(out.size(), lines.size()) << testing::PrintToString(arguments) << o.out;
    for (size_t i = 0; i < out.size(); ++i) {
      const auto json = Json::Parse(out[i]);
      ASSERT_TRUE(json) << out[i];
      EXPECT_THAT(Keys(*json), testing::ElementsAre(std::string(lines[i].second))) << out[i];
    }
  };
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  check({"tokenize", "--jsonl"}, {{R"({"text": "Olga saves"})", "ids"}, {R"({"text": "a\nb\u2028c", "add_special_tokens": false})", "ids"}, {"", "error"}, {"nonsense", "error"}, {"[1]", "error"},
                                  {R"({"text": 5})", "error"}, {R"({"no": 1})", "error"}, {R"({"text": ""})", "ids"}, {deep, "error"}, {"\xFF\xFE", "error"}});
  check({"detokenize", "--jsonl"}, {{R"({"ids": [394, 273, 201]})", "text"}, {R"({"ids": []})", "text"}, {R"({"ids": [-1]})", "error"}, {R"({"ids": "x"})", "error"}, {"{", "error"}, {R"({"ids": [99999999]})", "text"}});
  check({"template", "--jsonl"}, {{R"({"messages": [{"role": "user", "content": "hello\nworld"}], "add_generation_prompt": true})", "rendered"}, {R"({"messages": 3})", "error"}, {"null", "error"}});
  check({"template", "--jinja", "--jsonl"}, {{R"({"template": "{{ a }}\n{{ b }}", "context": {"a": 1, "b": "x"}})", "rendered"}, {R"({"template": "{% if %}"})", "error"}, {R"({"template": "{{ raise_exception('no') }}"})", "error"}});
}

TEST(Tokens, ThereAndBack) {
  const Json tokens = RunJson({"tokenize", "--text", kProblem, "--no-special-tokens"});
  const Output text = RunProgram({"detokenize", "--ids", Joined(Ints(tokens.Find("ids")))});
  EXPECT_EQ(text.out, std::string(kProblem) + "\n");
  EXPECT_EQ(RunProgram({"tokenize"}, {.stdin_text = kProblem}).out, RunProgram({"tokenize", "--text", kProblem}).out);
}

TEST(Devices, JsonKeys) {
  const Json j = RunJson({"devices", "--json"});
  ExpectKeys(j, {"isa", "threads", "available_memory_bytes", "backends"});
}

TEST(Bench, JsonKeys) {
  const Json j = RunJson({"bench", "--prompt-tokens", "16", "--decode-tokens", "4", "--repeat", "1", "--json", "-q"});
  ExpectKeys(j, {"model", "quantization", "device", "threads", "prefill", "decode", "limits", "load", "kernels"});
  ExpectKeys(*j.Find("prefill"), {"tokens_per_second", "tokens", "gflops", "limit", "share_of_limit"});
  ExpectKeys(*j.Find("decode"), {"tokens_per_second", "batch", "bytes_per_token", "gb_per_second", "limit", "share_of_limit"});
  ExpectKeys(*j.Find("limits"), {"read_gb_per_second", "bf16_gflops", "int8_gops"});
  ExpectKeys(*j.Find("load"), {"seconds", "parameters_per_second", "peak_rss_bytes"});
}

}  // namespace
}  // namespace halfbyte::e2e

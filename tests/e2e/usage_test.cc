// Wrong usage: exit 2 and a message that names the flag, before the model is looked at. The model named here does not exist, and nobody may notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace halfbyte::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Arguments = std::vector<std::string>;

void ExpectWrong(const Arguments& command, const std::string& flag, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    Arguments arguments = command;
    arguments.insert(arguments.end(), {flag, value, "--model", "/no/such/folder"});
    EXPECT_THAT(WrongUsageOf(arguments), HasSubstr(flag)) << "value \"" << value << "\"";
  }
}

const Arguments kGenerate = {"generate", "--tokens", "1"};

TEST(Usage, CommandsAndFlags) {
  for (const Arguments& arguments : std::vector<Arguments>{
           {}, {"frobnicate"}, {"generate"}, {"generate", "--no-such-flag"}, {"generate", "--prompt", "x", "--tokens", "1"}, {"generate", "--prompt", "x", "--exact", "--rounded"},
           {"generate", "--prompt", "x", "surplus"}, {"generate", "--prompt", "x", "--max-tokens", "1", "--max-tokens", "2"}, {"eval"}, {"eval", "logits"}, {"eval", "perplexity"},
           {"eval", "perplexity", "--text", "a", "--documents", "b"}, {"eval", "compare", "--documents", "x"}, {"eval", "gsm8k"}, {"quantize"}, {"bench", "--kernel-filter", "x"},
           {"quantize", "--out", "x", "--contract", "online", "--ws2", "cpu"}, {"tokenize", "--jsonl", "--text", "x"}, {"detokenize", "--jsonl", "--ids", "1"}, {"serve", "--tls-cert", "x"}, {"serve", "--max-model-len", "1"}}) {
    EXPECT_NE(WrongUsageOf(arguments), "") << testing::PrintToString(arguments);
  }
  EXPECT_THAT(WrongUsageOf({"--log-level", "loud", "devices"}), HasSubstr("--log-level"));
  EXPECT_THAT(WrongUsageOf({"generate", "--model", "/no/such/folder"}), AllOf(HasSubstr("--prompt"), HasSubstr("--prompt-file"), HasSubstr("--tokens")));
}

TEST(Usage, TokenLists) {
  ExpectWrong({"generate"}, "--tokens", {"", ",", "1,,2", ",1", "1,", "0x10,010", "010", "0x1", "1 2", "1, 2", "+1", "-1", "1.0", "1e2", "abc", "2147483648", "99999999999999999999", "1;2"});
  ExpectWrong({"detokenize"}, "--ids", {"", "abc", "1,,2", "-1", "[1,", "[-1]", "{\"ids\": 5}", "0x10", "[1.5]", "1 2"});
}

TEST(Usage, Integers) {
  ExpectWrong(kGenerate, "--max-tokens", {"", "-3", "many", "0x10", "010", "1.5", "1e3", " 5", "5 ", "99999999999999999999"});
  ExpectWrong(kGenerate, "--top-k", {"-1", "x"});
  ExpectWrong(kGenerate, "--seed", {"-1", "0x7", "1.5", ""});
  ExpectWrong(kGenerate, "--threads", {"-1", "1025", "4000", "100000", "all"});
  ExpectWrong({"quantize", "--out", "x"}, "--threads", {"-1", "1025"});
  ExpectWrong({"bench"}, "--prompt-tokens", {"0", "-1", "x"});
  ExpectWrong({"bench"}, "--batch", {"0", "5000"});
  ExpectWrong({"bench"}, "--repeat", {"0"});
  ExpectWrong({"bench", "--kernels"}, "--kernel-shape", {"1,2,3,4", "64,64,4", "64,64,4,5", "64,64,4,0", "a"});
  ExpectWrong({"eval", "perplexity", "--text", "x"}, "--window", {"1", "-5"});
  ExpectWrong({"eval", "gsm8k", "--file", "x"}, "--shots", {"-1", "65"});
  ExpectWrong({"serve"}, "--port", {"-1", "65536", "http"});
  ExpectWrong({"serve"}, "--max-queue", {"0", "-1"});
  ExpectWrong({"serve"}, "--max-batch", {"0"});
  ExpectWrong({"serve"}, "--max-model-len", {"1", "-5", "x"});
  ExpectWrong({"serve"}, "--kv-cache-tokens", {"-1"});
}

TEST(Usage, Numbers) {
  ExpectWrong(kGenerate, "--temperature", {"nan", "inf", "-1", "101", "", "0x1", "hot", "1,5"});
  ExpectWrong(kGenerate, "--top-p", {"0", "nan", "1.1", "-0.1"});
  ExpectWrong(kGenerate, "--min-p", {"nan", "1.1", "-0.1"});
  ExpectWrong({"serve"}, "--request-timeout", {"nan", "inf", "-1", "soon"});
  ExpectWrong({"bench", "--kernels"}, "--kernel-seconds", {"nan", "-1"});
}

TEST(Usage, WordsAndNames) {
  ExpectWrong(kGenerate, "--quantization", {"w9", ""});
  ExpectWrong(kGenerate, "--device", {"tpu", "cuda:x", "cuda:", ""});
  ExpectWrong(kGenerate, "--dense-quantization", {"int3"});
  ExpectWrong(kGenerate, "--stop", {""});
  ExpectWrong({"generate"}, "--prompt", {""});
  ExpectWrong({"generate"}, "--prompt-file", {""});
  ExpectWrong({"serve"}, "--host", {"bad", "", "256.1.1.1", "example.com"});
  ExpectWrong({"serve"}, "--served-model-name", {""});
  ExpectWrong({"serve"}, "--allow-weight-root", {""});
  ExpectWrong({"serve"}, "--prefix-cache", {"sometimes"});
  ExpectWrong({"quantize", "--out", "x"}, "--max-shard-size", {"", "0", "5XB", "nan", "-1GB", "1e30GB"});
  ExpectWrong({"eval", "compare", "--documents", "x"}, "--against", {"w9"});
}

// The message says what there is to choose from.
TEST(Usage, Kernels) {
  for (const char* command : {"generate --tokens 1", "serve", "bench", "inspect", "chat"}) {
    Arguments words;
    std::istringstream in(command);
    for (std::string w; in >> w;) words.push_back(w);
    ExpectWrong(words, "--kernel", {"gemm", "=x", "moe_gemm=", "foo=bar", "moe_gemm=nothing", "linear=nothing", "attention=nothing", "rows=nothing", "quantize=nothing"});
  }
  auto message = [](const char* kernel) { return WrongUsageOf({"generate", "--tokens", "1", "--device", "cpu", "--kernel", kernel}); };
  EXPECT_THAT(message("foo=bar"), AllOf(HasSubstr("linear"), HasSubstr("attention"), HasSubstr("rows"), HasSubstr("moe_gemm"), HasSubstr("quantize")));
  EXPECT_THAT(message("quantize=nothing"), AllOf(HasSubstr("nothing"), HasSubstr("scalar"), HasSubstr("avx2")));
  EXPECT_THAT(message("moe_gemm=nothing"), HasSubstr("avx2"));
  EXPECT_THAT(message("linear=nothing"), HasSubstr("avx2"));
  EXPECT_THAT(WrongUsageOf({"generate", "--tokens", "1", "--device", "reference", "--kernel", "linear=avx2"}), HasSubstr("reference"));
  ExpectWrong({"quantize", "--out", "x"}, "--kernel", {"quantize=nothing", "linear=avx2", "x"});
}

TEST(Usage, AnUnknownCommandIsNamed) { EXPECT_THAT(WrongUsageOf({"frobnicate"}), HasSubstr("no command \"frobnicate\"")); }

}  // namespace
}  // namespace halfbyte::e2e

// Uses every part of the installed header; exits with 1 where an answer is not the expected one.
#include <halfbyte/halfbyte.h>

#include <cstdio>
#include <thread>

namespace {

int failures = 0;
void Check(bool ok, const char* what) {
  if (ok) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  auto missing = halfbyte::Model::Load("/no/such/folder");
  Check(!missing && missing.error().code == halfbyte::Error::Code::kNotFound && missing.error().message == "there is no folder /no/such/folder", "error of a wrong path");
  halfbyte::LoadOptions wrong;
  wrong.dense_quantization = "int3";
  Check(!halfbyte::Model::Load("demo", wrong), "an unknown flag value is an error");

  std::string report;
  halfbyte::LoadOptions load;
  load.quantization = "w4a16";
  load.threads = 2;
  load.kv_cache_tokens = 4096;
  load.report = [&](const std::string& text) { report = text; };
  auto loaded = halfbyte::Model::Load("demo", load);
  if (!loaded) { std::printf("%s\n", loaded.error().message.c_str()); return 1; }
  halfbyte::Model model = std::move(*loaded);
  Check(report.find("NVFP4") != std::string::npos, "load report");
  Check(model.family() == "qwen3_moe" && model.vocabulary() == 4096 && model.max_length() > 256, "what the model says of itself");

  const std::string question = "Olga saves $23 every week for 13 weeks. A bicycle costs $311. How many more dollars are needed to buy it?";
  std::string streamed;
  halfbyte::GenerateOptions generate;
  generate.on_token = [&](int32_t, const std::string& text) { streamed += text; return true; };
  auto answer = model.Chat({{"user", question}}, generate);
  if (!answer) { std::printf("%s\n", answer.error().message.c_str()); return 1; }
  std::printf("%s\n", answer->text.c_str());
  Check(answer->finish_reason == "stop" && streamed == answer->text, "finish reason, stream");

  auto tokens = model.Encode("Olga saves", false);
  Check(tokens && *model.Decode(*tokens) == "Olga saves", "encode and decode");
  halfbyte::GenerateOptions five;
  five.max_tokens = 5;
  Check(model.GenerateText("Olga saves", five)->tokens.size() == 5, "max_tokens");
  Check(!model.Generate({-1}), "a token outside the vocabulary is an error");
  halfbyte::GenerateOptions stop;
  stop.stop = {"####"};
  Check(model.Chat({{"user", question}}, stop)->text == answer->text.substr(0, answer->text.find("####")), "stop string");

  // Several at once: the same answers.
  std::string texts[4];
  {
    std::thread threads[4];
    for (int i = 0; i < 4; ++i) threads[i] = std::thread([&, i] { if (auto a = model.Chat({{"user", question}})) texts[i] = a->text; });
    for (std::thread& t : threads) t.join();
  }
  for (const std::string& t : texts) Check(t == answer->text, "answers in company");
  std::printf("version %s\n", halfbyte::Version());
  return failures ? 1 : 0;
}

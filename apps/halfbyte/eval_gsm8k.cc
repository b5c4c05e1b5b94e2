// halfbyte eval gsm8k: word problems with a number as the answer.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "eval_commands.h"
#include "generation_options.h"
#include "input.h"
#include "options.h"
#include "text_side.h"

namespace halfbyte::app {
namespace {

struct Options {
  ModelOptions model;
  std::string file, chat_template;
  int64_t limit = 0, shots = 0, max_tokens = 512, batch = 16;
};

struct Problem { std::string question, answer; };

base::Result<std::vector<Problem>> ReadProblems(const std::string& path) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadInput(path, "--file", kDocumentsLimit));
  std::istringstream lines(text);
  std::vector<Problem> out;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = base::StrCat(path, " line ", number);
    HB_ASSIGN_OR_RETURN_AT(const base::Json row, base::Json::Parse(line), where);
    Problem p;
    HB_ASSIGN_OR_RETURN_AT(p.question, row.GetString("question"), where);
    HB_ASSIGN_OR_RETURN_AT(p.answer, row.GetString("answer"), where);
    out.push_back(std::move(p));
  }
  return out;
}

// A number as people write it: digits with thousands separators, a sign, a fraction. Trailing ".0" and a final dot do not count.
std::string Normalize(std::string s) {
  std::string out;
  for (char c : s) if ((c >= '0' && c <= '9') || c == '-' || c == '.') out += c;
  while (!out.empty() && out.back() == '.') out.pop_back();
  if (out.find('.') != out.npos) {
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
  }
  return out;
}

std::optional<std::string> LastNumber(const std::string& text) {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = text.size(); i-- > 0;) {
    if (!digit(text[i])) continue;
    size_t end = i + 1;
    while (i > 0 && (digit(text[i - 1]) || ((text[i - 1] == ',' || text[i - 1] == '.') && i > 1 && digit(text[i - 2])))) --i;
    if (i > 0 && text[i - 1] == '-') --i;
    return text.substr(i, end - i);
  }
  return std::nullopt;
}

// What follows the last "####"; without one, `fallback`: the last number of a model's answer, the whole field of a right one.
std::string Final(const std::string& text, bool whole_field) {
  if (const size_t at = text.rfind("####"); at != text.npos) return Normalize(text.substr(at + 4));
  if (whole_field) return Normalize(text);
  return Normalize(LastNumber(text).value_or(""));
}

base::Status Gsm8k(const Options& o, Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const TextSide side, TextSide::Load(folder, o.chat_template));
  HB_ASSIGN_OR_RETURN(std::vector<Problem> problems, ReadProblems(o.file));
  if (static_cast<int64_t>(problems.size()) <= o.shots) return base::Fail(base::ErrorCode::kInvalidArgument, o.file, ": ", problems.size(), " problems, ", o.shots, " are shown as examples");
  const std::vector<Problem> shots(problems.begin(), problems.begin() + o.shots);
  problems.erase(problems.begin(), problems.begin() + o.shots);
  if (o.limit > 0 && static_cast<int64_t>(problems.size()) > o.limit) problems.resize(static_cast<size_t>(o.limit));

  std::vector<std::vector<int32_t>> prompts;
  size_t longest = 0;
  for (const Problem& p : problems) {
    base::Json messages = base::Json::MakeArray();
    for (const Problem& s : shots) { messages.Push(Message("user", s.question)); messages.Push(Message("assistant", s.answer)); }
    messages.Push(Message("user", p.question));
    HB_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, side.EncodeChat(messages));
    longest = std::max(longest, prompt.size());
    prompts.push_back(std::move(prompt));
  }
  const SequenceNeeds needs{.sequences = o.batch, .prompt_tokens = static_cast<int64_t>(longest), .max_tokens = o.max_tokens, .kv_cache_dtype = o.model.kv_cache_dtype};
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded,
                      LoadWithReport(o.model, context, [&](const model::Admission& admission) { return needs.Check(admission, "lower --batch or --max-tokens"); }));
  engine::EngineOptions options = needs.Engine(loaded.model->spec());
  options.max_queue = static_cast<int64_t>(prompts.size());
  HB_ASSIGN_OR_RETURN(auto engine, engine::Engine::Create(std::move(loaded.model), options));

  std::vector<std::string> answers(prompts.size());
  HB_RETURN_IF_ERROR(GenerateAll(*engine, prompts, o.max_tokens, [&](size_t i, const std::vector<int32_t>& tokens, bool end_token) {
    const base::Json text = side.TextOf(tokens, end_token);
    answers[i] = text.as_string();
  }));
  int64_t right = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::string want = Final(problems[i].answer, true), got = Final(answers[i], false);
    right += !want.empty() && want == got;
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(problems.size());
  base::Json out = base::Json::MakeObject();
  out.Set("accuracy", accuracy);
  out.Set("right", right);
  out.Set("total", problems.size());
  if (context.json) context.out.Json(out);
  else context.out.Format("%lld of %zu right (%.2f %%)\n", static_cast<long long>(right), problems.size(), 100 * accuracy);
  return {};
}

}  // namespace

void RegisterEvalGsm8k(CLI::App& eval, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("gsm8k", "word problems: share of right final numbers");
  options->model.AddTo(*command);
  command->add_option("--file", options->file, "JSON lines {\"question\", \"answer\"}; - reads stdin")->required();
  AddInteger(*command, "--limit", options->limit, 0, kAnyInteger, "problems to run (0: all)");
  AddInteger(*command, "--shots", options->shots, 0, 64, "first problems of the file shown as examples");
  AddInteger(*command, "--max-tokens", options->max_tokens, 1, kAnyInteger, "of an answer");
  AddInteger(*command, "--batch", options->batch, 1, 1024, "answers generated at once");
  command->add_option("--chat-template", options->chat_template, "a Jinja file instead of the model's own template");
  command->callback([options, &context] {
    options->model.CheckUsage();
    context.command = [options, &context] { return Gsm8k(*options, context); };
  });
}

}  // namespace halfbyte::app

// halfbyte eval perplexity, eval compare.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "eval_commands.h"
#include "eval_documents.h"
#include "input.h"
#include "options.h"
#include "platform/parallel.h"
#include "text_side.h"

namespace halfbyte::app {
namespace {

struct Options {
  ModelOptions model;
  std::string documents, text, against;
  int64_t window = 512;
};

base::Result<Documents> Load(const Options& o, const std::filesystem::path& folder) {
  HB_ASSIGN_OR_RETURN(const TextSide side, TextSide::Load(folder, ""));
  HB_ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, side.tokenizer());
  if (!o.documents.empty()) return ReadDocuments(o.documents, "--documents", *tokenizer);
  HB_ASSIGN_OR_RETURN(const std::string text, ReadInput(o.text, "--text", kDocumentsLimit));
  WarnOfInvalidUtf8(text, o.text);
  const std::vector<int32_t> ids = tokenizer->Encode(text, false);
  Documents windows;
  for (size_t begin = 0; begin < ids.size(); begin += static_cast<size_t>(o.window)) {
    const size_t end = std::min(ids.size(), begin + static_cast<size_t>(o.window));
    if (end - begin >= 2) windows.emplace_back(ids.begin() + static_cast<int64_t>(begin), ids.begin() + static_cast<int64_t>(end));
  }
  if (windows.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, o.text, ": fewer than two tokens");
  return windows;
}

base::Status Perplexity(const Options& o, Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const Documents documents, Load(o, folder));
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context));
  HB_ASSIGN_OR_RETURN(auto runner, ScoringRunner(std::move(loaded), o.model.kv_cache_dtype, documents));
  const int64_t vocab = runner->traits().vocab;
  engine::Scorer scorer(*runner, documents);
  double nll = 0;
  int64_t tokens = 0;
  std::vector<double> row_nll;
  for (;;) {
    HB_ASSIGN_OR_RETURN(const std::span<const engine::ScoredRows> pieces, scorer.Next());
    if (pieces.empty()) break;
    for (const engine::ScoredRows& p : pieces) {
      const auto& d = documents[p.document];
      const int64_t n = std::min(p.logits.rows, static_cast<int64_t>(d.size()) - 1 - p.first_position);
      row_nll.assign(static_cast<size_t>(n), 0.0);
      platform::ParallelFor(n, 8, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          row_nll[static_cast<size_t>(r)] = NegativeLogLikelihood(p.logits.row<float>(r), vocab, d[static_cast<size_t>(p.first_position + r + 1)]);
      });
      for (double v : row_nll) nll += v;  // in a fixed order: the sum does not depend on threads
      tokens += n;
    }
  }
  if (!std::isfinite(nll)) return base::Fail(base::ErrorCode::kInternal, "logits are not finite");
  const double mean = nll / static_cast<double>(tokens);
  base::Json out = base::Json::MakeObject();
  out.Set("perplexity", std::exp(mean));
  out.Set("mean_nll", mean);
  out.Set("tokens_scored", tokens);
  if (context.json) context.out.Json(out);
  else context.out.Format("perplexity %.6f (mean NLL %.6f nats, %lld tokens scored)\n", std::exp(mean), mean, static_cast<long long>(tokens));
  return {};
}

// One row of both models: KL(against || mode), agreement of the best token, both likelihoods.
struct RowComparison { double kl = 0, nll = 0, nll_against = 0; bool agree = false; };

RowComparison CompareRow(const float* mode, const float* against, int64_t vocab, int32_t next) {
  RowComparison c;
  const float* best = std::max_element(mode, mode + vocab);
  const float* best_against = std::max_element(against, against + vocab);
  c.agree = best - mode == best_against - against;
  double sum = 0, sum_against = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    sum += std::exp(static_cast<double>(mode[i]) - *best);
    sum_against += std::exp(static_cast<double>(against[i]) - *best_against);
  }
  const double log_z = *best + std::log(sum), log_z_against = *best_against + std::log(sum_against);
  for (int64_t i = 0; i < vocab; ++i) {
    const double log_q = mode[i] - log_z, log_p = against[i] - log_z_against;
    if (const double p = std::exp(log_p); p > 0) c.kl += p * (log_p - log_q);  // a token that cannot come adds nothing
  }
  c.nll = log_z - mode[next];
  c.nll_against = log_z_against - against[next];
  return c;
}

// Sums over all scored positions.
struct Comparison {
  double kl = 0, worst = 0, nll = 0, nll_against = 0;
  int64_t agree = 0, tokens = 0;
  void Add(const RowComparison& c) {
    kl += c.kl; worst = std::max(worst, c.kl); nll += c.nll; nll_against += c.nll_against; agree += c.agree; ++tokens;
  }
};

// Two scorers over the same documents give the same pieces in the same order (engine/score.h).
base::Result<Comparison> CompareAll(engine::ModelRunner& mode, engine::ModelRunner& against, const Documents& documents) {
  const int64_t vocab = mode.traits().vocab;
  engine::Scorer scorer(mode, documents), scorer_against(against, documents);
  Comparison total;
  std::vector<RowComparison> rows;
  for (;;) {
    HB_ASSIGN_OR_RETURN(const std::span<const engine::ScoredRows> a, scorer.Next());
    HB_ASSIGN_OR_RETURN(const std::span<const engine::ScoredRows> b, scorer_against.Next());
    HB_CHECK(a.size() == b.size());
    if (a.empty()) return total;
    for (size_t i = 0; i < a.size(); ++i) {
      HB_CHECK(a[i].document == b[i].document && a[i].first_position == b[i].first_position && a[i].logits.rows == b[i].logits.rows);
      const auto& d = documents[a[i].document];
      const int64_t n = std::min(a[i].logits.rows, static_cast<int64_t>(d.size()) - 1 - a[i].first_position);
      rows.assign(static_cast<size_t>(n), {});
      platform::ParallelFor(n, 4, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          rows[static_cast<size_t>(r)] = CompareRow(a[i].logits.row<float>(r), b[i].logits.row<float>(r), vocab, d[static_cast<size_t>(a[i].first_position + r + 1)]);
      });
      for (const RowComparison& c : rows) total.Add(c);
    }
  }
}

base::Status Compare(const Options& o, Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const Documents documents, Load(o, folder));
  ModelOptions other = o.model;
  other.quantization = o.against;
  HB_ASSIGN_OR_RETURN(model::LoadedModel mode, LoadWithReport(o.model, context));
  HB_ASSIGN_OR_RETURN(model::LoadedModel against, LoadWithReport(other, context));
  HB_ASSIGN_OR_RETURN(auto runner, ScoringRunner(std::move(mode), o.model.kv_cache_dtype, documents));
  HB_ASSIGN_OR_RETURN(auto runner_against, ScoringRunner(std::move(against), o.model.kv_cache_dtype, documents));
  HB_ASSIGN_OR_RETURN(const Comparison c, CompareAll(*runner, *runner_against, documents));
  if (!std::isfinite(c.kl + c.nll + c.nll_against)) return base::Fail(base::ErrorCode::kInternal, "logits are not finite");
  const double n = static_cast<double>(c.tokens);
  base::Json out = base::Json::MakeObject();
  out.Set("mean_kl", c.kl / n);
  out.Set("worst_kl", c.worst);
  out.Set("top1_agreement", static_cast<double>(c.agree) / n);
  out.Set("perplexity", std::exp(c.nll / n));
  out.Set("perplexity_against", std::exp(c.nll_against / n));
  out.Set("tokens_scored", c.tokens);
  if (context.json) context.out.Json(out);
  else context.out.Format("KL(%s || %s) mean %.6g worst %.4g nats, top-1 agreement %.4f, perplexity %.5f against %.5f (%lld tokens)\n", o.against.c_str(), o.model.quantization.c_str(),
                   c.kl / n, c.worst, static_cast<double>(c.agree) / n, std::exp(c.nll / n), std::exp(c.nll_against / n), static_cast<long long>(c.tokens));
  return {};
}

}  // namespace

void RegisterEvalPerplexity(CLI::App& eval, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("perplexity", "exp of the mean negative log likelihood of documents or of one text");
  options->model.AddTo(*command);
  auto* documents = command->add_option("--documents", options->documents, "JSON lines {\"text\"}; each is scored from its second token on; - reads stdin");
  auto* text = command->add_option("--text", options->text, "one long text, scored in windows; - reads stdin");
  AddInteger(*command, "--window", options->window, 2, 1 << 20, "tokens of a window of --text");
  documents->excludes(text);
  command->callback([options, &context] {
    if (options->documents.empty() == options->text.empty()) throw WrongUsage("one of --documents and --text is needed");
    options->model.CheckUsage();
    context.command = [options, &context] { return Perplexity(*options, context); };
  });
}

void RegisterEvalCompare(CLI::App& eval, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("compare", "KL divergence and top-1 agreement of one mode against another");
  options->model.AddTo(*command);
  command->add_option("--documents", options->documents, "JSON lines {\"text\"}")->required();
  command->add_option("--against", options->against, "the mode to compare with")->required()->check(CheckMode);
  command->callback([options, &context] {
    options->model.CheckUsage();
    context.command = [options, &context] { return Compare(*options, context); };
  });
}

}  // namespace halfbyte::app

#include "quant/plan_report.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace halfbyte::quant {
namespace {

// "0-3,5": runs of layers.
std::string Runs(const std::vector<int32_t>& layers) {
  std::string out;
  for (size_t i = 0; i < layers.size();) {
    size_t j = i;
    while (j + 1 < layers.size() && layers[j + 1] == layers[j] + 1) ++j;
    out += (out.empty() ? "" : ",") + std::to_string(layers[i]);
    if (j > i) out += "-" + std::to_string(layers[j]);
    i = j + 1;
  }
  return out.empty() ? "-" : out;
}

}  // namespace

std::vector<PlanGroup> GroupPlan(const QuantPlan& plan) {
  std::map<std::tuple<TensorRole, std::string, std::string, Action>, PlanGroup> groups;
  for (const PlannedMatrix& m : plan.matrices) {
    const SourceMatrix& s = m.source;
    PlanGroup& g = groups[{s.id.role, s.format.ToString(), m.target.ToString(), m.action}];
    g.role = s.id.role;
    g.source = s.format;
    g.target = m.target;
    g.action = m.action;
    ++g.count;
    if (s.id.layer >= 0 && (g.layers.empty() || g.layers.back() != s.id.layer)) g.layers.push_back(s.id.layer);
    g.bytes_before += plan.BytesBefore(m);
    g.bytes_after += m.target.Bytes(s.rows, s.cols);
  }
  std::vector<PlanGroup> out;
  for (auto& [key, g] : groups) {
    std::sort(g.layers.begin(), g.layers.end());
    g.layers.erase(std::unique(g.layers.begin(), g.layers.end()), g.layers.end());
    out.push_back(std::move(g));
  }
  return out;
}

std::string GroupLines(const QuantPlan& plan) {
  std::string out;
  char line[256];
  auto mb = [](int64_t b) { return static_cast<double>(b) / 1e6; };
  for (const PlanGroup& g : GroupPlan(plan)) {
    std::snprintf(line, sizeof line, "  %-20s layers %-10s %6lld x  %-14s %-10s %-14s %9.1f -> %9.1f MB\n", std::string(TensorRoleName(g.role)).c_str(), Runs(g.layers).c_str(),
                  static_cast<long long>(g.count), g.source.ToString().c_str(), std::string(ActionName(g.action)).c_str(), g.target.ToString().c_str(), mb(g.bytes_before), mb(g.bytes_after));
    out += line;
  }
  std::snprintf(line, sizeof line, "  matrices: %.1f MB in the files -> %.1f MB\n", mb(plan.bytes_before), mb(plan.bytes_after));
  return out + line;
}

std::string ReportText(const QuantPlan& plan) {
  std::string out = base::StrCat("load report: mode ", ModeName(plan.mode), plan.tied ? ", lm_head tied to the embedding" : "", "\n", GroupLines(plan));
  for (const auto& [reason, n] : plan.skipped) out += base::StrCat("  not loaded: ", n, " tensors (", reason, ")\n");
  if (plan.discarded) out += base::StrCat("  not read: ", plan.discarded, " activation scales or shapes that this mode does not use\n");
  return out + RemarkLines(plan);
}

std::string RemarkLines(const QuantPlan& plan) {
  std::string out;
  for (const PatternMatches& p : plan.patterns) out += base::StrCat("  pattern \"", p.pattern, "\" of ", p.from, ": ", p.matches, " matches\n");
  for (const std::string& w : plan.warnings) out += "  warning: " + w + "\n";
  return out;
}

base::Json ReportJson(const QuantPlan& plan) {
  using base::Json;
  Json groups = Json::MakeArray(), patterns = Json::MakeArray(), warnings = Json::MakeArray(), skipped = Json::MakeObject();
  for (const PlanGroup& g : GroupPlan(plan)) {
    Json row = Json::MakeObject();
    row.Set("role", TensorRoleName(g.role));
    Json layers = Json::MakeArray();
    for (int32_t l : g.layers) layers.Push(l);
    row.Set("layers", std::move(layers));
    row.Set("count", g.count);
    row.Set("source", g.source.ToString());
    row.Set("action", ActionName(g.action));
    row.Set("target", g.target.ToString());
    row.Set("bytes_before", g.bytes_before);
    row.Set("bytes_after", g.bytes_after);
    groups.Push(std::move(row));
  }
  for (const PatternMatches& p : plan.patterns) {
    Json row = Json::MakeObject();
    row.Set("pattern", p.pattern);
    row.Set("from", p.from);
    row.Set("matches", p.matches);
    patterns.Push(std::move(row));
  }
  for (const std::string& w : plan.warnings) warnings.Push(w);
  for (const auto& [reason, n] : plan.skipped) skipped.Set(reason, n);
  Json out = Json::MakeObject();
  out.Set("quantization", ModeName(plan.mode));
  out.Set("groups", std::move(groups));
  out.Set("patterns", std::move(patterns));
  out.Set("warnings", std::move(warnings));
  out.Set("skipped", std::move(skipped));
  out.Set("bytes_before", plan.bytes_before);
  out.Set("bytes_after", plan.bytes_after);
  return out;
}

}  // namespace halfbyte::quant

// SGLang's control routes: abort, cache, weights, memory.
#include <algorithm>

#include "base/log.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "server/generation_fields.h"
#include "server/job.h"
#include "server/routes.h"

namespace halfbyte::server {
namespace {

HttpResponse Answer(bool success, std::string message, int status = 200) {
  base::Json out = base::Json::MakeObject();
  out.Set("success", success);
  out.Set("message", std::move(message));
  return JsonResponse(out, status);
}

HttpResponse Busy() { return ErrorResponse({409, "the weights are being replaced already", "", "busy"}); }

// The folder, if it lies in the allowed root once all links are followed.
std::optional<std::filesystem::path> Allowed(const std::optional<std::filesystem::path>& root, const std::string& path) {
  if (!root || path.empty() || path.find('\0') != path.npos) return std::nullopt;
  std::error_code error;
  const std::filesystem::path base = std::filesystem::canonical(*root, error);
  if (error) return std::nullopt;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(base / path, error);  // an absolute `path` replaces the root and is checked the same
  if (error) return std::nullopt;
  const auto [end, rest] = std::mismatch(base.begin(), base.end(), whole.begin(), whole.end());
  (void)rest;
  return end == base.end() ? std::optional(whole) : std::nullopt;
}

}  // namespace

void AbortRequest(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  bool all = false;
  std::string rid;
  f.Bool("abort_all", all);
  f.String("rid", rid);
  f.Ignore({"abort_message"});
  if (!all && rid.empty()) f.Fail("rid", "is missing (or abort_all: true)");
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  std::vector<std::shared_ptr<Job>> jobs;
  {
    std::lock_guard lock(context.mutex);
    for (auto& [id, weak] : context.jobs)
      if (all || id == rid)
        if (auto job = weak.lock()) jobs.push_back(std::move(job));
  }
  for (const auto& job : jobs) job->Cancel();
  exchange->Send(Answer(true, base::StrCat(jobs.size(), " requests aborted")));
}

void FlushCache(Context& context, const ExchangePtr& exchange, const base::Json&) {
  context.engine->FlushCache();
  exchange->Send(Answer(true, "prefix cache flushed"));
}

namespace {

// The answer is sent by the caller, when the lock is free again: a client may ask for the next change as soon as it has this one's answer.
HttpResponse Replace(Context& context, const std::filesystem::path& folder, bool abort) {
  std::unique_lock one(context.reloading, std::try_to_lock);
  if (!one) return Busy();
  auto place = context.weights.prepare(folder);
  if (!place) {
    base::LogWarning("update_weights_from_disk: ", place.error().ToString(), "; the old weights stay");
    return Answer(false, place.error().ToString(), 400);
  }
  const auto started = abort ? engine::Engine::Started::kAbort : engine::Engine::Started::kFinish;
  const bool done = context.engine->ChangeWeights([&] {
    (*place)();
    ++context.weight_version;
    std::lock_guard lock(context.mutex);
    context.model_path = folder.string();
  }, started);
  if (!done) return Answer(false, "the server is stopping", 503);
  base::Json out = base::Json::MakeObject();
  out.Set("success", true);
  out.Set("message", base::StrCat("weights of ", folder.string()));
  out.Set("num_paused_requests", 0);
  out.Set("weight_version", context.weight_version.load());
  return JsonResponse(out);
}

}  // namespace

void UpdateWeightsFromDisk(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  std::string path;
  bool abort = false;
  f.String("model_path", path);
  f.Bool("abort_all_requests", abort);
  f.Ignore({"load_format", "flush_cache", "is_async", "torch_empty_cache", "keep_pause", "recapture_cuda_graph", "token_step", "weight_version"});
  f.Refuse("manifest", base::Json(), "is not supported");
  if (path.empty()) f.Fail("model_path", "is missing");
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  WarnUnknown(f.Unknown());
  const auto folder = Allowed(context.options.weight_root, path);
  if (!folder)
    return exchange->Send(ErrorResponse({403, context.options.weight_root ? "model_path is outside the folder that --allow-weight-root names" : "this server was started without --allow-weight-root", "model_path", "path_not_allowed"}));
  if (!context.weights.prepare) return exchange->Send(ErrorResponse({501, "this model cannot be replaced", "", "not_supported"}));
  exchange->Send(Replace(context, *folder, abort));
}

namespace {

size_t Released(Context& context) {
  std::lock_guard lock(context.mutex);
  return context.released.size();
}

void SetReleased(Context& context, const std::string& tag, bool released) {
  std::lock_guard lock(context.mutex);
  if (released) context.released.insert(tag);
  else context.released.erase(tag);
}

HttpResponse Occupy(Context& context, const std::vector<std::string>& tags, bool release) {
  std::unique_lock one(context.reloading, std::try_to_lock);
  if (!one) return Busy();
  for (const std::string& tag : tags) {
    {
      std::lock_guard lock(context.mutex);
      if ((context.released.count(tag) != 0) == release) continue;
    }
    if (release) SetReleased(context, tag, true);  // first, so that no request comes in between
    const bool last = !release && Released(context) == 1;
    const base::Status done = release ? context.weights.release(tag) : context.weights.resume(tag, last);
    if (!done) {
      if (release) SetReleased(context, tag, false);
      return Answer(false, done.error().ToString(), 400);
    }
    if (!release) SetReleased(context, tag, false);
  }
  return Answer(true, release ? "released" : "resumed");
}

void Occupation(Context& context, const ExchangePtr& exchange, const base::Json& body, bool release) {
  Fields f(body);
  std::vector<std::string> tags;
  f.Strings("tags", 8, tags);
  if (tags.empty()) tags = {"kv_cache", "weights"};
  for (const std::string& t : tags)
    if (t != "kv_cache" && t != "weights" && t != "cuda_graph") f.Fail("tags", "kv_cache and weights are known");
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  std::erase(tags, "cuda_graph");
  if (!context.weights.release || !context.weights.resume) return exchange->Send(ErrorResponse({501, "this device cannot give memory back", "", "not_supported"}));
  exchange->Send(Occupy(context, tags, release));
}

}  // namespace

void ReleaseMemory(Context& context, const ExchangePtr& exchange, const base::Json& body) { Occupation(context, exchange, body, true); }
void ResumeMemory(Context& context, const ExchangePtr& exchange, const base::Json& body) { Occupation(context, exchange, body, false); }

}  // namespace halfbyte::server

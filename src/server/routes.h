// One function a route. Those that read a body get it parsed, on a worker; they answer through the exchange, now or later.
#pragma once

#include "server/context.h"
#include "server/http.h"

namespace halfbyte::server {

using ExchangePtr = std::shared_ptr<Exchange>;

void Completions(Context& context, const ExchangePtr& exchange, const base::Json& body);      // /v1/completions
void ChatCompletions(Context& context, const ExchangePtr& exchange, const base::Json& body);  // /v1/chat/completions
void SglangGenerate(Context& context, const ExchangePtr& exchange, const base::Json& body);   // /generate

void Tokenize(Context& context, const ExchangePtr& exchange, const base::Json& body);
void Detokenize(Context& context, const ExchangePtr& exchange, const base::Json& body);

void AbortRequest(Context& context, const ExchangePtr& exchange, const base::Json& body);
void FlushCache(Context& context, const ExchangePtr& exchange, const base::Json& body);
void UpdateWeightsFromDisk(Context& context, const ExchangePtr& exchange, const base::Json& body);
void ReleaseMemory(Context& context, const ExchangePtr& exchange, const base::Json& body);
void ResumeMemory(Context& context, const ExchangePtr& exchange, const base::Json& body);

void Page(Context& context, const ExchangePtr& exchange, const base::Json& body);  // /
void Health(Context& context, const ExchangePtr& exchange, const base::Json& body);
void Models(Context& context, const ExchangePtr& exchange, const base::Json& body);
void OneModel(Context& context, const ExchangePtr& exchange, const base::Json& body);  // /v1/models/NAME
void ModelInfo(Context& context, const ExchangePtr& exchange, const base::Json& body);
void LoadReport(Context& context, const ExchangePtr& exchange, const base::Json& body);
void MetricsPage(Context& context, const ExchangePtr& exchange, const base::Json& body);

HttpResponse JsonResponse(const base::Json& json, int status = 200);

}  // namespace halfbyte::server

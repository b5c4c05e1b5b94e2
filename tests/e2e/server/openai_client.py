#!/usr/bin/env python3
"""The official openai client against a running server (tools/test-oracles.sh). usage: openai_client.py BASE_URL KEY PROGRAM SMALL_URL
BASE_URL allows weights from models/; SMALL_URL computes one request at a time, queues one more and gives each two seconds."""
import asyncio, concurrent.futures, json, re, subprocess, sys, time

import openai

base, key, program, small_url = sys.argv[1:5]
client = openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0)
MODEL = client.models.list().data[0].id
QUESTION = [{"role": "user", "content": "Olga saves $23 every week for 13 weeks. How many dollars has she?"}]
checks = 0


def check(what, condition, detail=""):
    global checks
    checks += 1
    if not condition: sys.exit(f"openai client: {what} failed: {detail}")


def fails(kind, call):
    try: call()
    except kind as e: return e
    sys.exit(f"openai client: {kind.__name__} was wanted")


def generate(prompt, n):
    out = subprocess.run([program, "generate", "--json", "-q", "--chat", "--prompt", prompt, "--max-tokens", str(n)], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


# The routes beside OpenAI's, by the same client without /v1.
raw = openai.OpenAI(base_url=base, api_key=key, max_retries=0)
get = lambda path, kind=object: raw.get(path, cast_to=kind)
post = lambda path, **body: raw.post(path, body=body, cast_to=object)
check("models", client.models.retrieve(MODEL).id == MODEL)
fails(openai.NotFoundError, lambda: client.models.retrieve("nobody"))
ids = post("/tokenize", prompt="Olga has 5 apples")
check("tokenize and back", post("/detokenize", tokens=ids["tokens"])["prompt"] == "Olga has 5 apples" and ids["count"] == len(ids["tokens"]), ids)
check("health", get("/health", str) is not None)
check("metrics", "halfbyte:num_requests_running" in get("/metrics", str))
check("load report", "experts" in get("/load_report", str))
check("model info", get("/get_model_info")["model_path"].endswith("demo"))
check("the page", "</html>" in get("/", str))

# A set of conversations, in company, equal to `generate` alone.
questions = [QUESTION[0]["content"], "Tom has 5 apples and buys 7 more. How many apples has Tom?", "Hello", "What is 12 times 3?", "A box holds 24 eggs. How many eggs are in 6 boxes?", "Caf\u00e9 \U0001F600"]
with concurrent.futures.ThreadPoolExecutor(len(questions)) as pool:
    answers = list(pool.map(lambda q: client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": q}], max_tokens=48, temperature=0).choices[0], questions))
for q, a in zip(questions, answers):
    g = generate(q, 48)
    check(f"conversation equals generate: {q}", (a.message.content, a.finish_reason) == (g["text"], g["finish_reason"]), (a, g))

# Chat, whole and streamed, equal to `generate`.
want = generate(QUESTION[0]["content"], 64)
whole = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=64, temperature=0, logprobs=True, top_logprobs=3)
choice = whole.choices[0]
check("chat equals generate", choice.message.content == want["text"], (choice.message.content, want["text"]))
check("finish reason", choice.finish_reason == want["finish_reason"], choice)
check("usage", whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens and whole.usage.prompt_tokens == len(want["prompt_tokens"]), whole.usage)
check("logprobs spell the text", "".join(t.token for t in choice.logprobs.content) == choice.message.content and all(len(t.top_logprobs) == 3 for t in choice.logprobs.content))
text, usage, reason = "", None, None
for chunk in client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=64, temperature=0, stream=True, stream_options={"include_usage": True}):
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
        reason = chunk.choices[0].finish_reason or reason
    usage = chunk.usage or usage
check("streamed equals whole", (text, reason, usage.completion_tokens) == (choice.message.content, choice.finish_reason, whole.usage.completion_tokens), (text, reason, usage))
tokens = []
for chunk in client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=64, temperature=0, stream=True, logprobs=True, top_logprobs=3):
    for c in chunk.choices:
        if c.logprobs: tokens += c.logprobs.content
check("streamed logprobs equal whole ones", [(t.token, t.logprob) for t in tokens] == [(t.token, t.logprob) for t in choice.logprobs.content])
check("top_logprobs hold the token itself", all(any(o.token == t.token and o.logprob == t.logprob for o in t.top_logprobs) for t in choice.logprobs.content))
with client.chat.completions.stream(model=MODEL, messages=QUESTION, max_tokens=200, temperature=0, stop=["="]) as events:
    for _ in events: pass
    final = events.get_final_completion().choices[0]
    check("stream helper", final.finish_reason == "stop" and want["text"].startswith(final.message.content), final)

# Sampling is a function of the seed.
sample = lambda seed: client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=32, temperature=1.5, seed=seed, n=2)
one, two, other = sample(7), sample(7), sample(8)
check("seed repeats", [c.message.content for c in one.choices] == [c.message.content for c in two.choices])
check("seeds and choices differ", len({c.message.content for c in one.choices + other.choices}) > 2)

# Completions.
c = client.completions.create(model=MODEL, prompt=["Olga has", "Tom has"], max_tokens=4, temperature=0, logprobs=2, echo=True)
check("two prompts", [x.index for x in c.choices] == [0, 1] and c.choices[1].text.startswith("Tom has"), c)
check("logprobs", len(c.choices[0].logprobs.tokens) == len(c.choices[0].logprobs.token_logprobs) and c.choices[0].logprobs.token_logprobs[0] is None)
olga = c.choices[0].text[len("Olga has"):]
chat_values = [t.logprob for t in choice.logprobs.content]
same = client.completions.create(model=MODEL, prompt=want["prompt_tokens"], max_tokens=64, temperature=0, logprobs=3).choices[0].logprobs
check("both dialects give the same logprobs", same.token_logprobs == chat_values and all(len(t) >= 3 for t in same.top_logprobs), (same.token_logprobs, chat_values))
text, values = "", []
for chunk in client.completions.create(model=MODEL, prompt=want["prompt_tokens"], max_tokens=64, temperature=0, logprobs=3, stream=True):
    for c in chunk.choices:
        text += c.text
        values += c.logprobs.token_logprobs if c.logprobs else []
check("completions streamed equal whole", (text, values) == (want["text"], chat_values), (text, values))
ids = client.completions.create(model=MODEL, prompt=want["prompt_tokens"], max_tokens=64, temperature=0)
check("token ids as prompt", ids.choices[0].text == want["text"], ids)
check("stop", client.completions.create(model=MODEL, prompt=want["prompt_tokens"], max_tokens=64, temperature=0, stop=[want["text"][4:7]]).choices[0].text == want["text"][:4])
check("max_tokens default", client.completions.create(model=MODEL, prompt="Olga has", extra_body={"ignore_eos": True}).usage.completion_tokens == 16)
bias = client.completions.create(model=MODEL, prompt="Olga", max_tokens=3, temperature=0, logit_bias={"100": 100}, logprobs=0)
check("logit_bias", len(set(bias.choices[0].logprobs.tokens)) == 1, bias)

# Structured output and tools.
schema = {"type": "object", "properties": {"weeks": {"type": "integer", "minimum": 0, "maximum": 99}, "paid": {"type": "boolean"}}, "required": ["weeks", "paid"], "additionalProperties": False}
s = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=400, temperature=0, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}})
value = json.loads(s.choices[0].message.content)
check("json_schema", set(value) == {"weeks", "paid"} and 0 <= value["weeks"] <= 99 and isinstance(value["paid"], bool), value)
s = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=400, temperature=0, response_format={"type": "json_object"})
check("json_object", s.choices[0].finish_reason == "length" or isinstance(json.loads(s.choices[0].message.content), dict), s)
s = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=100, temperature=1, seed=1, extra_body={"response_format": {"type": "regex", "pattern": "[0-9]{3}-(yes|no)"}})
check("regex", re.fullmatch("[0-9]{3}-(yes|no)", s.choices[0].message.content), s)
tools = [{"type": "function", "function": {"name": "pay", "parameters": schema}}]
t = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=400, temperature=0, tools=tools, tool_choice={"type": "function", "function": {"name": "pay"}})
call = t.choices[0].message.tool_calls[0]
check("tool call", call.function.name == "pay" and set(json.loads(call.function.arguments)) == {"weeks", "paid"} and t.choices[0].finish_reason == "tool_calls", t)
name, arguments, index, reason = "", "", None, None
for chunk in client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=400, temperature=0, tools=tools, tool_choice="required", stream=True):
    for c in chunk.choices:
        for d in c.delta.tool_calls or []:
            index, name, arguments = d.index, name + (d.function.name or ""), arguments + (d.function.arguments or "")
        reason = c.finish_reason or reason
check("streamed tool call", (index, name, arguments, reason) == (0, "pay", call.function.arguments, "tool_calls"), (index, name, arguments, reason))
history = QUESTION + [t.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "299"}]
try:
    client.chat.completions.create(model=MODEL, messages=history, max_tokens=8, tools=tools, tool_choice="none")
except openai.BadRequestError as e:
    check("a template that knows no tools says so", e.param == "messages", e)

# Errors.
e = fails(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=-1))
check("400 names the field", e.param == "temperature" and e.code == "invalid_value", e)
fails(openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=QUESTION))
fails(openai.AuthenticationError, lambda: openai.OpenAI(base_url=base + "/v1", api_key="wrong", max_retries=0).models.list())
fails(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=QUESTION, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}))
e = fails(openai.PermissionDeniedError, lambda: post("/update_weights_from_disk", model_path="../.."))
check("403 says why", e.code == "path_not_allowed", e)
fails(openai.APIStatusError, lambda: client.completions.create(model=MODEL, prompt="x" * (40 << 20)))  # 413

# A server that is full: 429 with Retry-After, which the client obeys by itself; and one that gives up after two seconds.
small = openai.OpenAI(base_url=small_url + "/v1", api_key=key, max_retries=0)
endless = lambda c=small: c.completions.create(model=MODEL, prompt="Olga", extra_body={"ignore_eos": True}, max_tokens=1900, temperature=0)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    outcomes = [f.exception() for f in [pool.submit(endless) for _ in range(8)]]
full = [e for e in outcomes if isinstance(e, openai.RateLimitError)]
check("429", full and all(e.response.headers["retry-after"] for e in full), outcomes)
late = [e for e in outcomes if isinstance(e, openai.APIStatusError) and e.status_code == 504]
check("504", late, outcomes)
patient = small.with_options(max_retries=20)
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    done = list(pool.map(lambda _: patient.completions.create(model=MODEL, prompt="Olga", max_tokens=3, temperature=0).choices[0].text, range(6)))
check("retries succeed", len(set(done)) == 1, done)

# SGLang's routes.
g = post("/generate", text="Olga has", sampling_params={"max_new_tokens": 4, "temperature": 0}, return_logprob=True)
check("generate", g["text"] == olga and len(g["meta_info"]["output_token_logprobs"]) == 4, g)
check("flush", post("/flush_cache")["success"])
check("update", post("/update_weights_from_disk", model_path="demo")["weight_version"] == 1)
again = post("/generate", text="Olga has", sampling_params={"max_new_tokens": 4, "temperature": 0}, return_logprob=True)
check("the same files give the same bits", again["meta_info"]["output_token_logprobs"] == g["meta_info"]["output_token_logprobs"], again)
check("release", post("/release_memory_occupation")["success"])
fails(openai.InternalServerError, lambda: client.completions.create(model=MODEL, prompt="x"))  # 503
check("resume", post("/resume_memory_occupation")["success"])
check("the same bits after it", post("/generate", text="Olga has", sampling_params={"max_new_tokens": 4, "temperature": 0}, return_logprob=True)["meta_info"]["output_token_logprobs"] == g["meta_info"]["output_token_logprobs"])
stream = client.completions.create(model=MODEL, prompt="Olga", max_tokens=1900, extra_body={"ignore_eos": True}, stream=True)
reason = None
for i, chunk in enumerate(stream):
    if i == 0: post("/abort_request", rid=chunk.id)
    reason = chunk.choices[0].finish_reason or reason
check("abort_request", reason == "abort", reason)


# Cancellation, and many at once.
async def together():
    a = openai.AsyncOpenAI(base_url=base + "/v1", api_key=key, max_retries=0)
    stream = await a.chat.completions.create(model=MODEL, messages=QUESTION, stream=True, temperature=0, extra_body={"ignore_eos": True})
    async for _ in stream: break
    await stream.close()
    answers = await asyncio.gather(*(a.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=64, temperature=0) for _ in range(16)))
    return [x.choices[0].message.content for x in answers]


running = lambda: float(re.search(r"halfbyte:num_requests_running\{[^}]*\} (\S+)", get("/metrics", str))[1])
with client.completions.create(model=MODEL, prompt="Olga", max_tokens=1900, extra_body={"ignore_eos": True}, stream=True) as stream:
    for _ in stream: break
end = time.time() + 5
while running() > 0 and time.time() < end: time.sleep(0.02)
check("a closed stream ends its request", running() == 0)
check("alone and in company the same", set(asyncio.run(together())) == {want["text"]})
print(f"openai client: {checks} checks passed")

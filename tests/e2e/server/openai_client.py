#!/usr/bin/env python3
"""The official openai client against a running server (tools/test-oracles.sh). usage: openai_client.py BASE_URL KEY PROGRAM"""
import asyncio, json, subprocess, sys

import openai

base, key, program = sys.argv[1:4]
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
tools = [{"type": "function", "function": {"name": "pay", "parameters": schema}}]
t = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=400, temperature=0, tools=tools, tool_choice={"type": "function", "function": {"name": "pay"}})
call = t.choices[0].message.tool_calls[0]
check("tool call", call.function.name == "pay" and set(json.loads(call.function.arguments)) == {"weeks", "paid"} and t.choices[0].finish_reason == "tool_calls", t)

# Errors.
e = fails(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=-1))
check("400 names the field", e.param == "temperature" and e.code == "invalid_value", e)
fails(openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=QUESTION))
fails(openai.AuthenticationError, lambda: openai.OpenAI(base_url=base + "/v1", api_key="wrong", max_retries=0).models.list())
fails(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=QUESTION, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}))


# Cancellation, and many at once.
async def together():
    a = openai.AsyncOpenAI(base_url=base + "/v1", api_key=key, max_retries=0)
    stream = await a.chat.completions.create(model=MODEL, messages=QUESTION, stream=True, temperature=0, extra_body={"ignore_eos": True})
    async for _ in stream: break
    await stream.close()
    answers = await asyncio.gather(*(a.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=64, temperature=0) for _ in range(16)))
    return [x.choices[0].message.content for x in answers]


check("alone and in company the same", set(asyncio.run(together())) == {want["text"]})
print(f"openai client: {checks} checks passed")

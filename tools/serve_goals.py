#!/usr/bin/env python3
"""Prints the goals of the server beside what this machine measures now: docs/server.md, "Figures". Nothing else should run.
  cmake --preset release -DHALFBYTE_BUILD_BENCH=ON && cmake --build build/release --target halfbyte serve_bench
  tools/serve_goals.py [--build build/release] [--bench-model ../shared/bench/qwen3-moe-4layer] [--quick]
Exit code 1 where a goal is missed. --quick: smaller counts, for a look; its figures are no evidence."""
import argparse, json, os, subprocess, sys, tempfile, threading, time

arguments = argparse.ArgumentParser()
arguments.add_argument("--build", default=os.path.join(os.path.dirname(__file__), "../build/release"))
arguments.add_argument("--bench-model", default=os.path.join(os.path.dirname(__file__), "../../shared/bench/qwen3-moe-4layer"))
arguments.add_argument("--quick", action="store_true")
a = arguments.parse_args()
program, client = os.path.join(a.build, "bin/halfbyte"), os.path.join(a.build, "bin/serve_bench")
missed = 0


def row(figure, goal, value, good):
    global missed
    missed += not good
    print(f"{figure:58} {goal:34} {value:60} {'' if good else 'MISSED'}", flush=True)


class Server:
    """halfbyte serve, ready; its memory and CPU time by /proc."""
    def __init__(self, *flags):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, "serve", "-q", "--port", "0", *flags], stderr=self.log)
        while True:
            self.log.seek(0)
            text = self.log.read()
            if "serving" in text: break
            if self.process.poll() is not None: sys.exit(text)
            time.sleep(0.05)
        self.port = text.split("http://")[1].split(":")[1].split()[0]

    def client(self, mode, **options):
        words = [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]
        out = subprocess.run([client, mode, "--port", self.port, *words], capture_output=True, text=True)
        if out.returncode: sys.exit(out.stderr)
        return json.loads(out.stdout)

    def post(self, path):
        import urllib.request
        return urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=b"{}", method="POST")).read()

    def rss(self, field="VmRSS"):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith(field + ":"): return int(line.split()[1]) / 1024
    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self): return self
    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def peak(server, work):
    """The result of work() and the largest resident memory meanwhile, in MiB."""
    most, done = [server.rss()], threading.Event()
    def watch():
        while not done.wait(0.02): most[0] = max(most[0], server.rss())
    t = threading.Thread(target=watch)
    t.start()
    result = work()
    done.set()
    t.join()
    return result, most[0]


def in_process(model, batch, tokens, *flags):
    out = subprocess.run([program, "bench", "-q", "--json", "--model", model, "--batch", str(batch), "--prompt-tokens", "32", "--decode-tokens", str(tokens), *flags], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


# `bench` decodes made-up tokens; answers at temperature 1 are as mixed, where greedy ones repeat themselves and reach fewer experts. Server and bench take turns and each pair gives a ratio, so that a machine whose speed drifts does not decide.
def throughput(name, model, goal, tokens, rounds, bench_flags, serve_flags):
    with Server("--model", model, "--max-batch", "16", *serve_flags) as s:
        pairs = []
        for _ in range(rounds):
            r = s.client("load", streams=16, requests=16, max_tokens=tokens, temperature=1)
            bench = in_process(model, 16, tokens - 1, "--repeat", "1", *bench_flags)["decode"]["tokens_per_second"]
            pairs.append((r["decode_tokens_per_second"] / bench, r["decode_tokens_per_second"], bench, r["client_cpu_seconds"] / r["seconds"]))
    share, served, bench, cpu = sorted(pairs)[len(pairs) // 2]
    row(f"decode over HTTP, 16 streams, {name}", f">= {goal:.0%} of bench", f"{share:.1%} ({served:.0f} of {bench:.0f} tokens/s; {min(pairs)[0]:.0%} to {max(pairs)[0]:.0%}), client {cpu:.1%} of a core", share >= goal)


print(f"load average {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores")
with Server("--model", "demo", "--max-batch", "64", "--max-queue", "1024") as s:
    before = s.rss()
    result, most = peak(s, lambda: s.client("load", streams=500, requests=500 if a.quick else 1000, max_tokens=64))
    row("500 SSE streams at once", "all complete, < 400 MB above model", f"{result['requests']} complete, {most - before:.0f} MB above {before:.0f} MB", most - before < 400)

throughput("demo", "demo", 0.60, 512, 3 if a.quick else 9, [], [])
if os.path.exists(a.bench_model):
    dummy = ["--load-format", "dummy"]
    throughput(os.path.basename(os.path.normpath(a.bench_model)), a.bench_model, 0.97, 64 if a.quick else 128, 2 if a.quick else 5, dummy, [*dummy, "--skip-tokenizer-init", "--max-model-len", "1024"])

with Server("--model", "demo", "--max-batch", "64") as s:
    t = s.client("ttft", streams=32, requests=50 if a.quick else 300, prompt_tokens=32, max_tokens=1500)
    prefill = 32 / in_process("demo", 1, 8, "--repeat", "1" if a.quick else "3")["prefill"]["tokens_per_second"]
    limit = 3 * t["decode_step"] + prefill
    row("TTFT p99, 32-token prompt while 32 streams decode", f"< 3 steps + prefill = {limit * 1e3:.1f} ms", f"{t['ttft_p99'] * 1e3:.1f} ms (p50 {t['ttft_p50'] * 1e3:.1f}, step {t['decode_step'] * 1e3:.2f}, prefill {prefill * 1e3:.2f})", t["ttft_p99"] < limit)
    h = s.client("hangups", requests=100, max_tokens=1900)
    row("clients that hang up", "100 of 100 seen, blocks back", f"{h['seen']:.0f} seen, blocks back within {h['blocks_back_p50'] * 1e3:.1f} ms (p50), {h['blocks_back_max'] * 1e3:.1f} ms (most)", h["seen"] == 100)
    before, seconds = s.cpu(), 5 if a.quick else 20
    time.sleep(seconds)
    idle = (s.cpu() - before) / seconds
    row("idle CPU", "< 1 % of a core", f"{idle:.2%}", idle < 0.01)

with Server("--model", "demo", "--max-batch", "64") as s:
    s.client("load", streams=64, requests=64, max_tokens=512)
    before = s.rss()
    s.post("/release_memory_occupation")
    released = s.rss()
    s.post("/resume_memory_occupation")
    s.client("load", streams=64, requests=64, max_tokens=512)
    row("release_memory_occupation", "memory goes back to the system", f"{before:.0f} MB, {released:.0f} MB released, {s.rss():.0f} MB resumed", before - released > 0.5 * before)
sys.exit(1 if missed else 0)

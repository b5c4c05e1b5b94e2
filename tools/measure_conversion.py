#!/usr/bin/env python3
"""How long `halfbyte quantize` takes beside what it cannot do without, each alone in the same run: reading the input and writing as many bytes as the output has
(both with two threads, the writing with fsync as the converter does).

  measure_conversion.py PROGRAM MODEL SCRATCH [quantize flags...]

MODEL: a folder, for instance of `peak_memory --write FOLDER` (2.2 GB of BF16 experts). SCRATCH: where the output goes; removed again. Median of three rounds.
"""
import concurrent.futures as cf, os, shutil, subprocess, sys, time

CHUNK = 4 << 20


def files(folder):
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".safetensors")]


def timed(body):
    begin = time.monotonic()
    body()
    return time.monotonic() - begin


def read(folder):
    def part(job):
        path, worker = job
        buffer, fd = bytearray(CHUNK), os.open(path, os.O_RDONLY)
        for at in range(worker * CHUNK, os.path.getsize(path), 2 * CHUNK):
            os.preadv(fd, [buffer], at)
        os.close(fd)
    with cf.ThreadPoolExecutor(2) as pool:
        list(pool.map(part, [(f, w) for f in files(folder) for w in (0, 1)]))


def write(path, size):
    block = os.urandom(CHUNK)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    def part(worker):
        for at in range(worker * CHUNK, size, 2 * CHUNK):
            os.pwrite(fd, block[: min(CHUNK, size - at)], at)
    with cf.ThreadPoolExecutor(2) as pool:
        list(pool.map(part, (0, 1)))
    os.fsync(fd)
    os.close(fd)
    os.remove(path)


def main():
    program, model, scratch, flags = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    out = os.path.join(scratch, "measure_conversion.out")
    rounds = []
    read(model)  # into the page cache
    for _ in range(3):
        shutil.rmtree(out, ignore_errors=True)
        convert = timed(lambda: subprocess.run([program, "quantize", "-q", "--model", model, "--out", out, *flags], check=True, stdout=subprocess.DEVNULL))
        size = sum(os.path.getsize(f) for f in files(out))
        shutil.rmtree(out)
        os.sync()
        r, w = timed(lambda: read(model)), timed(lambda: write(out + ".bytes", size))
        rounds.append((convert / (r + w), convert, r, w, size))
    ratio, convert, r, w, size = sorted(rounds)[1]
    given = sum(os.path.getsize(f) for f in files(model))
    print(f"{given / 1e9:.2f} GB to {size / 1e9:.2f} GB in {convert:.2f} s ({given / 2e9 / convert:.2f} G parameters/s); alone: reading {r:.2f} s, writing {w:.2f} s; "
          f"{ratio:.2f} times their sum")


if __name__ == "__main__":
    main()

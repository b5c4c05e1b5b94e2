#!/usr/bin/env bash
# Installs every Debian package that building and testing need: the one list that the README's commands and CI share.
# Does nothing where all is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config python3
  libboost1.81-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev libexpected-dev
  libtbb-dev libpcre2-dev libutf8proc-dev prometheus-cpp-dev libnuma-dev libssl-dev openssl
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
)
# clang with its sanitizer run times is needed for the asan, tsan and fuzz presets only.
[ "${1:-}" = "--with-clang" ] && packages+=(clang-19 libclang-rt-19-dev lld-19)

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

echo "installing: ${missing[*]}"
as_root=(); [ "$(id -u)" = 0 ] || as_root=(sudo)
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}"

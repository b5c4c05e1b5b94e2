# Language level, warnings, sanitizers, compiler cache.
option(HALFBYTE_BUILD_TESTS "Build the test programs" ON)
option(HALFBYTE_BUILD_FUZZERS "Build the libFuzzer programs (clang only)" OFF)
option(HALFBYTE_BUILD_BENCH "Build the benchmarks" OFF)
option(HALFBYTE_WERROR "Treat warnings as errors" OFF)
set(HALFBYTE_SANITIZE "" CACHE STRING "Comma separated -fsanitize= list, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-psabi)
endif()
if(HALFBYTE_WERROR)
  add_compile_options(-Werror)
endif()

# Bytes and logits are promised to the last bit: a compiler that merges a*b+c into one rounding breaks them
# (tests/unit/numerics proves it). Kernels that want FMA say so with intrinsics.
add_compile_options(-ffp-contract=off)

# Release keeps assertions of the standard library out; programmer errors are caught by HB_CHECK in every build.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")

if(HALFBYTE_SANITIZE)
  add_compile_options(-fsanitize=${HALFBYTE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HALFBYTE_SANITIZE})
endif()

if(HALFBYTE_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage in our own code; only the fuzzers link libFuzzer's main
endif()

find_program(HALFBYTE_CCACHE ccache)
if(HALFBYTE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HALFBYTE_CCACHE}")
endif()

// SPDX-License-Identifier: Apache-2.0
// uninitialized_program right|wrong: says whether it runs under valgrind, and with `wrong` decides by a word that
// nobody has written.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  std::puts(preloaded != nullptr && std::strstr(preloaded, "vgpreload_memcheck") != nullptr ? "watched" : "alone");
  auto* const memory = static_cast<int*>(std::malloc(sizeof(int)));
  if (memory == nullptr) return 1;
  const std::atomic_ref<int> word(*memory);  // the compiler must not know that nobody has written it
  if (argc < 2 || std::strcmp(argv[1], "wrong") != 0) word.store(1);
  if (word.load() == 42) std::puts("by chance");
  std::free(memory);
  return 0;
}

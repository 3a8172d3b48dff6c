// SPDX-License-Identifier: Apache-2.0
// rmarun -n 2 host_process_program unchanged | heap | hangup
//
// Goal: the process of a rank stays the program's. `unchanged`: handlers, masks, environment, memory calls and the
// rounding mode are the same before, during and after a Runtime; no thread of the library takes signals; nothing of the
// process lies in /dev/shm, where a kill would leave it. `heap`: a rank that crashes inside malloc
// dies. `hangup`: SIGHUP ends a rank.
// Method: a `sigaction` of this program's own counts the changes that any library makes, also those that it takes back.
// Break: load UCX without the settings of src/fabric/ucx/calls.cpp, or with its shared memory.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

namespace {

constexpr int signals = 32;  // the standard ones

std::atomic<int> handlers_set{0};

void mine(int) {}

struct process_state {
  std::array<struct sigaction, signals> actions{};
  sigset_t mask{};
  stack_t handler_stack{};
  char** environment = environ;
  std::vector<std::string> variables;
  int rounding = std::fegetround();

  process_state() {
    for (int s = 1; s < signals; ++s) ::sigaction(s, nullptr, &actions[static_cast<std::size_t>(s)]);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    ::sigaltstack(nullptr, &handler_stack);
    for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  }
};

/// Counts and prints what is not as it should be.
class findings {
 public:
  void add(std::string_view when, const std::string& what) {
    ++count_;
    std::printf("%s: %s\n", std::string(when).c_str(), what.c_str());
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  int count_ = 0;
};

void compare(const process_state& before, std::string_view when, findings& found) {
  const process_state now;
  for (int s = 1; s < signals; ++s) {
    const auto& was = before.actions[static_cast<std::size_t>(s)];
    const auto& is = now.actions[static_cast<std::size_t>(s)];
    if (was.sa_handler != is.sa_handler || was.sa_flags != is.sa_flags)
      found.add(when, "another handler of signal " + std::to_string(s));
    if (sigismember(&before.mask, s) != sigismember(&now.mask, s))
      found.add(when, "another mask of signal " + std::to_string(s));
  }
  if (handlers_set.load() != 0) found.add(when, std::to_string(handlers_set.load()) + " handlers were set meanwhile");
  if (before.handler_stack.ss_sp != now.handler_stack.ss_sp) found.add(when, "another stack for handlers");
  if (before.environment != now.environment || before.variables != now.variables)
    found.add(when, "another environment");
  if (before.rounding != now.rounding) found.add(when, "another rounding mode");
}

bool takes_signals(const std::filesystem::path& task) {
  std::ifstream lines(task / "status");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    const unsigned long long blocked = std::stoull(line.substr(7), nullptr, 16);
    constexpr unsigned long long never = 1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1), standard = (1ULL << 31) - 1;
    return (blocked | never) % (standard + 1) != standard;
  }
  return false;  // it has ended
}

void look_at_threads(std::string_view when, findings& found) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() != std::to_string(::getpid()) && takes_signals(task.path()))
      found.add(when, "a thread of the library takes signals");
  }
}

/// The names of what is mapped.
std::string mappings() {
  std::ifstream maps("/proc/self/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

void look_at_memory(std::string_view when, findings& found) {
  if (mappings().find("/dev/shm/") != std::string::npos) found.add(when, "memory in /dev/shm");
  constexpr std::size_t bytes = 1 << 16;
  const auto map = [] { return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  void* const from = map();
  void* const to = map();
  if (::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
    found.add(when, "mremap maps somewhere else");
  ::munmap(to, bytes);
}

void use(rma::Runtime& rt) {
  auto window = rma::Window<long>::allocate(rt.world(), 1 << 16);
  const std::vector<long> from(1 << 16, rt.rank());
  window.fence();
  window.put(std::span(from), (rt.rank() + 1) % rt.size(), 0);
  window.fence(rma::no_succeed);
  {
    auto epoch = window.lock(rma::exclusive, 0);
    window.accumulate(1L, 0, 0, rma::sum);
  }
  rt.world().barrier();
}

int unchanged(int argc, char** argv) {
  for (int s = 1; s < signals; ++s) {
    if (s != SIGKILL && s != SIGSTOP) ::signal(s, &mine);
  }
  sigset_t some;
  ::sigemptyset(&some);
  ::sigaddset(&some, SIGUSR2);
  ::pthread_sigmask(SIG_SETMASK, &some, nullptr);
  std::fesetround(FE_DOWNWARD);
  const process_state before;
  handlers_set.store(0);
  findings found;
  {
    rma::Runtime rt(argc, argv);
    compare(before, "made", found);
    look_at_threads("made", found);
    look_at_memory("made", found);
    use(rt);
    compare(before, "used", found);
    look_at_threads("used", found);
    look_at_memory("used", found);
  }
  compare(before, "ended", found);
  const bool has_ucx = mappings().find("libucs") != std::string::npos;
  std::printf("host_process_program: %d findings, UCX was %s\n", found.count(), has_ucx ? "loaded" : "not loaded");
  return found.count() == 0 ? 0 : 1;
}

/// The list of free memory is damaged, as by writing beyond a buffer: malloc, with its lock held, reads where nothing
/// is.
void crash_in_malloc() {
  std::array<void**, 64> chunks{};
  for (auto& each : chunks) each = static_cast<void**>(std::malloc(3000));
  // The neighbors of those that are freed keep them from being joined.
  for (std::size_t i = 0; i < chunks.size(); i += 2) std::free(chunks[i]);
  for (std::size_t i = 0; i < chunks.size(); i += 2) std::atomic_ref(chunks[i][1]).store(reinterpret_cast<void*>(0x10));
  std::atomic<void*> more;
  for (std::size_t i = 0; i < chunks.size(); ++i) more.store(std::malloc(5000 + 16 * i));
}

int die(int argc, char** argv, bool in_malloc) {
  rma::Runtime rt(argc, argv);
  use(rt);
  if (rt.rank() == 1) {
    if (in_malloc) crash_in_malloc();
    ::raise(SIGHUP);
    std::printf("host_process_program: the rank lives on\n");
    std::fflush(stdout);
  }
  rt.world().barrier();
  return 0;
}

}  // namespace

// Takes the place of the C library's for all of the process.
extern "C" int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  using function = int(int, const struct sigaction*, struct sigaction*);
  static auto* const original = reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "sigaction"));
  if (action != nullptr) ++handlers_set;
  return original(signal, action, old);
}

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "unchanged") return unchanged(argc, argv);
    if (mode == "heap" || mode == "hangup") return die(argc, argv, mode == "heap");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "host_process_program: %s\n", e.what());
    return 1;
  }
  std::fprintf(stderr, "Usage: rmarun -n 2 host_process_program unchanged | heap | hangup\n");
  return 2;
}

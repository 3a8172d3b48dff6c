// SPDX-License-Identifier: Apache-2.0
// Goal: where the kernel forbids that one process copies to another, user memory is reached with its owner's help, and
// `one_sided` and `fabrics` say so; where it does not, they say nothing of the kind.
//
// Method: a seccomp filter refuses the system calls, if asked to. Each rank asks its windows, then puts to the next one
// and gets what it has put, in sizes and shapes that go different ways, while the target waits in the library, and
// while it computes and looks in now and then.
//
// Break: take the fabric for one-sided without a try; take it for not one-sided always.
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t words_max = 40'000;
constexpr int skipped = 77;

/// From here on process_vm_readv and process_vm_writev end with EPERM.
bool forbid_attach() {
  std::array code{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(code.size()), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Tries it on this process: a machine that forbids it altogether forbids it here, too.
bool attach_works() {
  int from = 1, to = 0;
  const iovec here{&to, sizeof to}, there{&from, sizeof from};
  return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof to);
}

bool says(bool good, const rma::Runtime& rt, std::string_view what) {
  if (!good) fmt::print("no_attach: rank {}: {}\n", rt.rank(), what);
  return good;
}

/// In a part of the target's memory that is this rank's.
bool words_come_back(rma::Runtime& rt, rma::Window<int>& win, int target, std::size_t words, bool rows) {
  const std::size_t at = static_cast<std::size_t>(rt.rank()) * words_max + 1;
  std::vector<int> from(words);
  std::vector<int> to(words, -1);
  std::iota(from.begin(), from.end(), 7 * static_cast<int>(words) + rt.rank());
  const rma::Epoch epoch = win.lock(rma::shared, target);
  if (rows) {
    const auto rows_there = rma::Layout::vector<int>(words / 4, 4, 8);
    const auto rows_here = rma::Layout::contiguous<int>(words);
    win.put(from.data(), rows_here, target, at, rows_there);
    win.flush(target);
    win.get(to.data(), rows_here, target, at, rows_there);
  } else {
    win.put(std::span<const int>(from), target, at);
    win.flush(target);
    win.get(std::span(to), target, at);
  }
  win.flush(target);
  return says(from == to, rt,
              fmt::format("{} words{} were not got as they had been put", words, rows ? " in rows" : ""));
}

bool all_come_back(rma::Runtime& rt, rma::Window<int>& win) {
  const int other = (rt.rank() + 1) % rt.size();
  bool good = true;
  for (const std::size_t words : std::to_array<std::size_t>({1, 64, 1000, 5000, words_max - 8})) {
    for (int i = 0; i < 4; ++i) good = words_come_back(rt, win, other, words, false) && good;
  }
  good = words_come_back(rt, win, other, 16, true) && good;
  return words_come_back(rt, win, other, 4000, true) && good;
}

}  // namespace

int main(int argc, char** argv) {
  const bool forbidden = argc > 1 && std::string_view(argv[1]) == "--forbidden";
  if (!attach_works() || (forbidden && !forbid_attach())) {
    fmt::print("no_attach: skipped: this machine has no seccomp filters, or no cross-memory attach\n");
    return skipped;
  }
  rma::Runtime rt(argc, argv);
  std::vector<int> memory(words_max * static_cast<std::size_t>(rt.size()));
  auto win = rma::Window<int>::create(rt.world(), std::span(memory));
  auto allocated = rma::Window<int>::allocate(rt.world(), static_cast<std::size_t>(rt.size()));
  const int other = (rt.rank() + 1) % rt.size();
  bool good = true;
  for (const auto kind : {rma::detail::call::put, rma::detail::call::get}) {
    good = says(win.one_sided(kind, other) != forbidden, rt, "one_sided is wrong of user memory") && good;
    good = says(allocated.one_sided(kind, other), rt, "one_sided is wrong of library memory") && good;
  }
  const bool told = rt.fabrics().front().find("process_vm_readv") != std::string::npos;
  good = says(told == forbidden, rt, rt.fabrics().front()) && good;

  // One at a time: the others wait in the library. Then all at once.
  for (int turn = 0; turn < rt.size(); ++turn) {
    if (turn == rt.rank()) good = all_come_back(rt, win) && good;
    rt.world().barrier();
  }
  good = all_come_back(rt, win) && good;
  // At last the target of all but itself is a rank that computes, and looks in until they are done.
  const int last = rt.size() - 1;
  if (rt.rank() == last) {
    const auto done = [&](int& each) { return std::atomic_ref(each).load() != 0; };
    while (!std::all_of(allocated.local().begin(), allocated.local().end() - 1, done)) rt.progress();
  } else {
    for (int i = 0; i < 4; ++i) good = words_come_back(rt, win, last, 5000, i % 2 != 0) && good;
    const rma::Epoch epoch = allocated.lock(rma::shared, last);
    allocated.put(1, last, static_cast<std::size_t>(rt.rank()));
  }
  rt.world().barrier();
  allocated.free();
  win.free();
  if (rt.rank() == 0 && good) fmt::print("no_attach: done\n");
  return good ? 0 : 1;
}

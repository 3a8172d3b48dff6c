// SPDX-License-Identifier: Apache-2.0
// Goal: when a call that changes watched memory has returned, the change is known; what is not watched costs nobody
// anything; nobody waits for a reader that is not there.
// Method: every call that takes pages away, and what it does to a watch; children; a second watch. A test that waits
// for ever is one that fails: by time-out.
#include "fabric/verbs/unmap_watch.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/own_pages.hpp"
#include "skip.hpp"

using namespace rma::verbs;
using namespace rma::verbs::test;

namespace {

using verdict = unmap_watch::verdict;
using outcome = unmap_watch::outcome;
constexpr auto by_kernel = unmap_watch::source::kernel;

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/// The changes since the last time.
std::vector<change> news_of(unmap_watch& watch) {
  std::vector<change> news;
  news.reserve(unmap_watch::changes_max + 1);
  outcome said = outcome::busy;
  while (said == outcome::busy) said = watch.catch_up(news);
  REQUIRE(said == outcome::settled);
  REQUIRE(watch.quiet());
  return news;
}

bool says(const std::vector<change>& news, page_range pages, bool gone) {
  return std::any_of(news.begin(), news.end(), [&](const change& c) { return c.pages == pages && c.gone == gone; });
}

/// Runs `work` in a child. Its exit status.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int how = 0;
  ::waitpid(child, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/// A child that keeps this process's descriptors open until the end of the scope.
class lingering_child {
 public:
  lingering_child() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      char byte = 0;
      (void)!::read(ends[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ends[0]);
    over_ = ends[1];
  }
  ~lingering_child() {
    ::close(over_);
    ::waitpid(pid_, nullptr, 0);
  }
  lingering_child(const lingering_child&) = delete;
  lingering_child& operator=(const lingering_child&) = delete;

 private:
  pid_t pid_ = -1;
  int over_ = -1;
};

/// From now on this process may not use userfaultfd.
bool forbid_userfaultfd() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_userfaultfd},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{4, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// The line of /proc/self/task/*/status that begins with `key`, of the thread with that name.
std::string status_of_thread(const std::string& name, const std::string& key) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "status");
    bool found = false;
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("Name:", 0) == 0) found = line.find(name) != std::string::npos;
      if (found && line.rfind(key, 0) == 0) return line.substr(key.size());
    }
  }
  return {};
}

}  // namespace

TEST_CASE("a watch without the kernel", "[fabric][verbs][watch]") {
  unmap_watch watch(unmap_watch::source::program);
  const own_pages pages(1);
  CHECK(watch.watch(pages.range()) == verdict::tracked);
  CHECK(watch.quiet());
  CHECK(news_of(watch).empty());
  watch.unwatch(pages.range());
}

TEST_CASE("every call that takes pages away is news", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  own_pages pages(16);
  std::memset(pages.at(), 1, pages.bytes());
  REQUIRE(watch.watch(pages.range()) == verdict::tracked);
  CHECK(watch.quiet());
  const page_range part = pages.range(4, 4);
  void* const at = part.at();
  own_pages elsewhere(4);
  bool gone = true;

  SECTION("munmap") { REQUIRE(pages.unmap(4, 4)); }
  SECTION("mmap over it") {
    REQUIRE(::mmap(at, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
  }
  SECTION("mremap to elsewhere") {
    REQUIRE(::mremap(at, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere.at()) == elsewhere.at());
    pages.give_up(4, 4);
    const auto news = news_of(watch);
    CHECK(says(news, part, true));
    CHECK(says(news, part, false));
    std::memset(elsewhere.at(), 1, 4 * page);
    REQUIRE(elsewhere.unmap(0, 4));  // is not watched there
    CHECK(watch.quiet());
    REQUIRE(::madvise(pages.at(), page, MADV_DONTNEED) == 0);  // but the rest still is
    CHECK(says(news_of(watch), pages.range(0, 1), false));
    watch.unwatch(pages.range());
    return;
  }
  SECTION("mremap that leaves the addresses") {
    constexpr int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    if (::mremap(at, 4 * page, 4 * page, how, elsewhere.at()) == MAP_FAILED)
      return rma::test::skip("this kernel has no MREMAP_DONTUNMAP");
    gone = false;
  }
  SECTION("mremap to over it") {
    elsewhere.give_up(0, 4);
    REQUIRE(::mremap(elsewhere.at(), 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
  }
  SECTION("mremap to less") {
    const page_range end = pages.range(12, 4);
    pages.give_up(12, 4);
    REQUIRE(::mremap(pages.at(8), 8 * page, 4 * page, 0) == pages.at(8));
    CHECK(says(news_of(watch), end, true));
    return watch.unwatch(pages.range(0, 12));
  }
  SECTION("madvise: not needed") {
    gone = false;
    REQUIRE(::madvise(at, 4 * page, MADV_DONTNEED) == 0);
  }
  SECTION("madvise: free") {
    gone = false;
    REQUIRE(::madvise(at, 4 * page, MADV_FREE) == 0);
  }
  CHECK_FALSE(watch.quiet());
  const auto news = news_of(watch);
  REQUIRE(news.size() == 1);
  CHECK(news[0].pages == part);
  CHECK(news[0].gone == gone);
  watch.unwatch(pages.range(0, 4));
  watch.unwatch(pages.range(8, 8));
  if (!gone) watch.unwatch(part);
}

TEST_CASE("a heap that shrinks is news", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  const auto now = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  const std::uintptr_t first = (now + page - 1) / page * page;
  REQUIRE(::brk(reinterpret_cast<void*>(first + 8 * page)) == 0);
  const verdict seen = watch.watch({first, first + 8 * page});
  REQUIRE(::brk(reinterpret_cast<void*>(now)) == 0);  // before anything allocates
  CHECK(seen == verdict::tracked);
  CHECK(says(news_of(watch), {first, first + 8 * page}, true));
}

TEST_CASE("what is not watched is no news", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  const own_pages pages(12);
  REQUIRE(watch.watch(pages.range(2, 8)) == verdict::tracked);
  watch.unwatch(pages.range(4, 2));
  const auto discard = [&](std::size_t index, std::size_t count) {
    REQUIRE(::madvise(pages.at(index), count * page, MADV_DONTNEED) == 0);
  };
  discard(0, 2);
  discard(4, 2);
  discard(10, 2);
  CHECK(watch.quiet());
  discard(2, 2);
  discard(6, 4);
  const auto news = news_of(watch);
  CHECK(news.size() == 2);
  CHECK(says(news, pages.range(2, 2), false));
  CHECK(says(news, pages.range(6, 4), false));
  watch.unwatch(pages.range());
  discard(0, 12);
  CHECK(watch.quiet());
}

TEST_CASE("a watch ends where memory has become something else meanwhile", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  own_pages pages(12);
  REQUIRE(watch.watch(pages.range()) == verdict::tracked);
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);  // such memory cannot be unwatched
  REQUIRE(::mmap(pages.at(4), page, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == pages.at(4));
  ::close(fd);
  REQUIRE(pages.unmap(8, 1));
  CHECK(news_of(watch).size() == 2);
  watch.unwatch(pages.range());
  REQUIRE(::madvise(pages.at(0), 4 * page, MADV_DONTNEED) == 0);
  REQUIRE(::madvise(pages.at(5), 3 * page, MADV_DONTNEED) == 0);
  REQUIRE(pages.unmap(9, 3));
  CHECK(watch.quiet());
}

TEST_CASE("only private memory of no file is watched", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  const int memory_file = ::memfd_create("unmap_watch_test", MFD_CLOEXEC);
  REQUIRE(::ftruncate(memory_file, static_cast<off_t>(4 * page)) == 0);
  const int program = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  own_pages pages(8);
  const auto map = [&](int protection, int flags, int fd) {
    REQUIRE(::mmap(pages.at(4), 4 * page, protection, flags | MAP_FIXED, fd, 0) == pages.at(4));
  };
  const auto refuses = [&watch](page_range range) {
    const verdict said = watch.watch(range);
    CHECK(said != verdict::tracked);
    if (said == verdict::unfit) watch.unwatch(range);
  };
  const bool touched = GENERATE(true, false);
  constexpr int both = PROT_READ | PROT_WRITE;
  SECTION("shared memory") { map(both, MAP_SHARED | MAP_ANONYMOUS, -1); }
  SECTION("memory of a file in memory") { map(both, MAP_SHARED, memory_file); }
  SECTION("a private view of it") { map(both, MAP_PRIVATE, memory_file); }
  SECTION("memory of a file") { map(PROT_READ, MAP_SHARED, program); }
  SECTION("a private view of that") { map(both, MAP_PRIVATE, program); }
  SECTION("nothing") { REQUIRE(pages.unmap(4, 4)); }
  if (touched && all_private_anonymous(pages.range(4, 4))) std::memset(pages.at(4), 1, 4 * page);
  refuses(pages.range(4, 4));
  refuses(pages.range());
  refuses(pages.range(3, 2));
  CHECK(watch.watch(pages.range(0, 4)) == verdict::tracked);
  watch.unwatch(pages.range(0, 4));
  ::madvise(pages.at(0), 8 * page, MADV_DONTNEED);
  CHECK(watch.quiet());
  ::close(memory_file);
  ::close(program);
}

TEST_CASE("private memory that is several mappings to the kernel is watched", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  own_pages pages(9);
  REQUIRE(::mprotect(pages.at(3), page, PROT_READ) == 0);
  REQUIRE(watch.watch(pages.range(5, 2)) == verdict::tracked);
  std::memset(pages.at(5), 1, 2 * page);
  CHECK(watch.watch(pages.range()) == verdict::tracked);
  REQUIRE(pages.unmap(0, 9));
  CHECK(news_of(watch).size() >= 1);
  CHECK(watch.watch(pages.range()) == verdict::refused);  // there is nothing
}

TEST_CASE("two watches of one process do not disturb each other", "[fabric][verbs][watch]") {
  unmap_watch one(by_kernel);
  if (one.obstacle() != nullptr) return rma::test::skip(one.obstacle());
  unmap_watch two(by_kernel);
  const own_pages pages(8);
  REQUIRE(one.watch(pages.range(0, 4)) == verdict::tracked);
  CHECK(two.watch(pages.range(0, 4)) == verdict::refused);
  CHECK(two.watch(pages.range(2, 4)) == verdict::refused);
  CHECK(two.watch(pages.range(4, 4)) == verdict::tracked);
  REQUIRE(::madvise(pages.at(), pages.bytes(), MADV_DONTNEED) == 0);
  CHECK(says(news_of(one), pages.range(0, 4), false));
  CHECK(says(news_of(two), pages.range(4, 4), false));
  one.unwatch(pages.range(0, 4));
  CHECK(two.watch(pages.range(0, 4)) == verdict::tracked);
  two.unwatch(pages.range());
}

TEST_CASE("changes that nobody asks for", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  const own_pages pages(4);
  REQUIRE(watch.watch(pages.range()) == verdict::tracked);
  const auto discard = [&](std::size_t index) { REQUIRE(::madvise(pages.at(index), page, MADV_DONTNEED) == 0); };
  SECTION("the same again and again is written down once") {
    for (std::size_t i = 0; i < 100; ++i) discard(1);
    CHECK(news_of(watch).size() == 1);
    discard(1);
    CHECK(news_of(watch).size() == 1);
  }
  SECTION("as many as there is room for") {
    for (std::size_t i = 0; i < unmap_watch::changes_max; ++i) discard(i % 2);
    CHECK(news_of(watch).size() == unmap_watch::changes_max);
  }
  SECTION("more than there is room for: everything may have changed") {
    for (std::size_t i = 0; i < unmap_watch::changes_max + 1; ++i) discard(i % 2);
    CHECK(says(news_of(watch), {0, ~std::uintptr_t{0}}, false));
    CHECK(news_of(watch).empty());
    discard(3);
    CHECK(news_of(watch).size() == 1);
  }
  watch.unwatch(pages.range());
}

TEST_CASE("a child has its memory for itself", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  const own_pages pages(8);
  std::memset(pages.at(), 1, pages.bytes());
  REQUIRE(watch.watch(pages.range()) == verdict::tracked);
  CHECK(in_child([&] {
          ::alarm(20);
          std::vector<change> news;
          if (watch.quiet() || watch.catch_up(news) != outcome::forked) return 1;
          if (watch.watch(pages.range(0, 1)) != verdict::refused) return 2;
          watch.unwatch(pages.range());  // must not reach the parent's
          if (::madvise(pages.at(4), page, MADV_DONTNEED) != 0 || ::munmap(pages.at(), 4 * page) != 0) return 3;
          watch.~unmap_watch();
          return 0;
        }) == 0);
  CHECK(watch.quiet());
  REQUIRE(::madvise(pages.at(4), page, MADV_DONTNEED) == 0);
  CHECK(says(news_of(watch), pages.range(4, 1), false));
  watch.unwatch(pages.range());
}

TEST_CASE("a watch that has ended holds nobody, though a child still has the descriptor", "[fabric][verbs][watch]") {
  auto watch = std::make_unique<unmap_watch>(by_kernel);
  if (watch->obstacle() != nullptr) return rma::test::skip(watch->obstacle());
  own_pages pages(8);
  own_pages elsewhere(2);
  std::memset(pages.at(), 1, pages.bytes());
  REQUIRE(watch->watch(pages.range()) == verdict::tracked);
  const lingering_child child;
  pages.give_up(6, 2);
  REQUIRE(::mremap(pages.at(6), 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere.at()) == elsewhere.at());
  CHECK(news_of(*watch).size() == 2);
  watch->unwatch(pages.range(0, 6));
  watch.reset();
  CHECK(::madvise(pages.at(), page, MADV_DONTNEED) == 0);
  CHECK(pages.unmap(0, 4));
  CHECK(elsewhere.unmap(0, 2));
}

TEST_CASE("the reader is deaf to signals, and is not there before it is needed", "[fabric][verbs][watch]") {
  unmap_watch watch(by_kernel);
  if (watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  CHECK(status_of_thread("rma-unmap", "SigBlk:").empty());
  const own_pages pages(1);
  REQUIRE(watch.watch(pages.range()) == verdict::tracked);
  const std::string blocked = status_of_thread("rma-unmap", "SigBlk:");
  REQUIRE_FALSE(blocked.empty());
  const auto mask = std::stoull(blocked, nullptr, 16);
  for (const int signal : {SIGALRM, SIGUSR1, SIGTERM, SIGCHLD}) CHECK((mask >> (signal - 1) & 1) == 1);
  watch.unwatch(pages.range());
}

TEST_CASE("who may not use userfaultfd watches nothing", "[fabric][verbs][watch]") {
  CHECK(in_child([] {
          if (!forbid_userfaultfd()) return 1;
          unmap_watch watch(by_kernel);
          const own_pages pages(1);
          if (watch.obstacle() == nullptr) return 2;
          if (watch.watch(pages.range()) != verdict::refused) return 3;
          watch.unwatch(pages.range());
          return watch.quiet() ? 0 : 4;
        }) == 0);
}

TEST_CASE("who has no privileges can watch", "[fabric][verbs][watch]") {
  if (const unmap_watch watch(by_kernel); watch.obstacle() != nullptr) return rma::test::skip(watch.obstacle());
  constexpr uid_t nobody = 65534;
  const int said = in_child([] {
    if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) return 10;
    unmap_watch watch(by_kernel);
    if (watch.obstacle() != nullptr) return 11;
    own_pages pages(2);
    if (watch.watch(pages.range()) != verdict::tracked) return 1;
    pages.unmap(0, 1);
    std::vector<change> news;
    news.reserve(unmap_watch::changes_max + 1);
    while (watch.catch_up(news) == outcome::busy) continue;
    if (news.size() != 1) return 2;
    watch.unwatch(pages.range(1, 1));
    return 0;
  });
  if (said == 10) return rma::test::skip("this process may not become another user");
  CHECK(said == 0);
}

// SPDX-License-Identifier: Apache-2.0
// Goal: what is mapped is told right: where, of what kind, and where nothing is.
// Method: mappings of every kind side by side; as many lines as need several reads.
#include "fabric/verbs/mappings.hpp"

#include <sched.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <vector>

#include "fabric/verbs/own_pages.hpp"
#include "skip.hpp"

using namespace rma::verbs;
using namespace rma::verbs::test;

namespace {

struct collector final : mapping_visitor {
  void visit(const mapping& m) noexcept override { found.push_back(m); }
  std::vector<mapping> found;
};

std::vector<mapping> mappings_in(page_range pages) {
  collector all;
  all.found.reserve(100000);  // the mappings that are looked at must not change
  REQUIRE(visit_mappings(pages, all));
  return all.found;
}

}  // namespace

TEST_CASE("ranges of pages", "[fabric][verbs][mappings]") {
  const page_range a{10, 20};
  CHECK(a.covers({10, 20}));
  CHECK_FALSE(a.covers({10, 21}));
  CHECK_FALSE(a.covers({9, 20}));
  CHECK(a.overlaps({19, 30}));
  CHECK_FALSE(a.overlaps({20, 30}));
  CHECK_FALSE(a.overlaps({5, 10}));
  CHECK(common(a, {15, 30}) == page_range{15, 20});
  CHECK(common(a, {25, 30}).empty());
  CHECK(hull(a, {15, 30}) == page_range{10, 30});
  CHECK(hull({15, 30}, a) == page_range{10, 30});
}

TEST_CASE("the kinds of mappings", "[fabric][verbs][mappings]") {
  own_pages pages(8);
  const int fd = ::memfd_create("mappings test", MFD_CLOEXEC);  // a name with a space
  REQUIRE(::ftruncate(fd, static_cast<off_t>(page)) == 0);
  const auto map = [&](std::size_t index, int flags, int file) {
    REQUIRE(::mmap(pages.at(index), page, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0) != MAP_FAILED);
  };
  map(2, MAP_SHARED | MAP_ANONYMOUS, -1);
  map(4, MAP_SHARED, fd);
  map(5, MAP_PRIVATE, fd);
  REQUIRE(pages.unmap(7, 1));
  ::close(fd);

  const auto found = mappings_in(pages.range(1, 7));
  REQUIRE(found.size() == 6);
  CHECK(found[0].pages.last == pages.range(0, 2).last);
  CHECK(found[1].pages == pages.range(2, 1));
  CHECK(found[5].pages == pages.range(6, 1));
  const std::vector<bool> expected{true, false, true, false, false, true};
  for (std::size_t i = 0; i < 6; ++i) CHECK(found[i].private_anonymous == expected[i]);

  CHECK(all_private_anonymous(pages.range(0, 2)));
  CHECK(all_private_anonymous(pages.range(1, 1)));
  CHECK_FALSE(all_private_anonymous(pages.range(1, 2)));
  CHECK_FALSE(all_private_anonymous(pages.range(2, 1)));
  CHECK_FALSE(all_private_anonymous(pages.range(2, 2)));
  CHECK_FALSE(all_private_anonymous(pages.range(4, 1)));
  CHECK_FALSE(all_private_anonymous(pages.range(5, 1)));
  CHECK(all_private_anonymous(pages.range(6, 1)));
  CHECK_FALSE(all_private_anonymous(pages.range(6, 2)));  // the hole
  CHECK_FALSE(all_private_anonymous(pages.range(7, 1)));
}

TEST_CASE("private memory of several mappings", "[fabric][verbs][mappings]") {
  own_pages pages(1001);
  for (std::size_t i = 1; i < 1000; i += 2) REQUIRE(::mprotect(pages.at(i), page, PROT_READ) == 0);
  const auto found = mappings_in(pages.range(0, 1000));
  REQUIRE(found.size() == 1000);
  for (std::size_t i = 1; i < found.size(); ++i) CHECK(found[i].pages.first == found[i - 1].pages.last);
  CHECK(all_private_anonymous(pages.range(0, 1000)));
  REQUIRE(pages.unmap(777, 1));
  CHECK_FALSE(all_private_anonymous(pages.range(0, 1000)));
  CHECK(all_private_anonymous(pages.range(0, 777)));
}

// Its inode is its number, and the first of a name space has the number 0.
TEST_CASE("System V shared memory is not private", "[fabric][verbs][mappings]") {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWIPC) != 0) ::_exit(2);
    const int id = ::shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
    void* const at = ::shmat(id, nullptr, 0);
    if (id != 0 || at == reinterpret_cast<void*>(-1)) ::_exit(3);
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    ::_exit(all_private_anonymous({first, first + page}) ? 1 : 0);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  if (WEXITSTATUS(how) == 2) return rma::test::skip("this process may not have an IPC name space of its own");
  CHECK(how == 0);
}

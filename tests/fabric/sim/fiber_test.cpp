// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/sim/fiber.hpp"
#include "skip.hpp"

namespace {

using rma::sim::fiber;
using rma::sim::stack_memory;

constexpr std::size_t stack_bytes = 65536;

/// Uses at least 256 bytes for each level.
[[gnu::noinline]] unsigned deep(unsigned levels) {
  char room[256];
  char* const at = room;
  __asm__ __volatile__("" : : "r"(at) : "memory");
  at[0] = static_cast<char>(levels);
  return levels == 0 ? 0 : 1 + deep(levels - 1) + static_cast<unsigned>(at[0] == 77 ? 0 : 0);
}

}  // namespace

TEST_CASE("a fiber runs until it suspends, and goes on where it was", "[fabric][sim][fiber]") {
  std::string trace;
  std::unique_ptr<fiber> f;
  f = std::make_unique<fiber>(stack_bytes, [&] {
    for (int i = 0; i < 3; ++i) {
      trace += std::to_string(i);
      f->suspend();
    }
  });
  for (int i = 0; i < 3; ++i) {
    f->resume();
    trace += '.';
    CHECK_FALSE(f->finished());
  }
  f->resume();
  CHECK(f->finished());
  CHECK(trace == "0.1.2.");
}

TEST_CASE("fibers may resume fibers", "[fabric][sim][fiber]") {
  std::string trace;
  std::unique_ptr<fiber> inner;
  inner = std::make_unique<fiber>(stack_bytes, [&] {
    trace += 'b';
    inner->suspend();
    trace += 'd';
  });
  fiber outer(stack_bytes, [&] {
    trace += 'a';
    inner->resume();
    trace += 'c';
    inner->resume();
    trace += 'e';
  });
  outer.resume();
  CHECK(trace == "abcde");
  CHECK(inner->finished());
}

// Goal: exceptions belong to the fiber in which they were thrown, caught ones and those under way.
// Method: two fibers switch inside handlers and inside destructors that run during unwinding.
TEST_CASE("exceptions survive switches", "[fabric][sim][fiber]") {
  struct switches_when_destroyed {
    fiber* self;
    int* uncaught;
    ~switches_when_destroyed() {
      *uncaught = std::uncaught_exceptions();
      self->suspend();
      *uncaught += 10 * std::uncaught_exceptions();
    }
  };
  std::vector<std::unique_ptr<fiber>> fibers(2);
  std::vector<std::string> seen(2);
  std::vector<int> uncaught(2, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    fibers[i] = std::make_unique<fiber>(stack_bytes, [&, i] {
      try {
        const switches_when_destroyed last{fibers[i].get(), &uncaught[i]};
        throw std::runtime_error("of " + std::to_string(i));
      } catch (const std::exception&) {
        fibers[i]->suspend();
        try {
          throw;  // the one that this fiber is handling
        } catch (const std::exception& e) {
          seen[i] = e.what();
        }
      }
    });
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (auto& f : fibers) {
      f->resume();
      CHECK(std::uncaught_exceptions() == 0);
      CHECK(std::current_exception() == nullptr);
    }
  }
  CHECK(fibers[0]->finished());
  CHECK(fibers[1]->finished());
  CHECK(seen == std::vector<std::string>{"of 0", "of 1"});
  CHECK(uncaught == std::vector<int>{11, 11});
}

// Goal: what a dead rank holds stays held.
TEST_CASE("a fiber that is destroyed unfinished is not unwound", "[fabric][sim][fiber]") {
  struct counts {
    int* destroyed;
    ~counts() { ++*destroyed; }
  };
  int destroyed = 0;
  std::unique_ptr<fiber> f;
  f = std::make_unique<fiber>(stack_bytes, [&] {
    const counts one{&destroyed};
    f->suspend();
  });
  f->resume();
  f.reset();
  CHECK(destroyed == 0);
}

TEST_CASE("thousands of fibers come and go", "[fabric][sim][fiber]") {
  unsigned sum = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<fiber>> many(2000);
    for (auto& f : many) {
      f = std::make_unique<fiber>(stack_bytes, [&] {
        ++sum;
        f->suspend();
        ++sum;
      });
    }
    for (auto& f : many) f->resume();
    for (auto& f : many) f->resume();
  }
  CHECK(sum == 3 * 2 * 2000);
}

TEST_CASE("a stack may be used almost to its end", "[fabric][sim][fiber]") {
  unsigned depth = 0;
  fiber f(std::size_t{4} << 20, [&] { depth = deep(4000); });
  f.resume();
  CHECK(depth == 4000);
}

// Goal: an overflow ends the process and writes nothing into a neighbor's stack.
// Method: a child overflows; it must die by a signal.
TEST_CASE("a stack that overflows ends the process", "[fabric][sim][fiber]") {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    ::close(STDERR_FILENO);  // a sanitizer's report
    fiber f(stack_bytes, [&] { ::_exit(deep(10'000'000) > 0 ? 0 : 1); });
    f.resume();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) != 0));
}

TEST_CASE("stacks are whole pages", "[fabric][sim][fiber]") {
  const stack_memory one(1);
  CHECK(one.bytes() == 4096);
  CHECK(one.top() == one.bottom() + 4096);
}

// SPDX-License-Identifier: Apache-2.0
// The checks before UCX is loaded, and the environment that it is loaded with.
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fabric/ucx/added_variables.hpp"
#include "fabric/ucx/networks.hpp"

namespace {

using rma::ucx::added_variables;
using rma::ucx::may_have_network;
using rma::ucx::variable;

constexpr std::array<variable, 2> wanted{{
    {"RMA_LOAD_TEST_A=ours", {"RMA_LOAD_TEST_A", "RMA_LOAD_TEST_ALIAS"}},
    {"RMA_LOAD_TEST_B=ours", {"RMA_LOAD_TEST_B"}},
}};

std::string value(const char* name) {
  const char* const found = std::getenv(name);
  return found == nullptr ? "unset" : found;
}

std::vector<std::string> whole_environment() {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

/// An empty root of a file system.
class scratch_root {
 public:
  scratch_root() {
    std::string name = (std::filesystem::temp_directory_path() / "ucx_load_test.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~scratch_root() { std::filesystem::remove_all(path_); }
  scratch_root(const scratch_root&) = delete;
  scratch_root& operator=(const scratch_root&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

// Break: answer yes without looking, or do not look at Cray's device.
TEST_CASE("networks that UCX may use are looked for in the system", "[ucx]") {
  const scratch_root root;
  CHECK_FALSE(may_have_network(root.path()));
  std::filesystem::create_directories(root.path() / "sys/class/infiniband");
  CHECK_FALSE(may_have_network(root.path()));
  std::filesystem::create_directory(root.path() / "sys/class/infiniband/mlx5_0");
  CHECK(may_have_network(root.path()));
  const scratch_root cray;
  std::filesystem::create_directory(cray.path() / "dev");
  std::ofstream(cray.path() / "dev/kgni0").put('\n');
  CHECK(may_have_network(cray.path()));
}

// Break: write into the program's environment, or forget a variable there.
TEST_CASE("variables are there for a while, and the environment is as before", "[ucx]") {
  const std::vector<std::string> before = whole_environment();
  char** const list = environ;
  {
    const added_variables some(wanted);
    CHECK(value("RMA_LOAD_TEST_A") == "ours");
    CHECK(value("RMA_LOAD_TEST_B") == "ours");
    CHECK(value("PATH") != "unset");
    CHECK(whole_environment().size() == before.size() + wanted.size());
  }
  CHECK(environ == list);
  CHECK(whole_environment() == before);
}

// Break: do not look at the second name.
TEST_CASE("what the user has set stays", "[ucx]") {
  ::setenv("RMA_LOAD_TEST_ALIAS", "", 1);
  {
    const added_variables some(wanted);
    CHECK(value("RMA_LOAD_TEST_A") == "unset");
    CHECK(value("RMA_LOAD_TEST_B") == "ours");
  }
  ::setenv("RMA_LOAD_TEST_B", "theirs", 1);
  {
    const added_variables none(wanted);
    CHECK(value("RMA_LOAD_TEST_A") == "unset");
    CHECK(value("RMA_LOAD_TEST_B") == "theirs");
  }
  CHECK(value("RMA_LOAD_TEST_B") == "theirs");
  ::unsetenv("RMA_LOAD_TEST_ALIAS");
  ::unsetenv("RMA_LOAD_TEST_B");
}

// Break: give the old list back, whatever has become of it.
TEST_CASE("a variable that the program sets meanwhile stays", "[ucx]") {
  ::setenv("RMA_LOAD_TEST_EARLIER", "yes", 1);  // so that the C library owns the list, and may move it
  {
    const added_variables some(wanted);
    ::setenv("RMA_LOAD_TEST_MEANWHILE", "yes", 1);
    CHECK(value("RMA_LOAD_TEST_A") == "ours");
  }
  CHECK(value("RMA_LOAD_TEST_MEANWHILE") == "yes");
  CHECK(value("RMA_LOAD_TEST_EARLIER") == "yes");
  CHECK(value("RMA_LOAD_TEST_A") == "unset");
  CHECK(value("RMA_LOAD_TEST_B") == "unset");
  ::unsetenv("RMA_LOAD_TEST_MEANWHILE");
  ::unsetenv("RMA_LOAD_TEST_EARLIER");
}

// Goal: runtimes of several threads that start at once leave the environment as it was.
// Break: give the longer list back; or put the old one back whatever is there.
TEST_CASE("several threads add variables at once", "[ucx]") {
  const std::vector<std::string> before = whole_environment();
  char** const list = environ;
  std::atomic<int> lost{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&lost] {
      for (int i = 0; i < 2000; ++i) {
        const added_variables some(wanted);
        if (value("PATH") == "unset") ++lost;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(lost == 0);
  CHECK(environ == list);
  CHECK(whole_environment() == before);
}

// SPDX-License-Identifier: Apache-2.0
// Goal: a trace is one JSON array at the end of the program, whatever the windows are called, and a rank that is killed
// leaves all but its last 0.1 s of calls.
// Method: files read back line by line; a forked child that ends without destructors. The view that a viewer has of
// whole files is trace_test.py's.
#include "core/trace.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "rma/error.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

/// A folder of the test's own.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rma-trace-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

trace_event event_at(std::int64_t ms) {
  trace_event e;
  e.call = "put";
  e.window = "table";
  e.target = 3;
  e.bytes = 64;
  e.protocol = "direct";
  e.why = "the target's memory is mapped";
  e.begin_ns = ms * 1'000'000 + 5;
  e.end_ns = e.begin_ns + 1'250;
  return e;
}

}  // namespace

TEST_CASE("the name of a rank's file", "[core][trace]") {
  CHECK(trace_file_name("t.json", 3) == "t.json.3");
  CHECK(trace_file_name("t.%r.json", 12) == "t.12.json");
  CHECK(trace_file_name("%r", 0) == "0");
  CHECK(trace_file_name("/a/%r/t", 7) == "/a/7/t");
  CHECK(trace_file_name("t.%r.json", 12, 2) == "t.12.2.json");
  CHECK(trace_file_name("t.json", 3, 10) == "t.json.3.10");
}

TEST_CASE("a file of whole lines, closed at the end", "[core][trace]") {
  const folder here;
  {
    trace_file trace(here / "t", 2);
    trace.add(event_at(1));
    trace_event odd = event_at(2);
    odd.window = "quote \" backslash \\ line\nend";
    trace.add(odd);
  }
  const auto lines = lines_of(here / "t.2");
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == "[");
  const std::string name = R"({"name":"process_name","ph":"M","pid":2,"args":{"name":"rank 2","process":")";
  CHECK(lines[1].starts_with(name + std::to_string(::getpid()) + " since "));
  CHECK(lines[1].ends_with("\"}},"));
  const std::string args = R"("target":3,"bytes":64,"protocol":"direct","why":"the target's memory is mapped"}})";
  const std::string thread = std::to_string(::gettid());
  CHECK(lines[2] == R"({"name":"put","ph":"X","pid":2,"tid":)" + thread +
                        R"(,"ts":1000.005,"dur":1.250,"args":{"window":"table",)" + args + ",");
  CHECK(lines[3] == R"({"name":"put","ph":"X","pid":2,"tid":)" + thread +
                        R"(,"ts":2000.005,"dur":1.250,"args":{"window":"quote \" backslash \\ line\u000aend",)" + args);
  CHECK(lines[4] == "]");
}

// Goal: a trace ends when it has the size that it may have, as a whole file. Break: leave bytes_left_ as it is.
TEST_CASE("a trace does not grow beyond its size", "[core][trace]") {
  constexpr std::uint64_t most = 200'000;
  const folder here;
  {
    trace_file trace(here / "t", 0, most);
    for (int i = 0; i < 10'000; ++i) trace.add(event_at(i));
  }
  const auto lines = lines_of(here / "t.0");
  CHECK(lines.size() > 100);
  CHECK(lines.back() == "]");
  CHECK(std::filesystem::file_size(here / "t.0") < most + 100);
}

TEST_CASE("a trace has the calls that it is asked for, and the program's regions", "[core][trace]") {
  const folder here;
  {
    trace_file trace(here / "t", 0, UINT64_MAX, "output,put_signal");
    trace.add(event_at(1));  // this call is a put
    trace_event other = event_at(2);
    other.call = "put_signal";
    trace.add(other);
    trace.add_region("part \"one\"", 5, 9);
  }
  const auto lines = lines_of(here / "t.0");
  REQUIRE(lines.size() == 5);
  CHECK(lines[2].find(R"("name":"put_signal")") != std::string::npos);
  CHECK(lines[3].starts_with(R"({"name":"part \"one\"","cat":"region","ph":"X","pid":0,)"));
}

// Goal: each runtime of a process leaves its trace, and a run replaces those of the run before.
// Method: two of them, by processes of their own; three traces each. Break: cut whatever file is there.
TEST_CASE("traces of one process after the other", "[core][trace]") {
  const folder here;
  const std::string pattern = here / "t.%r.json";
  for (int process = 0; process < 2; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < 3; ++i) trace_file(pattern, 4).add(event_at(100 * (process + 1) + i));
      ::_exit(0);
    }
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    for (int i = 0; i < 3; ++i) {
      const std::string path = trace_file_name(pattern, 4, i + 1);
      CAPTURE(process, path);
      const auto lines = lines_of(path);
      REQUIRE(lines.size() == 4);
      CHECK(lines[2].find("\"ts\":" + std::to_string(100 * (process + 1) + i) + "000.005,") != std::string::npos);
    }
  }
  const auto files = std::filesystem::directory_iterator(std::filesystem::path(pattern).parent_path());
  CHECK(std::distance(begin(files), end(files)) == 3);
}

TEST_CASE("a killed rank's trace lacks only the last 0.1 s", "[core][trace]") {
  const folder here;
  constexpr int events = 1000;  // one a millisecond
  const std::string path = here / "t";
  const pid_t child = ::fork();
  if (child == 0) {
    trace_file trace(path, 0);
    for (int i = 0; i < events; ++i) trace.add(event_at(1000 + i));
    ::_exit(0);  // no destructor, as by a signal
  }
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  const auto lines = lines_of(path + ".0");
  CHECK(lines.size() >= 2 + events - 101);
  CHECK(lines.size() < 2 + events);
  // Cut between two events: a closing bracket makes it whole.
  CHECK(lines.back().ends_with("}}"));
}

TEST_CASE("more calls than the buffer holds are written at once", "[core][trace]") {
  const folder here;
  trace_file trace(here / "t", 0);
  for (int i = 0; i < 5000; ++i) trace.add(event_at(1));
  CHECK(std::filesystem::file_size(here / "t.0") > 100 * 5000 / 2);
}

TEST_CASE("a file that cannot be written is an error that names it", "[core][trace]") {
  try {
    const trace_file trace("/no/such/folder/t", 4);
    FAIL("it was made");
  } catch (const Error& e) {
    CHECK(e.code() == status::bad_setting);
    const std::string text = e.what();
    CHECK(text.find("RMA_TRACE=/no/such/folder/t") != std::string::npos);
    CHECK(text.find("/no/such/folder/t.4") != std::string::npos);
  }
}

TEST_CASE("a full disk ends the trace and not the program", "[core][trace]") {
  if (::access("/dev/full", W_OK) != 0) return;
  const folder here;
  std::filesystem::create_symlink("/dev/full", here / "t.0");
  trace_file trace(here / "t", 0);
  for (int i = 0; i < 5000; ++i) trace.add(event_at(i));
  SUCCEED();
}

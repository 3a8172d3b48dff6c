// SPDX-License-Identifier: Apache-2.0
// Goal: RMA_TRACE has the regions that the program names, and RMA_TRACE_CALLS leaves out other calls but no region.
// Method: a job of one rank, whose trace is read when its Runtime has ended.
// Break: leave out the names in `trace_region`, or let `leaves_out` be false for all.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <rma/rma.hpp>

namespace {

/// The trace of a rank with these settings.
std::string trace_of(const std::string& calls) {
  const auto path = std::filesystem::temp_directory_path() / ("rma-observation-" + std::to_string(::getpid()));
  {
    rma::Runtime rt(rma::Config{.environment = false,
                                .boot = "alone",
                                .settings = {{"RMA_TRACE", path.string() + ".%r"}, {"RMA_TRACE_CALLS", calls}}});
    auto win = rma::Window<std::int64_t>::allocate(rt.world(), 1, {.name = "w"});
    const rma::trace_region outer(rt, "assembly \"A\"");
    win.fence();
    {
      const rma::trace_region inner(rt, "put phase");
      win.put(1, 0, 0);
    }
    win.fence(rma::no_succeed);
  }
  std::ifstream file(path.string() + ".0");
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path.string() + ".0");
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a trace has calls, and regions with the program's names", "[trace]") {
  const std::string text = trace_of("");
  CAPTURE(text);
  CHECK(has(text, R"("name":"assembly \"A\"","cat":"region")"));
  CHECK(has(text, R"("name":"put phase","cat":"region")"));
  CHECK(text.find("put phase") < text.find("assembly"));  // each is written at its end
  CHECK(has(text, R"("name":"put")"));
  CHECK(has(text, R"("name":"fence")"));
}

TEST_CASE("RMA_TRACE_CALLS names the calls of a trace, which has all regions", "[trace]") {
  const std::string text = trace_of("put,flush");
  CAPTURE(text);
  CHECK(has(text, R"("name":"put")"));
  CHECK_FALSE(has(text, R"("name":"fence")"));
  CHECK(has(text, R"("name":"put phase","cat":"region")"));
}

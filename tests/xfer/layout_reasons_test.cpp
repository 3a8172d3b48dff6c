// SPDX-License-Identifier: Apache-2.0
// Goal: a trace says by which scheme a layout went, and that RMA_LAYOUT or a hint asked for it, or why not.
// Method: simulated ranks on nodes of their own; rank 0's trace is read when the job has ended.
// Break: let choose_scheme give the reason of auto for a scheme that was asked for, or leave out why one was refused.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

struct transfer {
  std::string scheme;
  bool put = true;
  bool target_in_pieces = true;
  std::string helper = "1";
  rma::layout_scheme hint = rma::layout_scheme::automatic;
};

/// The trace of rank 0, which transfers 64 rows.
std::string trace_of(const transfer& t) {
  const auto path = std::filesystem::temp_directory_path() / ("rma-reasons-" + std::to_string(::getpid()));
  rma::sim::Config job{.ranks = 2, .parameters = "dissertation-ddr"};
  job.ranks_per_node = 1;
  job.settings["RMA_LAYOUT"] = t.scheme;
  job.settings["RMA_PROGRESS_THREAD"] = t.helper;
  job.settings["RMA_TRACE"] = path.string() + ".%r";
  const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 4096, {.layout = t.hint});
    std::vector<int> mine(4096);
    const auto rows = rma::Layout::vector<int>(64, 8, 64);
    const auto there = t.target_in_pieces ? rows : rma::Layout::contiguous<int>(512);
    win.fence();
    if (rt.rank() == 0 && t.put) win.put(mine.data(), rows, 1, 0, there);
    if (rt.rank() == 0 && !t.put) win.get(mine.data(), rows, 1, 0, there);
    win.fence();
    win.free();
  });
  std::ifstream file(path.string() + ".0");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const char* const rank : {".0", ".1"}) std::filesystem::remove(path.string() + rank);
  if (!ended.ok()) throw std::runtime_error(ended.text());
  return text;
}

bool says(const std::string& trace, const std::string& protocol, const std::string& why) {
  return trace.find("\"protocol\":\"" + protocol + "\",\"why\":\"" + why) != std::string::npos;
}

}  // namespace

TEST_CASE("a scheme that is asked for is in the trace, with who asked for it", "[xfer][trace]") {
  for (const transfer& t : {transfer{"generic"}, transfer{"multi-w"}, transfer{"write-gather", true, false},
                            transfer{"read-scatter", false, false}, transfer{"sgrs"}, transfer{"host-assisted"}}) {
    CAPTURE(t.scheme);
    CHECK(says(trace_of(t), t.scheme, "RMA_LAYOUT"));
  }
  const transfer by_hint{"generic", true, true, "1", rma::layout_scheme::sgrs};
  CHECK(says(trace_of(by_hint), "sgrs", "Hints::layout"));
}

TEST_CASE("the reason of a scheme that cannot is in the trace, and auto's", "[xfer][trace]") {
  CHECK(says(trace_of({"host-assisted", true, true, "0"}), "generic", "the target has no helper"));
  const std::string refused = trace_of({"write-gather"});
  CAPTURE(refused);
  CHECK_FALSE(says(refused, "write-gather", ""));
  CHECK_FALSE(says(refused, "generic", "RMA_LAYOUT"));
  CHECK(says(refused, "generic", ""));
  CHECK(trace_of({"auto"}).find("\"why\":\"auto: the least estimate") != std::string::npos);
}

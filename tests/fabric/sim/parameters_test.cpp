// SPDX-License-Identifier: Apache-2.0
// Goal: the constants of a machine are what its text says, and every mistake in a text is one clear line.
#include "fabric/sim/parameters.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "rma/error.hpp"

namespace rma::sim {
namespace {

/// The error's text; "" if there is none.
std::string complaint(const std::string& text) {
  try {
    parse_parameters(text, "x.params");
    return "";
  } catch (const Error& e) {
    CHECK(e.code() == status::bad_setting);
    return e.what();
  }
}

std::string with_line(const std::string& line) { return "base = susukita\n" + line + "\n"; }

}  // namespace

TEST_CASE("the susukita preset is table 1 of the paper", "[sim][parameters]") {
  const parameters p = load_parameters("susukita");
  CHECK(p.link_bandwidth_gbs == 4.0);
  CHECK(p.switch_throughput_gbs == 4.0);
  CHECK(p.routing_time_ps == 4000);
  CHECK(p.vc_allocation_time_ps == 4000);
  CHECK(p.switch_allocation_time_ps == 4000);
  CHECK(p.switch_latency_ps == 128000);
  CHECK(p.router_delay_ps() == 140000);
  CHECK(p.cable_latency_ps == 600);
  CHECK(p.dma_speed_gbs == 2.8);
  CHECK(p.library_overhead_ps == 0);
  CHECK(p.packet_payload_bytes <= 2048);
}

TEST_CASE("every preset can be read, and names a source for each constant", "[sim][parameters]") {
  REQUIRE(presets().size() >= 3);
  for (const preset& one : presets()) {
    CAPTURE(one.name);
    CHECK_NOTHROW(load_parameters(one.name));
    std::string_view rest = one.text;
    while (!rest.empty()) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      CAPTURE(line);
      const auto source = line.find('#');
      if (line.find('=') < source) CHECK((source != std::string_view::npos && line.size() > source + 3));
    }
  }
}

TEST_CASE("parameters come back from their text", "[sim][parameters]") {
  parameters p = load_parameters("ndr400");
  p.port_buffers = 7;
  p.cable_latency_ps = 1;
  const parameters again = parse_parameters(to_text(p), "again");
  CHECK(to_text(again) == to_text(p));
  CHECK(again.port_buffers == 7);
  CHECK(again.cable_latency_ps == 1);
}

TEST_CASE("a file of parameters is found by its path, and may start from a preset", "[sim][parameters]") {
  const std::string path = "./parameters_test.params";
  std::ofstream(path) << "# mine\nbase = susukita\nlink_bandwidth = 8 GB/s  # wider\n";
  const parameters p = load_parameters(path);
  std::remove(path.c_str());
  CHECK(p.link_bandwidth_gbs == 8.0);
  CHECK(p.dma_speed_gbs == 2.8);
  CHECK_THROWS_WITH(load_parameters("."), ".: is a directory; the parameters of a machine are a text file");
  CHECK_THROWS_WITH(load_parameters(path), path + ": cannot be read, or is empty (parameters of a machine)");
}

TEST_CASE("each mistake in parameters is one line that says what is right", "[sim][parameters]") {
  CHECK(complaint(with_line("dma_speed = 3 GB/s")).empty());
  CHECK(complaint(with_line("dma_sped = 3 GB/s")) ==
        "x.params:2: unknown parameter 'dma_sped'; did you mean dma_speed?");
  CHECK_THAT(
      complaint(with_line("color = 3 GB/s")),
      Catch::StartsWith("x.params:2: unknown parameter 'color'; valid are: link_bandwidth, switch_throughput, "));
  CHECK(complaint(with_line("dma_speed = 3 ns")) == "x.params:2: dma_speed is in GB/s, not in 'ns'");
  CHECK(complaint(with_line("dma_speed = 3")) == "x.params:2: dma_speed has no unit, it is in GB/s");
  CHECK(complaint(with_line("cable_latency = -1 ns")) ==
        "x.params:2: cable_latency = -1 ns is out of range, it goes from 0 to 1000000000");
  CHECK(complaint(with_line("dma_speed = 0 GB/s")) ==
        "x.params:2: dma_speed = 0 GB/s is out of range, it goes from 0.001 to 1000000");
  CHECK(complaint(with_line("cable_latency = fast")) ==
        "x.params:2: cable_latency = 'fast' is not a number and a unit, as in `cable_latency = 1 ns`");
  CHECK_THAT(complaint(with_line("cable_latency = nan ns")), Catch::Contains("is not a number"));
  CHECK(complaint(with_line("dma_engines = 1.5 count")) == "x.params:2: dma_engines = 1.5 count is not a whole number");
  CHECK(complaint(with_line("faster")) == "x.params:2: 'faster' is not of the form `name = value unit  # source`");
  CHECK(complaint(with_line("dma_speed = 3 GB/s\ndma_speed = 4 GB/s")) == "x.params:3: dma_speed is set twice");
  CHECK(complaint(with_line("base = susukita")) == "x.params:2: base comes first, and once");
  CHECK(complaint("base = susukta\n") == "x.params:1: unknown preset 'susukta'; did you mean susukita?");
  CHECK_THAT(complaint("dma_speed = 3 GB/s\n"),
             Catch::StartsWith("x.params: link_bandwidth is missing (one direction"));
  CHECK_THROWS_WITH(
      load_parameters("susukitta"),
      "no preset 'susukitta' of a simulated machine; did you mean susukita? (a file's name has a / or a . "
      "in it)");
  CHECK_THROWS_WITH(load_parameters("cray"),
                    Catch::Contains("valid are: dissertation-ddr, dissertation-sdr-pcie, dissertation-sdr-pcix, "
                                    "liu-pcix, ndr400, susukita, takagi-fdr"));
}

}  // namespace rma::sim

// SPDX-License-Identifier: Apache-2.0
// Goal: reports say what happened, and other programs can read them.
// Method: numbers of a run that can be worked out by hand; JSON and SVG go through parsers of others (report_test.py).
#include "fabric/sim/report.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "fabric/sim/recorder.hpp"

namespace rma::sim {
namespace {

use_log log_for(const network_model& of, const use_log::limits& within = {}) {
  return {of.over().links() + static_cast<std::size_t>(of.over().nodes()) * of.engines_per_node(), within};
}

void write(const std::string& name, const std::string& text) { std::ofstream(name) << text; }

int checked_by_python(const std::string& arguments) {
  return std::system((std::string(REPORT_TEST_PY) + " " + arguments).c_str());
}

void ring(recorder& world) {
  const int nodes = world.network.over().nodes();
  for (int node = 0; node < nodes; ++node) {
    world.put(node, (node + 1) % nodes, 20'000);
    world.put(node, (node + nodes / 2) % nodes, 5'000);
  }
  world.run();
}

}  // namespace

TEST_CASE("the text names totals and the busiest", "[sim][report]") {
  recorder world(load_parameters("susukita"), "switch", 3);
  world.put(0, 2, 4096, 0, false);
  world.put(1, 1, 100, 0, false);
  world.run();
  const std::string text = text_report(record_of(world.network), 1);
  CAPTURE(text);
  CHECK_THAT(text, Catch::StartsWith("network: 3 nodes, switch, 2.847 us of virtual time\n"
                                     "  2 transfers, 4196 bytes read from memory, 4096 bytes written by receivers\n"
                                     "  4 hops of packets, 8192 bytes on wires, 2 of 6 links used, packets waited 0 ps "
                                     "for them\nbusiest links:\n"));
  CHECK_THAT(text, Catch::Contains("  node 0 -> switch                      36.0%            2           4096"));
  CHECK_THAT(text, Catch::Contains("  node 0 DMA engine 0                   51.4%         4096              0"));
  CHECK_THAT(text, !Catch::Contains("switch -> node 2"));  // the second of one that was asked for
  CHECK(text_report(record_of(recorder(load_parameters("susukita"), "switch", 3).network)).size() < 300);
}

TEST_CASE("the log adds up to the busy time, whatever time outgrows", "[sim][report]") {
  recorder world(load_parameters("susukita"), "fat-tree", 9);
  const auto first_width = GENERATE(1, 1000, 100'000'000);
  use_log log = log_for(world.network, {.buckets = 20, .spans_max = 50, .first_width_ps = first_width});
  world.network.watch(log);
  ring(world);
  std::uint64_t spans = 0;
  for (link_id link = 0; link < world.network.over().links(); ++link) {
    time_ps sum = 0;
    for (unsigned bucket = 0; bucket < log.buckets(); ++bucket) {
      sum += log.busy_ps(link, bucket);
      REQUIRE(log.busy_ps(link, bucket) <= log.width_ps());
    }
    REQUIRE(sum == world.network.use_of(link).busy_ps);
    spans += world.network.use_of(link).packets;
  }
  for (int node = 0; node < 9; ++node) {
    time_ps sum = 0;
    for (unsigned bucket = 0; bucket < log.buckets(); ++bucket) {
      sum += log.busy_ps(world.network.over().links() + static_cast<unsigned>(node), bucket);
    }
    REQUIRE(sum == world.network.use_of(node, 0).busy_ps);
    spans += world.network.use_of(node, 0).packets_out + world.network.use_of(node, 0).packets_in;
  }
  CHECK(log.buckets() == 20);
  CHECK(log.width_ps() * 20 >= world.events.now_ps());
  CHECK(log.spans().size() == 50);
  CHECK(log.spans_lost() == spans - 50);
}

TEST_CASE("JSON, trace and heat map can be read by others", "[sim][report]") {
  const auto* shape = GENERATE("switch", "fat-tree:k=4,n=3", "torus:8x8", "torus:4x4x4");
  recorder world(load_parameters("susukita"), shape, 64);
  use_log log = log_for(world.network, {.spans_max = 1000});
  world.network.watch(log);
  ring(world);
  write("sim_report.json", json_report(record_of(world.network, &log)));
  write("sim_trace.json", trace_json(world.network, log));
  write("sim_heat_map.svg", heat_map_svg(record_of(world.network, &log)));
  CHECK(checked_by_python("sim_report.json sim_trace.json sim_heat_map.svg 64") == 0);
}

TEST_CASE("an idle network has reports, too", "[sim][report]") {
  const recorder world(load_parameters("susukita"), "switch", 64);
  const use_log log = log_for(world.network);
  write("sim_report_idle.json", json_report(record_of(world.network, &log)));
  write("sim_trace_idle.json", trace_json(world.network, log));
  write("sim_heat_map_idle.svg", heat_map_svg(record_of(world.network, &log)));
  CHECK(checked_by_python("sim_report_idle.json sim_trace_idle.json sim_heat_map_idle.svg 0") == 0);
}

TEST_CASE("times are written with a unit that suits them", "[sim][report]") {
  CHECK(readable_time(999) == "999 ps");
  CHECK(readable_time(1500) == "1.5 ns");
  CHECK(readable_time(2'000'000) == "2 us");
  CHECK(readable_time(1'234'567'890) == "1.235 ms");
  CHECK(readable_time(3'000'000'000'000) == "3 s");
}

}  // namespace rma::sim

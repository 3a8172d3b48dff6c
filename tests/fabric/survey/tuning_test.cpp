// SPDX-License-Identifier: Apache-2.0
// Goal: what rma-tune writes is what a Runtime reads; what is not whole, or of another machine, is not taken.
// Break: take a section that lacks a figure; or keep the older of two.
#include "fabric/tuning.hpp"

#include <catch2/catch.hpp>

using namespace rma::fabric;

TEST_CASE("measured costs survive the file", "[fabric][tuning]") {
  const transfer_costs costs{21'000, 450, 0.125, 48'000, 0.5, 30};
  const std::string tcp = section_of("tcp", ""), verbs = section_of("verbs", "rxe0");
  CHECK(tcp.starts_with("[tcp||"));
  std::string text = with_costs("", tcp, costs);
  text = with_costs(text, verbs, {1, 2, 3, 4, 5, 6});
  text = with_costs(text, verbs, {7, 8, 9, 10, 11, 12});
  const auto found = find_costs(text, tcp);
  REQUIRE(found.has_value());
  CHECK(found->write_ns == 21'000);
  CHECK(found->piece_ns == 450);
  CHECK(found->byte_ns == 0.125);
  CHECK(found->message_ns == 48'000);
  CHECK(found->message_byte_ns == 0.5);
  CHECK(found->list_entry_ns == 30);
  CHECK(find_costs(text, verbs)->write_ns == 7);
}

TEST_CASE("costs in memory are beside those of fabrics", "[fabric][tuning]") {
  const std::string tcp = section_of("tcp", ""), memory = section_of(memory_name, "");
  const std::string text = with_costs(with_costs("", tcp, {1, 2, 3, 4, 5, 6}), memory, memory_costs{1, 2, 3, 4, 5, 6});
  CHECK(find_costs(text, tcp)->write_ns == 1);
  const auto found = find_costs<memory_costs>(text, memory);
  REQUIRE(found.has_value());
  CHECK(found->latency_ns == 1);
  CHECK(found->message_ns == 2);
  CHECK(found->byte_ns == 3);
  CHECK(found->rendezvous_ns == 4);
  CHECK(found->long_byte_ns == 5);
  CHECK(found->combined_byte_ns == 6);
  CHECK_FALSE(find_costs<memory_costs>(text, tcp).has_value());
}

// Break: publish the sections of another device.
TEST_CASE("the costs of all ranks are those of the device that is used, by fabric", "[fabric][tuning]") {
  std::string text = with_costs("", section_of("tcp", "rxe0"), {1, 2, 3, 4, 5, 6});
  text = with_costs(text, section_of("verbs", "rxe0"), {7, 2, 3, 4, 5, 6});
  text = with_costs(text, section_of("verbs", "rxe1"), {8, 2, 3, 4, 5, 6});
  text = with_costs(text, section_of(memory_name, ""), memory_costs{});
  const std::string all = costs_for_all(text, "rxe0");
  CHECK(find_costs(all, section_for_all("tcp"))->write_ns == 1);
  CHECK(find_costs(all, section_for_all("verbs"))->write_ns == 7);
  CHECK_FALSE(find_costs(all, section_for_all("ucx")).has_value());
  CHECK(costs_for_all("", "").empty());
}

TEST_CASE("what is not whole is not taken", "[fabric][tuning]") {
  const std::string section = section_of("tcp", "");
  const std::string text = with_costs("", section, {});
  CHECK(find_costs(text, section).has_value());
  CHECK_FALSE(find_costs(text, section_of("ucx", "")).has_value());
  CHECK_FALSE(find_costs(text, "[tcp||another machine]").has_value());
  CHECK_FALSE(find_costs("", section).has_value());
  for (const char* const damage : {"byte_ns = x\n", "byte_ns = -1\n", "byte_ns = 1e300\n", "byte_ns = nan\n"})
    CHECK_FALSE(find_costs(text + damage, section).has_value());
  const auto at = text.find("message_ns");
  CHECK_FALSE(find_costs(text.substr(0, at), section).has_value());
}

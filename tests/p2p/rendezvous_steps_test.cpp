// SPDX-License-Identifier: Apache-2.0
// Goal: each step of each rendezvous leads to a later state, and ends the operation exactly where it comes to `over`.
// Method: all states and events of both sides of all protocols.
#include <catch2/catch.hpp>
#include <string>

#include "p2p/rendezvous/table.hpp"

using namespace rma::detail;

TEST_CASE("every step of every rendezvous is sound", "[p2p][rendezvous]") {
  for (const rendezvous_protocol* const each : rendezvous_rows) {
    for (unsigned s = 0; s < static_cast<unsigned>(rendezvous_state::count_); ++s) {
      for (unsigned e = 0; e < static_cast<unsigned>(rendezvous_event::count_); ++e) {
        const auto now = static_cast<rendezvous_state>(s);
        const auto event = static_cast<rendezvous_event>(e);
        CAPTURE(std::string(each->name), s, e);
        CHECK(is_sound(now, each->sender(now, event)));
        CHECK(is_sound(now, each->receiver(now, event)));
      }
    }
  }
}

TEST_CASE("steps that are not sound are known as such", "[p2p][rendezvous]") {
  using enum rendezvous_state;
  CHECK_FALSE(is_sound(moving, {announced, 0}));
  CHECK_FALSE(is_sound(moving, {over, rendezvous_action::finish}));
  CHECK_FALSE(is_sound(begin, {announced, rendezvous_action::end}));
  CHECK_FALSE(is_sound(announced, {announced, rendezvous_action::write}));
  CHECK_FALSE(is_sound(begin, {moving, rendezvous_action::read | rendezvous_action::write}));
}

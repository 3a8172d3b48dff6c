// SPDX-License-Identifier: Apache-2.0
// Goal: devices of different kinds agree on what both have, whatever it is, and those that never reach each other are
// told apart; what a rank says of its device is read as it was meant, or refused.
//
// Method: all eight kinds of device, there and back as text, and each beside each.
//
// Break: forget one ability in `codes`; take a code that is not known for none.
#include "fabric/verbs/abilities.hpp"

#include <catch2/catch.hpp>

#include "rma/error.hpp"

using namespace rma;
using verbs::abilities;

namespace {

constexpr unsigned kinds = 8;

abilities kind(unsigned n) { return {(n & 1) != 0, (n & 2) != 0, (n & 4) != 0}; }

}  // namespace

TEST_CASE("what a device has is read as it was written", "[fabric][verbs][abilities]") {
  for (unsigned n = 0; n < kinds; ++n) {
    CAPTURE(n, kind(n).text());
    CHECK(abilities::parse(kind(n).text()) == kind(n));
  }
}

TEST_CASE("words of another version are refused", "[fabric][verbs][abilities]") {
  for (const char* word : {"", "a", "+x", "+az", "+aa", "ae+"}) {
    CAPTURE(word);
    CHECK_THROWS_AS(abilities::parse(word), Error);
  }
}

TEST_CASE("two devices agree on what both have", "[fabric][verbs][abilities]") {
  for (unsigned n = 0; n < kinds; ++n) {
    for (unsigned m = 0; m < kinds; ++m) {
      CAPTURE(n, m);
      abilities both = kind(n);
      both.meet(kind(m));
      CHECK(both == kind(n & m));
      CHECK(obstacle_between(kind(n), kind(m)).empty() == (((n ^ m) & 4) == 0));
    }
  }
}

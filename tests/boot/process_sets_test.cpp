// SPDX-License-Identifier: Apache-2.0
#include "boot/process_sets.hpp"

#include <catch2/catch.hpp>

#include "rma/error.hpp"

using Catch::Contains;
using rma::boot::parse_process_sets;

TEST_CASE("process sets are read", "[boot][process_sets]") {
  CHECK(parse_process_sets("", 1).empty());
  const auto sets = parse_process_sets("io=3,0-1,1;all of them=0-3;app/1=2", 4);
  REQUIRE(sets.size() == 3);
  CHECK(sets[0].name == "io");
  CHECK(sets[0].ranks == std::vector{0, 1, 3});
  CHECK(sets[1].name == "all of them");
  CHECK(sets[1].ranks == std::vector{0, 1, 2, 3});
  CHECK(sets[2].name == "app/1");
  CHECK(sets[2].ranks == std::vector{2});
}

TEST_CASE("mistakes in process sets are named", "[boot][process_sets]") {
  const auto error_of = [](std::string_view text) -> std::string {
    try {
      (void)parse_process_sets(text, 4);
      return "none";
    } catch (const rma::Error& error) {
      CHECK(error.code() == rma::status::bad_setting);
      return error.what();
    }
  };
  CHECK_THAT(error_of("io"), Contains("'io'") && Contains("NAME=RANKS"));
  CHECK_THAT(error_of("=1"), Contains("NAME=RANKS"));
  CHECK_THAT(error_of("a=1;;b=1"), Contains("NAME=RANKS"));
  CHECK_THAT(error_of("io="), Contains("'io'") && Contains("'' is no rank"));
  CHECK_THAT(error_of("io=1,"), Contains("'' is no rank"));
  CHECK_THAT(error_of("io=-1"), Contains("'' is no rank"));
  CHECK_THAT(error_of("io=1-"), Contains("'' is no rank"));
  CHECK_THAT(error_of("io=1-2-3"), Contains("'2-3' is no rank"));
  CHECK_THAT(error_of("io=1 2"), Contains("'1 2' is no rank"));
  CHECK_THAT(error_of("io=0-4"), Contains("rank 4, but ranks count from 0 to 3"));
  CHECK_THAT(error_of("io=99999999999"), Contains("rank 99999999999, but"));
  CHECK_THAT(error_of("io=2-1"), Contains("range 2-1 is empty"));
  CHECK_THAT(error_of("io=0;io=1"), Contains("'io'") && Contains("twice"));
  CHECK_THAT(error_of("rma://io=1"), Contains("the library's own"));
}

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps in which large copies are learned from.
#include "datatype/copy_experience.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>

using namespace rma::detail;

namespace {

constexpr std::array names{"fabric", "staged", "shared"};

/// Copies whose ways cost so much.
class machine {
 public:
  explicit machine(std::array<std::uint32_t, 3> cost_ns) : cost_ns_(cost_ns) {}

  void make(std::uint32_t copies) {
    made_ = {};
    for (std::uint32_t i = 0; i < copies; ++i) {
      const copy_choice choice = next_copy(e_);
      const auto way = static_cast<std::size_t>(choice.way);
      ++made_[way];
      const std::uint32_t cost_ns =
          cost_ns_[way] + (choice.way != last_ && choice.way != copy_way::fabric ? wake_ns_ : 0);
      last_ = choice.way;
      spent_ns_ += cost_ns;
      if (choice.measured) e_ = after_copy(e_, choice.way, cost_ns);
      ++e_.copies;
    }
  }
  /// The target sleeps while the kernel copies, and is woken by the next copy by both.
  void target_sleeps(std::uint32_t wake_ns) { wake_ns_ = wake_ns; }
  void change(std::array<std::uint32_t, 3> cost_ns) { cost_ns_ = cost_ns; }
  [[nodiscard]] std::uint32_t made(copy_way way) const { return made_[static_cast<std::size_t>(way)]; }
  [[nodiscard]] std::uint64_t spent_ns() const { return spent_ns_; }
  copy_experience& experience() { return e_; }

 private:
  std::array<std::uint32_t, 3> cost_ns_, made_{};
  std::uint32_t wake_ns_ = 0;
  copy_way last_ = copy_way::fabric;
  std::uint64_t spent_ns_ = 0;
  copy_experience e_;
};

}  // namespace

TEST_CASE("copies of one class are at most twice as large as each other", "[xfer][copy_experience]") {
  CHECK(copy_class(1025) == 0);
  CHECK(copy_class(2048) == 0);
  CHECK(copy_class(4096) == 1);
  CHECK(copy_class(4097) == 2);
  CHECK(copy_class(65536) == copy_class(32769));
  CHECK(copy_class(65537) == copy_class(65536) + 1);
  CHECK(copy_class(std::uint64_t{1} << 40) == copy_classes - 1);
  CHECK(ways_of(copy_class(16384)) == 2);
  CHECK(ways_of(copy_class(16385)) == 3);
}

TEST_CASE("what a copy has cost is told for the largest of its class", "[xfer][copy_experience]") {
  CHECK(copy_cost_ns(65536, 1000) == 1000);
  CHECK(copy_cost_ns(32768 + 8192, 1000) == 1600);
  CHECK(copy_cost_ns(std::uint64_t{8} << 20, 1000) == 500);
  CHECK(copy_cost_ns(65536, 0) == 1);
  CHECK(copy_cost_ns(4096, std::int64_t{1} << 60) == copy_cost_max_ns);
}

TEST_CASE("each way is measured first, then the cheapest is taken", "[xfer][copy_experience]") {
  const auto best = GENERATE(0U, 1U, 2U);
  std::array<std::uint32_t, 3> cost_ns{3000, 3000, 3000};
  cost_ns[best] = 1000;
  CAPTURE(names[best]);
  machine m(cost_ns);
  m.make(1000);
  CHECK(m.made(static_cast<copy_way>(best)) >= 970);
  for (const copy_way way : {copy_way::staged, copy_way::fabric, copy_way::shared}) CHECK(m.made(way) > 0);
  CHECK(next_copy(m.experience()).way == static_cast<copy_way>(best));
}

TEST_CASE("in the long run the other ways cost a hundredth at most", "[xfer][copy_experience]") {
  const auto times = GENERATE(1U, 2U, 10U, 100U);
  machine m({1000, 1000 * times, 1001 * times});
  m.make(1'000'000);
  const std::uint64_t before_ns = m.spent_ns();
  constexpr std::uint32_t copies = 1'000'000;
  m.make(copies);
  CAPTURE(times);
  CHECK(static_cast<double>(m.spent_ns() - before_ns) <= 1.01 * 1000.0 * copies);
}

TEST_CASE("a way that has become faster is found", "[xfer][copy_experience]") {
  machine m({1000, 2000, 8000});
  m.make(100'000);
  CHECK(m.made(copy_way::fabric) > 99'000);
  m.change({1000, 2000, 500});
  m.make(8 * again_after + 100);
  CHECK(next_copy(m.experience()).way == copy_way::shared);
}

TEST_CASE("a way that has become slower is left", "[xfer][copy_experience]") {
  machine m({1000, 2000, 8000});
  m.make(1000);
  m.change({9000, 2000, 8000});
  m.make(16 * measured_every);
  CHECK(next_copy(m.experience()).way == copy_way::staged);
}

TEST_CASE("one copy that took long changes nothing", "[xfer][copy_experience]") {
  machine m({1000, 2000, 8000});
  m.make(1000);
  m.experience() = after_copy(m.experience(), copy_way::fabric, copy_cost_max_ns);
  CHECK(next_copy(m.experience()).way == copy_way::fabric);
  m.make(measured_every);
  CHECK(m.experience().figures[0].cost_ns == 1000);
}

TEST_CASE("a way whose first copies took long gets more turns", "[xfer][copy_experience]") {
  machine m({2000, 15'000, 3000});  // pages are found for the first time
  m.make(9);
  m.change({2000, 1000, 3000});
  m.make(400);
  CHECK(next_copy(m.experience()).way == copy_way::staged);
}

TEST_CASE("a target that sleeps is woken before it is judged", "[xfer][copy_experience]") {
  machine m({2600, 12'000, 2300});
  m.target_sleeps(20'000);
  m.make(1000);
  CHECK(next_copy(m.experience()).way == copy_way::shared);
}

TEST_CASE("a way that is refused is not taken", "[xfer][copy_experience]") {
  machine m({1000, 500, 3000});
  m.experience() = after_refusal(m.experience(), copy_way::staged);
  m.make(10'000);
  CHECK(m.made(copy_way::staged) == 0);
}

TEST_CASE("small copies have no halves", "[xfer][copy_experience]") {
  machine m({1000, 2000, 1});
  m.experience().ways = ways_of(copy_class(8192));
  m.make(10'000);
  CHECK(m.made(copy_way::shared) == 0);
}

TEST_CASE("the count of copies may pass its end", "[xfer][copy_experience]") {
  machine m({1000, 2000, 3000});
  m.experience().copies = 0xffff'ff00U;
  for (copy_figure& figure : m.experience().figures) figure.again_at = m.experience().copies;
  m.make(10'000);
  CHECK(m.made(copy_way::fabric) > 9950);
}

TEST_CASE("the first use of memory tells nothing, unless it costs more than pages can", "[xfer][copy_experience]") {
  machine m({1000, 0, 0});
  CHECK(tells_nothing(m.experience(), 1'000'000));  // nothing to compare with
  m.make(turn_copies);
  CHECK(tells_nothing(m.experience(), 7'999));
  CHECK_FALSE(tells_nothing(m.experience(), 8'000));
}

// SPDX-License-Identifier: Apache-2.0
// Goal: the cache finds what it has, merges what overlaps, keeps what was used last, and never forgets to withdraw.
// Method: random calls against a list that is searched from end to end; then the single rules by hand. Nobody looks at
// the memory behind the addresses; what happens when that changes is in stale_test.cpp.
#include "fabric/verbs/registration_cache.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "fabric/verbs/registrars.hpp"

using namespace rma;
using namespace rma::verbs;
using namespace rma::verbs::test;

namespace {

constexpr auto told_by_program = unmap_watch::source::program;

void* address(std::size_t bytes) { return reinterpret_cast<void*>(bytes); }

/// The same rules, on a list.
class model {
 public:
  struct item {
    page_range pages;
    unsigned users = 0;
    bool listed = false;
    std::uint64_t released = 0;
  };
  model(registration_cache::limits most, std::size_t room_bytes) : most_(most), room_bytes_(room_bytes) {}

  /// Null if it must fail. Where several would do, the one that was `chosen`.
  item* acquire(page_range wanted, std::optional<page_range> chosen, bool& hit) {
    hit = false;
    for (item* i : by_address()) {
      if (!i->pages.covers(wanted)) continue;
      hit = true;
      if (i->pages != chosen) continue;
      ++i->users;
      return i;
    }
    if (hit) return nullptr;
    item* made = nullptr;
    if (const page_range all = merged(wanted); all != wanted && has_room(all)) made = add(all);
    if (made == nullptr) {
      while (!has_room(wanted)) {
        if (!evict(wanted.bytes())) return nullptr;
      }
      made = add(wanted);
    }
    shrink();
    return made;
  }
  void release(item* i) {
    if (--i->users != 0) return;
    if (!i->listed) return drop(i);
    i->released = ++clock_;
    shrink();
  }
  void invalidate(page_range pages) {
    for (item* i : by_address()) {
      if (i->pages.overlaps(pages)) unlist(i);
    }
  }
  [[nodiscard]] std::vector<std::pair<std::uintptr_t, std::uintptr_t>> live() const {
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> all;
    for (const auto& i : items_) all.emplace_back(i->pages.first, i->pages.last);
    std::sort(all.begin(), all.end());
    return all;
  }
  [[nodiscard]] std::size_t listed() { return by_address().size(); }

 private:
  std::vector<item*> by_address() {
    std::vector<item*> all;
    for (const auto& i : items_) {
      if (i->listed) all.push_back(i.get());
    }
    std::sort(all.begin(), all.end(), [](item* a, item* b) { return a->pages.first < b->pages.first; });
    return all;
  }
  page_range merged(page_range wanted) {
    page_range all = wanted;
    for (item* i : by_address()) {
      if (!i->pages.overlaps(wanted)) continue;
      const page_range both = hull(all, i->pages);
      if (both.bytes() < 2 * wanted.bytes() + page) all = both;
    }
    return all;
  }
  item* add(page_range pages) {
    for (item* i : by_address()) {
      if (pages.covers(i->pages)) unlist(i);
    }
    items_.push_back(std::make_unique<item>(item{pages, 1, true, 0}));
    return items_.back().get();
  }
  void unlist(item* i) {
    i->listed = false;
    if (i->users == 0) drop(i);
  }
  void drop(item* which) {
    std::erase_if(items_, [which](const auto& i) { return i.get() == which; });
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& i : items_) sum += i->pages.bytes();
    return sum;
  }
  bool has_room(page_range pages) const { return bytes() + pages.bytes() <= room_bytes_; }
  bool evict(std::size_t wanted) {
    std::size_t evicted = 0;
    while (evicted < wanted) {
      item* oldest = nullptr;
      for (item* i : by_address()) {
        if (i->users == 0 && (oldest == nullptr || i->released < oldest->released)) oldest = i;
      }
      if (oldest == nullptr) break;
      evicted += oldest->pages.bytes();
      drop(oldest);
    }
    return evicted > 0;
  }
  void shrink() {
    while ((bytes() > most_.bytes || listed() > most_.entries) && evict(1)) continue;
  }

  registration_cache::limits most_;
  std::size_t room_bytes_;
  std::vector<std::unique_ptr<item>> items_;
  std::uint64_t clock_ = 0;
};

}  // namespace

TEST_CASE("random calls agree with a list that is searched from end to end", "[fabric][verbs][cache]") {
  const auto seed = GENERATE(take(20, random(1U, 1U << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const registration_cache::limits most{(1 + below(200)) * page, 1 + below(30)};
  counting_registrar adapter;
  adapter.room_bytes = (20 + below(300)) * page;
  model expected(most, adapter.room_bytes);
  struct use {
    registration_cache::entry* entry;
    model::item* item;
  };
  std::vector<use> in_use;
  {
    registration_cache cache(adapter, most, told_by_program);
    registration_cache::counters before;
    for (int turn = 0; turn < 1000; ++turn) {
      CAPTURE(turn);
      const std::size_t what = below(20);
      const std::size_t at = (1000 * page) + below(100 * page);
      const std::size_t bytes = 1 + below(below(4) == 0 ? 40 * page : 3 * page);
      const page_range pages{at / page * page, (at + bytes + page - 1) / page * page};
      if (what == 0) {
        cache.invalidate(address(at), bytes);
        expected.invalidate(pages);
      } else if (what < 10 && !in_use.empty()) {
        const std::size_t which = below(in_use.size());
        cache.release(in_use[which].entry);
        expected.release(in_use[which].item);
        in_use.erase(in_use.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (in_use.size() < 12) {
        registration_cache::entry* const entry = cache.acquire(address(at), bytes);
        bool hit = false;
        model::item* const item =
            expected.acquire(pages, entry != nullptr ? std::optional(entry->pages()) : std::nullopt, hit);
        REQUIRE((entry == nullptr) == (item == nullptr));
        REQUIRE(cache.counts().hits == before.hits + (hit ? 1 : 0));
        REQUIRE(cache.counts().misses == before.misses + (hit ? 0 : 1));
        REQUIRE(cache.counts().failures == before.failures + (entry == nullptr ? 1 : 0));
        if (entry != nullptr) {
          REQUIRE(entry->pages() == item->pages);
          REQUIRE(entry->pages().covers(pages));
          in_use.push_back({entry, item});
        }
      }
      REQUIRE(adapter.live() == expected.live());
      REQUIRE(cache.counts().bytes == adapter.bytes_now());
      REQUIRE(cache.counts().entries == expected.listed());
      for (const use& u : in_use) REQUIRE(adapter.knows(*u.entry));
      before = cache.counts();
    }
    for (const use& u : in_use) cache.release(u.entry);
  }
  CHECK(adapter.live().empty());
  CHECK(adapter.enrolled == adapter.withdrawn);
  CHECK_FALSE(adapter.confused);
}

TEST_CASE("whole pages are registered, and found by any part of them", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {}, told_by_program);
  auto* const e = cache.acquire(address(8 * page + 1), page);
  REQUIRE(e != nullptr);
  CHECK(e->pages() == page_range{8 * page, 10 * page});
  CHECK(e->keys().remote_key == ~e->keys().local_key);
  CHECK(cache.acquire(address(8 * page), 1) == e);
  CHECK(cache.acquire(address(10 * page - 1), 1) == e);
  CHECK(cache.acquire(address(8 * page), 2 * page) == e);
  auto* const next = cache.acquire(address(10 * page), 1);
  CHECK(next != e);
  CHECK(next->pages() == page_range{10 * page, 11 * page});  // ranges that only touch are not merged
  for (int i = 0; i < 4; ++i) cache.release(e);
  cache.release(next);
  CHECK(cache.counts().hits == 3);
  CHECK(cache.counts().misses == 2);
}

TEST_CASE("what overlaps is merged if little is added, and the smaller ones go when they are unused",
          "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {}, told_by_program);
  auto* const used = cache.acquire(address(10 * page), 4 * page);
  cache.release(cache.acquire(address(20 * page), 4 * page));
  SECTION("both sides at once") {
    auto* const both = cache.acquire(address(12 * page), 10 * page);
    CHECK(both->pages() == page_range{10 * page, 24 * page});
    CHECK(adapter.withdrawn == 1);
    CHECK(adapter.knows(*used));
    CHECK(cache.counts().entries == 1);
    CHECK(cache.acquire(address(11 * page), page) == both);
    cache.release(both);
    cache.release(both);
    cache.release(used);
    CHECK(adapter.withdrawn == 2);
    CHECK(cache.counts().bytes == 14 * page);
  }
  SECTION("a small piece at the edge of a large registration is one of its own") {
    auto* const edge = cache.acquire(address(13 * page), 2 * page);
    CHECK(edge->pages() == page_range{13 * page, 15 * page});
    CHECK(cache.counts().entries == 3);
    auto* const both = cache.acquire(address(13 * page), page);  // in both: whichever it is
    CHECK(both->pages().covers({13 * page, 14 * page}));
    cache.release(both);
    cache.release(edge);
    cache.release(used);
    CHECK(adapter.withdrawn == 0);
  }
  SECTION("if the whole cannot be registered, then what is asked for") {
    adapter.refuses = [](page_range pages) { return pages.last > 23 * page; };
    auto* const alone = cache.acquire(address(21 * page), 2 * page);
    REQUIRE(alone != nullptr);
    auto* const exact = cache.acquire(address(19 * page), 4 * page);
    REQUIRE(exact != nullptr);
    CHECK(exact->pages() == page_range{19 * page, 23 * page});
    CHECK(cache.counts().failures == 0);
    for (auto* e : {alone, exact, used}) cache.release(e);
  }
}

TEST_CASE("what was used last is kept", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  const bool by_bytes = GENERATE(true, false);
  const registration_cache::limits most =
      by_bytes ? registration_cache::limits{8 * page, 100} : registration_cache::limits{1000 * page, 4};
  registration_cache cache(adapter, most, told_by_program);
  const auto touch = [&cache](std::size_t i) { cache.release(cache.acquire(address(10 * i * page), 2 * page)); };
  for (std::size_t i = 1; i <= 4; ++i) touch(i);
  CHECK(adapter.withdrawn == 0);
  touch(1);
  touch(5);
  CHECK(cache.counts().evictions == 1);
  touch(1);
  touch(3);
  CHECK(cache.counts().misses == 5);  // 2 has gone
  touch(2);
  CHECK(cache.counts().misses == 6);
  touch(4);
  CHECK(cache.counts().misses == 7);  // and then 4
  CHECK(cache.counts().bytes == 8 * page);
}

TEST_CASE("what is in use is never evicted, however much it is", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {4 * page, 100}, told_by_program);
  std::vector<registration_cache::entry*> all;
  for (std::size_t i = 1; i <= 5; ++i) all.push_back(cache.acquire(address(10 * i * page), 2 * page));
  CHECK(adapter.withdrawn == 0);
  CHECK(cache.counts().bytes == 10 * page);
  for (auto* e : all) cache.release(e);
  CHECK(cache.counts().bytes == 4 * page);
  CHECK(cache.counts().evictions == 3);
}

TEST_CASE("without room nothing is kept", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {0, 100});
  for (unsigned i = 1; i <= 3; ++i) {
    auto* const e = cache.acquire(address(page), page);
    auto* const again = cache.acquire(address(page), page);
    CHECK(e != again);
    cache.release(e);
    cache.release(again);
    CHECK(adapter.enrolled == 2 * i);
    CHECK(adapter.withdrawn == 2 * i);
  }
  CHECK(cache.counts().entries == 0);
}

TEST_CASE("a registration that fails evicts and tries again", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  adapter.room_bytes = 10 * page;
  registration_cache cache(adapter, {}, told_by_program);
  auto* const used = cache.acquire(address(page), 4 * page);
  for (std::size_t i = 1; i <= 3; ++i) cache.release(cache.acquire(address(10 * i * page), 2 * page));
  auto* const large = cache.acquire(address(100 * page), 3 * page);
  REQUIRE(large != nullptr);
  CHECK(cache.counts().evictions == 2);
  CHECK(cache.acquire(address(200 * page), 7 * page) == nullptr);
  CHECK(cache.counts().failures == 1);
  CHECK(cache.counts().evictions == 3);  // all that was unused
  CHECK(adapter.bytes_now() == 7 * page);
  cache.release(used);
  cache.release(large);
}

TEST_CASE("a registration that is refused evicts nothing", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  adapter.refuses = [](page_range pages) { return pages.first == 50 * page; };
  registration_cache cache(adapter, {}, told_by_program);
  cache.release(cache.acquire(address(page), page));
  CHECK(cache.acquire(address(50 * page), page) == nullptr);
  CHECK(cache.acquire(address(50 * page), page) == nullptr);
  CHECK(cache.counts().failures == 2);
  CHECK(cache.counts().evictions == 0);
  CHECK(cache.counts().bytes == page);
}

TEST_CASE("what is invalidated in use serves its users, is not found, and goes with the last of them",
          "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {}, told_by_program);
  auto* const e = cache.acquire(address(10 * page), 4 * page);
  CHECK(cache.acquire(address(11 * page), page) == e);
  auto* const other = cache.acquire(address(20 * page), page);
  cache.invalidate(address(14 * page), page);  // beside it
  CHECK(cache.counts().invalidations == 0);
  cache.invalidate(address(14 * page - 1), 1);
  CHECK(cache.counts().invalidations == 1);
  auto* const anew = cache.acquire(address(11 * page), page);
  CHECK(anew != e);
  CHECK(adapter.knows(*e));
  cache.release(e);
  CHECK(adapter.knows(*e));
  CHECK(adapter.withdrawn == 0);
  cache.release(e);
  CHECK(adapter.withdrawn == 1);
  cache.release(anew);
  cache.release(other);
  cache.invalidate(address(0), 100 * page);
  CHECK(adapter.withdrawn == 3);
  CHECK(cache.counts().bytes == 0);
}

TEST_CASE("several pieces are acquired together or not at all", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {}, told_by_program);
  const std::vector<fabric::local_slice> pieces{
      {address(10 * page), 100}, {address(120 * page + 7), 2 * page}, {address(10 * page + 200), 100}};
  std::vector<registration_cache::entry*> to(pieces.size());
  REQUIRE(cache.acquire(pieces, to));
  CHECK(to[0] == to[2]);
  CHECK(to[1]->pages() == page_range{120 * page, 123 * page});
  for (auto* e : to) cache.release(e);
  CHECK(cache.counts().hits == 1);

  adapter.refuses = [](page_range pages) { return pages.first == 150 * page; };
  const std::vector<fabric::local_slice> bad{
      {address(10 * page), 1}, {address(60 * page), 1}, {address(150 * page), 1}};
  CHECK_FALSE(cache.acquire(bad, to));
  cache.invalidate(address(0), 200 * page);
  CHECK(adapter.live().empty());  // nothing was left in use
}

// Break: compare with the pages of one piece; or try again what was refused.
TEST_CASE("the pieces of an operation are registered as one, however many they are", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {}, told_by_program);
  const auto expect_columns = [&](std::size_t rows, std::size_t row_bytes, std::size_t bytes) {
    const fabric::local_slice hull{address(1000 * page), (rows - 1) * row_bytes + bytes};
    cache.register_hull({hull, rows * bytes, rows, false});
  };
  const auto use_columns = [&](std::size_t rows, std::size_t row_bytes, std::size_t bytes) {
    for (std::size_t row = 0; row < rows; ++row)
      cache.release(cache.acquire(address(1000 * page + row * row_bytes), bytes));
  };
  SECTION("columns of matrices of 4096 ints a row") {
    for (const std::size_t rows : {std::size_t{64}, std::size_t{1000}}) {
      cache.invalidate(address(0), 100'000 * page);
      const std::uint64_t before = adapter.enrolled;
      for (int turn = 0; turn < 2; ++turn) {
        expect_columns(rows, 16384, 8192);
        use_columns(rows, 16384, 8192);
      }
      CHECK(adapter.enrolled - before == 1);
    }
  }
  SECTION("rows that are 1 MiB apart, or one that is long: nothing") {
    expect_columns(64, std::size_t{1} << 20, 4096);
    expect_columns(1, 16384, 16384);
    CHECK(adapter.enrolled == 0);
  }
  SECTION("a gap is no memory: it is tried once, then one for each") {
    unsigned refused = 0;
    adapter.refuses = [&](page_range pages) {
      refused += pages.bytes() > 2 * page ? 1 : 0;
      return pages.bytes() > 2 * page;
    };
    for (int turn = 0; turn < 3; ++turn) {
      expect_columns(64, 16384, 4096);
      CHECK(refused == 1);
      use_columns(64, 16384, 4096);
      CHECK(adapter.enrolled == 64);
    }
  }
  cache.invalidate(address(0), 100'000 * page);
  CHECK(adapter.live().empty());
  CHECK_FALSE(adapter.confused);
}

// Break: close a group at each gap; or never.
TEST_CASE("pieces that lie near each other are registered as one", "[fabric][verbs][cache]") {
  counting_registrar adapter;
  registration_cache cache(adapter, {}, told_by_program);
  std::vector<registration_cache::entry*> to(64);
  const auto columns = [](std::size_t row_bytes, std::size_t bytes) {
    std::vector<fabric::local_slice> pieces;
    for (std::size_t row = 0; row < 64; ++row) pieces.push_back({address(1000 * page + row * row_bytes), bytes});
    return pieces;
  };
  SECTION("columns of a matrix of 64 rows of 4096 ints: one registration") {
    for (const std::size_t length : {std::size_t{2048}, std::size_t{8}, std::size_t{512}}) {
      REQUIRE(cache.acquire(columns(16384, 4 * length), to));
      for (auto* e : to) cache.release(e);
      CHECK(adapter.enrolled == 1);
    }
    CHECK(adapter.bytes_now() <= 64 * 16384);
  }
  SECTION("rows that are 1 MiB apart: one for each") {
    REQUIRE(cache.acquire(columns(std::size_t{1} << 20, 4096), to));
    for (auto* e : to) cache.release(e);
    CHECK(adapter.enrolled == 64);
    CHECK(adapter.bytes_now() == 64 * page);
  }
  SECTION("a gap is no memory: one for each") {
    adapter.refuses = [](page_range pages) { return pages.bytes() > 2 * page; };
    REQUIRE(cache.acquire(columns(16384, 4096), to));
    for (auto* e : to) cache.release(e);
    CHECK(adapter.enrolled == 64);
  }
  cache.invalidate(address(0), 100'000 * page);
  CHECK(adapter.live().empty());
  CHECK_FALSE(adapter.confused);
}

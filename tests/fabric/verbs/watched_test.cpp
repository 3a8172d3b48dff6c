// SPDX-License-Identifier: Apache-2.0
// Goal: what the cache can find is watched, and nothing else is.
// Method: a second watch, which may only have what the cache's does not; and changes of pages that two entries share.
#include <catch2/catch.hpp>

#include "fabric/verbs/registrars.hpp"
#include "fabric/verbs/registration_cache.hpp"
#include "skip.hpp"

using namespace rma;
using namespace rma::verbs;
using namespace rma::verbs::test;

namespace {

/// Tells whether none of these pages is watched.
class probe {
 public:
  bool free(page_range pages) {
    const bool tracked = watch_.watch(pages) == unmap_watch::verdict::tracked;
    if (tracked) watch_.unwatch(pages);
    return tracked;
  }
  bool all_watched(const own_pages& pages, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      if (free(pages.range(i, 1))) return false;
    }
    return true;
  }

 private:
  unmap_watch watch_{unmap_watch::source::kernel};
};

struct fixture {
  explicit fixture(registration_cache::limits most = {}) : cache(adapter, most) {}
  counting_registrar adapter;
  registration_cache cache;
  probe other;
  own_pages pages{32};

  registration_cache::entry* acquire(std::size_t first, std::size_t count) {
    return cache.acquire(pages.at(first), count * page);
  }
  void use(std::size_t first, std::size_t count) { cache.release(acquire(first, count)); }
  void discard(std::size_t index) {
    REQUIRE(::madvise(pages.at(index), page, MADV_DONTNEED) == 0);
    hear();
  }
  void hear() {
    while (!cache.catch_up()) continue;
  }
  /// True if it is found without a registration.
  bool hit(std::size_t first, std::size_t count) {
    const std::uint64_t before = cache.counts().hits;
    use(first, count);
    return cache.counts().hits == before + 1;
  }
};

}  // namespace

TEST_CASE("what is taken out of the cache is watched no longer", "[fabric][verbs][watched]") {
  fixture f({10 * page, 100});
  if (f.cache.obstacle() != nullptr) return rma::test::skip(f.cache.obstacle());
  f.use(0, 4);
  f.use(8, 4);
  CHECK(f.other.all_watched(f.pages, 0, 4));
  CHECK(f.other.all_watched(f.pages, 8, 4));
  SECTION("evicted") {
    f.use(16, 4);
    CHECK(f.cache.counts().evictions == 1);
    CHECK(f.other.free(f.pages.range(0, 8)));
  }
  SECTION("invalidated") {
    f.cache.invalidate(f.pages.at(1), 1);
    CHECK(f.other.free(f.pages.range(0, 8)));
  }
  SECTION("emptied in part") {
    f.discard(2);
    CHECK(f.other.free(f.pages.range(0, 8)));
  }
  SECTION("unmapped in part") {
    REQUIRE(f.pages.unmap(1, 1));
    REQUIRE(f.pages.unmap(3, 1));
    f.hear();
    CHECK(f.other.free(f.pages.range(0, 1)));
    CHECK(f.other.free(f.pages.range(2, 1)));
  }
  SECTION("invalidated in use") {
    auto* const e = f.acquire(0, 4);
    f.discard(2);
    CHECK(f.other.free(f.pages.range(0, 8)));
    f.cache.release(e);
  }
  CHECK(f.other.all_watched(f.pages, 8, 4));
  CHECK(f.hit(8, 4));
}

TEST_CASE("what could not be registered is not watched", "[fabric][verbs][watched]") {
  fixture f;
  if (f.cache.obstacle() != nullptr) return rma::test::skip(f.cache.obstacle());
  f.use(4, 2);
  f.use(10, 8);
  f.adapter.refuses = [](page_range pages) { return pages.bytes() >= 9 * page; };
  CHECK(f.acquire(2, 9) == nullptr);
  CHECK(f.other.free(f.pages.range(2, 2)));
  CHECK(f.other.free(f.pages.range(6, 4)));
  CHECK(f.other.all_watched(f.pages, 4, 2));
  CHECK(f.other.all_watched(f.pages, 10, 8));
}

TEST_CASE("pages of two entries are watched as long as one of them can be found", "[fabric][verbs][watched]") {
  fixture f;
  if (f.cache.obstacle() != nullptr) return rma::test::skip(f.cache.obstacle());
  f.use(4, 8);
  f.use(1, 4);   // 4 is in both
  f.use(11, 4);  // 11, too
  REQUIRE(f.cache.counts().entries == 3);
  SECTION("the outer ones go") {
    f.cache.invalidate(f.pages.at(1), 1);
    f.cache.invalidate(f.pages.at(14), 1);
    CHECK(f.other.free(f.pages.range(0, 4)));
    CHECK(f.other.free(f.pages.range(12, 4)));
    REQUIRE(f.hit(4, 8));
    f.discard(GENERATE(4U, 11U));
    CHECK_FALSE(f.hit(4, 8));
  }
  SECTION("the one in the middle goes") {
    f.cache.invalidate(f.pages.at(7), 1);
    CHECK(f.other.free(f.pages.range(5, 6)));
    CHECK(f.other.all_watched(f.pages, 1, 4));
    CHECK(f.other.all_watched(f.pages, 11, 4));
    f.discard(4);
    CHECK_FALSE(f.hit(1, 4));
    f.discard(11);
    CHECK_FALSE(f.hit(11, 4));
  }
}

TEST_CASE("what is evicted to make room for its neighbor does not take the watch with it", "[fabric][verbs][watched]") {
  fixture f;
  if (f.cache.obstacle() != nullptr) return rma::test::skip(f.cache.obstacle());
  f.adapter.room_bytes = 10 * page;
  f.use(4, 8);
  f.use(0, 5);
  CHECK(f.cache.counts().evictions == 1);
  REQUIRE(f.hit(0, 5));
  CHECK(f.other.all_watched(f.pages, 0, 5));
  CHECK(f.other.free(f.pages.range(5, 8)));
  f.discard(4);
  CHECK_FALSE(f.hit(0, 5));
}

TEST_CASE("a merged entry watches what its parts did", "[fabric][verbs][watched]") {
  fixture f;
  if (f.cache.obstacle() != nullptr) return rma::test::skip(f.cache.obstacle());
  f.use(0, 4);
  f.use(3, 4);
  CHECK(f.cache.counts().entries == 1);
  CHECK(f.adapter.withdrawn == 1);
  CHECK(f.other.all_watched(f.pages, 0, 7));
  f.discard(1);
  CHECK_FALSE(f.hit(3, 4));
  CHECK(f.cache.counts().invalidations == 1);
}

TEST_CASE("when a cache ends, nothing is watched", "[fabric][verbs][watched]") {
  const own_pages pages(8);
  probe other;
  {
    counting_registrar adapter;
    registration_cache cache(adapter, {});
    if (cache.obstacle() != nullptr) return rma::test::skip(cache.obstacle());
    cache.release(cache.acquire(pages.at(), 8 * page));
    CHECK_FALSE(other.free(pages.range()));
  }
  CHECK(other.free(pages.range()));
}

// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/registration_cache.hpp"

#include <unistd.h>

#include <new>

#include "core/assert.hpp"

namespace rma::verbs {
namespace {

/// A merged registration is at most so many times as large as the requested range. Without a limit, a program that
/// walks through an array in overlapping steps would register all of it again at each step.
constexpr std::size_t merged_growth_max = 2;

}  // namespace

registration_cache::registration_cache(registrar& with, limits most, unmap_watch::source news)
    : registrar_(with),
      page_mask_(static_cast<std::uintptr_t>(::getpagesize()) - 1),
      limits_(most),
      process_(::getpid()),
      watch_(most.bytes == 0 ? unmap_watch::source::program : news) {
  news_.reserve(unmap_watch::changes_max + 1);
}

registration_cache::~registration_cache() {
  hear_news();
  while (!unused_.empty()) evict(counts_.bytes);
  RMA_ASSERT(counts_.bytes == 0 || foreign());
  spare_.clear_and_dispose([](entry* e) { delete e; });
}

registration_cache::entry* registration_cache::acquire(void* at, std::size_t bytes) noexcept {
  RMA_ASSERT(bytes > 0);
  return acquire(pages_around(at, bytes), take_unmaps());
}

bool registration_cache::acquire(std::span<const fabric::local_slice> pieces, std::span<entry*> to) noexcept {
  RMA_ASSERT(pieces.size() <= to.size());
  const unmap_watch::outcome news = take_unmaps();
  if (news == unmap_watch::outcome::settled) register_groups(pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    RMA_ASSERT(pieces[i].bytes > 0);
    to[i] = acquire(pages_around(pieces[i].at, pieces[i].bytes), news);
    if (to[i] != nullptr) continue;
    while (i-- > 0) release(to[i]);
    return false;
  }
  return true;
}

registration_cache::entry* registration_cache::acquire(page_range wanted, unmap_watch::outcome news) noexcept {
  entry* const found = news == unmap_watch::outcome::settled ? find(wanted) : nullptr;
  if (found == nullptr) [[unlikely]]
    return acquire_slow(wanted, news);
  if (found->users_++ == 0) unused_.erase(unused_.iterator_to(*found));
  ++counts_.hits;
  return found;
}

registration_cache::entry* registration_cache::find(page_range wanted) noexcept {
  if (recent_ != nullptr && recent_->pages_.covers(wanted)) return recent_;
  // The first entry that reaches far enough starts earliest.
  const auto it = entries_.upper_bound(wanted.last - 1, by_last{});
  if (it == entries_.end() || it->pages_.first > wanted.first) return nullptr;
  return recent_ = &*it;
}

registration_cache::entry* registration_cache::acquire_slow(page_range wanted, unmap_watch::outcome news) noexcept {
  if (foreign()) return nullptr;
  ++counts_.misses;
  if (news != unmap_watch::outcome::settled) return make(wanted, purpose::once);
  entry* made = nullptr;
  if (const page_range merged = merged_with_neighbors(wanted); merged != wanted) made = make(merged, purpose::merged);
  if (made == nullptr) made = make(wanted, purpose::kept);
  if (too_many()) shrink();
  return made;
}

void registration_cache::release(entry* e) noexcept {
  RMA_ASSERT(e != nullptr && e->users_ > 0);
  if (--e->users_ != 0) return;
  if (!e->listed_) [[unlikely]] {
    withdraw(*e);
    return;
  }
  unused_.push_back(*e);
  if (too_many()) [[unlikely]]
    shrink();
}

void registration_cache::invalidate(void* at, std::size_t bytes) noexcept {
  hear_news();
  news_.push_back({pages_around(at, bytes), false});
  apply_news();
}

bool registration_cache::catch_up() noexcept { return take_unmaps() == unmap_watch::outcome::settled; }

/// The first entry that ends after the start of `pages`.
registration_cache::address_set::iterator registration_cache::first_overlapping(page_range pages) noexcept {
  return entries_.upper_bound(pages.first, by_last{});
}

page_range registration_cache::merged_with_neighbors(page_range wanted) noexcept {
  page_range all = wanted;
  for (auto it = first_overlapping(wanted); it != entries_.end() && it->pages_.overlaps(wanted); ++it) {
    const page_range both = hull(all, it->pages_);
    if (both.bytes() / merged_growth_max <= wanted.bytes()) all = both;
  }
  return all;
}

registration_cache::entry* registration_cache::make(page_range pages, purpose what_for) noexcept {
  entry* const e = new_entry();
  // The watch starts first, so that changes during the registration are reported.
  bool keep = e != nullptr && what_for != purpose::once && limits_.bytes != 0 && watch(pages);
  status made = status::out_of_memory;
  if (e != nullptr && (keep || what_for != purpose::merged)) {
    made = registrar_.enroll(pages.at(), pages.bytes(), e->keys_);
    while (made == status::out_of_memory && what_for != purpose::merged && evict(pages.bytes())) {
      keep = keep && watch(pages);  // an evicted entry may have overlapped it
      made = registrar_.enroll(pages.at(), pages.bytes(), e->keys_);
    }
  }
  if (!ok(made)) {
    if (keep) unwatch(pages);
    if (e != nullptr) spare_.push_front(*e);
    if (what_for != purpose::merged) ++counts_.failures;
    return nullptr;
  }
  e->pages_ = pages;
  e->users_ = 1;
  counts_.bytes += pages.bytes();
  if (keep) list(*e);
  return e;
}

registration_cache::entry* registration_cache::new_entry() noexcept {
  if (spare_.empty()) return new (std::nothrow) entry;
  entry& e = spare_.front();
  spare_.pop_front();
  return &e;
}

/// Makes the entry available to `find`, in place of those that it covers. Their memory stays watched, since it is part
/// of the entry's own.
void registration_cache::list(entry& e) noexcept {
  for (auto it = first_overlapping(e.pages_); it != entries_.end() && it->pages_.overlaps(e.pages_);) {
    entry& old = *it++;
    RMA_ASSERT(!old.pages_.covers(e.pages_));
    if (!e.pages_.covers(old.pages_)) continue;
    unlist(old);
    if (old.users_ == 0) withdraw(old);
  }
  e.listed_ = true;
  entries_.insert(e);
  ++counts_.entries;
}

void registration_cache::unlist(entry& e) noexcept {
  RMA_ASSERT(e.listed_);
  entries_.erase(entries_.iterator_to(e));
  if (e.users_ == 0) unused_.erase(unused_.iterator_to(e));
  if (recent_ == &e) recent_ = nullptr;
  e.listed_ = false;
  --counts_.entries;
}

bool registration_cache::watch(page_range pages) noexcept {
  const unmap_watch::verdict verdict = watch_.watch(pages);
  if (verdict == unmap_watch::verdict::unfit) unwatch(pages);
  return verdict == unmap_watch::verdict::tracked;
}

/// Ends the watch, except where listed entries need it.
void registration_cache::unwatch(page_range pages) noexcept {
  std::uintptr_t at = pages.first;
  for (auto it = first_overlapping(pages); it != entries_.end() && it->pages_.overlaps(pages); ++it) {
    unwatch_what_is_left({at, it->pages_.first}, 0);
    at = it->pages_.last;
  }
  unwatch_what_is_left({at, pages.last}, 0);
}

/// Ends the watch, except of memory that is gone according to the changes: it may have another use now.
void registration_cache::unwatch_what_is_left(page_range pages, std::size_t first_change) noexcept {
  if (pages.empty()) return;
  for (std::size_t i = first_change; i < news_.size(); ++i) {
    const page_range gone = news_[i].pages;
    if (!news_[i].gone || !gone.overlaps(pages)) continue;
    unwatch_what_is_left({pages.first, gone.first}, i + 1);
    unwatch_what_is_left({gone.last, pages.last}, i + 1);
    return;
  }
  watch_.unwatch(pages);
}

/// Evicts the least recently used entries, of at least so many bytes. False if none is unused.
bool registration_cache::evict(std::size_t bytes_wanted) noexcept {
  std::size_t evicted = 0;
  while (evicted < bytes_wanted && !unused_.empty()) {
    entry& e = unused_.front();
    const page_range pages = e.pages_;
    unlist(e);
    unwatch(pages);
    withdraw(e);
    evicted += pages.bytes();
    ++counts_.evictions;
  }
  return evicted > 0;
}

void registration_cache::shrink() noexcept {
  hear_news();
  while (too_many() && evict(1)) continue;
}

unmap_watch::outcome registration_cache::hear_news() noexcept {
  const unmap_watch::outcome heard = watch_.catch_up(news_);
  if (heard == unmap_watch::outcome::settled) apply_news();
  return heard;
}

void registration_cache::apply_news() noexcept {
  line leaving;
  for (const change& c : news_) {
    for (auto it = first_overlapping(c.pages); it != entries_.end() && it->pages_.overlaps(c.pages);) {
      entry& e = *it++;
      unlist(e);
      leaving.push_back(e);
      ++counts_.invalidations;
    }
  }
  for (const entry& e : leaving) unwatch(e.pages_);
  news_.clear();
  while (!leaving.empty()) {
    entry& e = leaving.front();
    leaving.pop_front();
    if (e.users_ == 0) withdraw(e);
  }
}

void registration_cache::withdraw(entry& e) noexcept {
  RMA_ASSERT(e.users_ == 0 && !e.listed_);
  counts_.bytes -= e.pages_.bytes();
  if (!foreign()) registrar_.withdraw(e.keys_);
  spare_.push_front(e);
}

bool registration_cache::foreign() const noexcept { return ::getpid() != process_; }

}  // namespace rma::verbs

// SPDX-License-Identifier: Apache-2.0
// Handles over many operations: implicit ones (all that this rank has issued so far), and aggregates.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using handle_words = std::span<const std::uint64_t>;

// Goal: a request over what was issued so far is complete when the origin's buffers are free and results there; it is
// not waited for what is issued later; one of a target without operations has nothing to wait for.
// Break: let issued_task look at the last operation when it is asked, and stop at it; or not look at reads.
void implicit_handle(context& ctx) {
  constexpr std::size_t count = 600;
  test_window<std::uint64_t> win(ctx, 2 * count);
  for (std::size_t i = 0; i < count; ++i) win.local()[i] = tagged<std::uint64_t>(ctx.rank(), i);
  ctx.world().barrier();
  std::vector<std::uint64_t> out(count), in(count);
  {
    const auto held = win->lock_all();
    ctx.check(win->issued_to(ctx.left()).test(), "nothing was issued");
    for (std::size_t round = 0; round < ctx.rounds(40); ++round) {
      fill_tagged(std::span(out), ctx.rank(), static_cast<unsigned>(round));
      std::ranges::fill(in, 0);
      for (std::size_t i = 0; i < count; i += 50) {
        win->put(handle_words(out).subspan(i, 50), ctx.right(), win.at(ctx.right(), count + i));
        win->get(std::span(in).subspan(i, 50), ctx.right(), win.at(ctx.right(), i));
      }
      rma::Request all = round % 2 == 0 ? win->issued_to(ctx.right()) : win->issued_to_all();
      std::uint64_t later = 0;
      win->get(std::span(&later, 1), ctx.right(), win.at(ctx.right(), 3));
      all.wait();
      std::ranges::fill(out, 1);
      ctx.equal(first_untagged(handle_words(in), ctx.right()), count, "results are there");
      win->flush(ctx.right());
      ctx.equal(later, tagged<std::uint64_t>(ctx.right(), 3), "what was issued later");
    }
  }
  ctx.world().barrier();
  const auto last = static_cast<unsigned>(ctx.rounds(40) - 1);
  ctx.equal(first_untagged(handle_words(win.local()).subspan(count), ctx.left(), last), count, "puts");
  win.free();
}

/// Random operations on an aggregate, and what they must do to the target's part.
class mixture {
 public:
  mixture(context& ctx, test_window<std::uint64_t>& win, std::size_t count)
      : ctx_(ctx), win_(win), to_(ctx.right()), model_(count, 0) {}

  /// One operation to each place: puts have no order.
  void issue(rma::Aggregate<std::uint64_t>& batch) {
    kept_.clear();
    fetched_.clear();
    for (std::size_t at = 0; at + 40 < model_.size(); at += 37) one(batch, at, 1 + pick(12));
  }
  void check_results() {
    for (const fetched& f : fetched_) {
      for (std::size_t i = 0; i < f.length; ++i)
        ctx_.equal(kept_[f.buffer][f.distance * i], model_[f.place + i], "a result of an aggregate");
    }
  }
  [[nodiscard]] const std::vector<std::uint64_t>& model() const noexcept { return model_; }

 private:
  struct fetched {
    std::size_t place, buffer, length, distance;
  };
  std::size_t pick(std::size_t most) { return static_cast<std::size_t>(ctx_.random()() % most); }

  void one(rma::Aggregate<std::uint64_t>& batch, std::size_t at, std::size_t length) {
    std::vector<std::uint64_t>& buffer = kept_.emplace_back(2 * length);
    for (auto& each : buffer) each = ctx_.random()();
    const auto there = win_.at(to_, at);
    const auto odd = rma::Layout::vector<std::uint64_t>(length, 1, 2);
    switch (pick(6)) {
      case 0: {
        const std::uint64_t value = buffer[0];
        batch.put(value, to_, there);
        model_[at] = value;
        break;
      }
      case 1:
        batch.put(handle_words(buffer).first(length), to_, there);
        std::copy_n(buffer.begin(), length, model_.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        batch.put(buffer.data(), odd, to_, there, rma::Layout::vector<std::uint64_t>(length, 1, 3));
        for (std::size_t i = 0; i < length; ++i) model_[at + 3 * i] = buffer[2 * i];
        break;
      case 3:
        batch.accumulate(buffer[0], to_, there, rma::sum);
        batch.accumulate(buffer[1], to_, there, rma::bxor);
        model_[at] = (model_[at] + buffer[0]) ^ buffer[1];
        break;
      case 4:
        batch.get(std::span(buffer).first(length), to_, there);
        fetched_.push_back({at, kept_.size() - 1, length, 1});
        break;
      default:
        batch.get(buffer.data(), odd, to_, there, rma::Layout::contiguous<std::uint64_t>(length));
        fetched_.push_back({at, kept_.size() - 1, length, 2});
        break;
    }
  }

  context& ctx_;
  test_window<std::uint64_t>& win_;
  int to_;
  std::vector<std::uint64_t> model_;
  std::deque<std::vector<std::uint64_t>> kept_;
  std::vector<fetched> fetched_;
};

// Goal: operations of any shape on an aggregate handle do what they do without it, whether it is waited for, ends, or
// the window is flushed; values may go at once, and updates keep their order.
// Break: send the batch without its last operation; unpack all results as if contiguous.
void aggregate_handle(context& ctx) {
  constexpr std::size_t count = 512;
  test_window<std::uint64_t> win(ctx, count);
  std::ranges::fill(win.local(), 0);
  ctx.world().barrier();
  mixture all(ctx, win, count);
  std::vector<std::uint64_t> seen(count);
  for (std::size_t round = 0; round < ctx.rounds(60); ++round) {
    auto held = win->lock(rma::exclusive, ctx.right());
    {
      auto batch = win->aggregate();
      all.issue(batch);
      if (round % 3 == 0) batch.wait();
      if (round % 3 == 1) held.flush();
    }
    if (round % 3 == 2) held.flush();
    all.check_results();
    held.flush();
    win->get(std::span(seen), ctx.right(), win.at(ctx.right(), 0));
    held.unlock();
    ctx.check(seen == all.model(), "the target's part");
  }
  ctx.world().barrier();
  win.free();
}

constexpr test_case handle_table[] = {
    {"handle.implicit", implicit_handle, each_kind},
    {"handle.aggregated", aggregate_handle, each_kind},
};

}  // namespace

std::span<const test_case> handle_cases() noexcept { return handle_table; }

}  // namespace conformance

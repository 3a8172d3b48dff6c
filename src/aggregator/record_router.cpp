// SPDX-License-Identifier: Apache-2.0
#include "rma/aggregator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "aggregator/node_grid.hpp"
#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr unsigned slots = 2;  ///< slots of each box, at either end
constexpr std::size_t buffer_bytes_max = 16384;

/// The head of each buffer.
struct buffer_head {
  std::uint32_t bytes;          ///< length of the buffer, this header included
  std::uint16_t last;           ///< no buffer follows before the next flush
  std::uint16_t credit_signal;  ///< raised at the sender when the slot is free
};

Hints hints_of_mail(unsigned signals) {
  Hints hints;
  hints.name = "aggregator";
  hints.signals = signals;
  return hints;
}

}  // namespace

/// The boxes of this rank. A stage is a dimension of requests, or of replies, which are the later ones. A rank that
/// waits for room in one stage empties its boxes of that stage and later ones only: records that arrive there are
/// forwarded in later ones. So no two ranks wait for each other.
class record_router::routes {
 public:
  routes(Team team, bool mapped, const AggregatorOptions& options, deliver run, void* self)
      : team_(std::move(team)),
        grid_(team_, mapped, options.dimensions),
        run_(run),
        self_(self),
        lanes_(options.gets ? 2 : 1) {
    std::uint64_t boxes = 0;
    for (unsigned s = 0; s < stages(); ++s) boxes += make_stage(s);
    buffer_bytes_ = team_.allreduce(std::uint64_t{chosen_bytes(options, boxes)}, min);
    if (buffer_bytes_ < sizeof(buffer_head) + record_bytes_max)
      throw Error(status::bad_argument, "Aggregator: buffers of " + std::to_string(buffer_bytes_) +
                                            " bytes; at least " +
                                            std::to_string(sizeof(buffer_head) + record_bytes_max) + " are needed");
    memory_.resize(out_.size() * slots * buffer_bytes_);
    for (std::size_t i = 0; i < out_.size(); ++i) out_[i].memory = &memory_[i * slots * buffer_bytes_];
    const auto signals = std::uint64_t{in_.size() + out_.size()};
    mail_ = Window<std::byte>::allocate(team_, in_.size() * slots * buffer_bytes_,
                                        hints_of_mail(static_cast<unsigned>(team_.allreduce(signals, max))));
    if (const status locked = mail_.lock_all_nothrow(); locked != status::done) throw Error(locked, "Aggregator");
    counts_.buffer_bytes = buffer_bytes_;
    counts_.memory_bytes = (in_.size() + out_.size()) * slots * buffer_bytes_;
  }
  routes(const routes&) = delete;
  routes& operator=(const routes&) = delete;
  ~routes() {
    if (abandoned_ || mail_.try_unlock_all() != status::done) return;
    (void)mail_.try_free();
  }

  std::byte* store(int target, std::size_t bytes, bool reply) {
    ++counts_.stored;
    return append(target, bytes, reply ? 1 : 0);
  }

  void serve() {
    list_boxes(0);
    while (!signals_.empty()) {
      const auto found = mail_.test_any_signal(signals_);
      if (!found) return;
      take(signals_[*found]);
      list_boxes(0);
    }
  }

  void flush() {
    for (unsigned s = 0; s < stages(); ++s) {
      for (std::size_t i = first_out_[s]; i < first_out_[s + 1]; ++i) send(s, out_[i], true);
      while (is_open(s)) {
        list_boxes(s);
        take(signals_[mail_.wait_any_signal(signals_)]);
      }
    }
    for (in_box& box : in_) box.ended = false;
    mail_.flush_all();
  }

  void abandon() noexcept {
    abandoned_ = true;
    (void)mail_.try_revoke();
  }

  [[nodiscard]] const AggregatorCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const node_grid& grid() const noexcept { return grid_; }

 private:
  struct out_box {
    int rank = 0;
    unsigned signal = 0;  ///< at the receiver; it is also the number of its box
    unsigned credits = slots;
    unsigned slot = 0;  ///< the next one to be written, here and there
    std::uint64_t sent = 0;
    std::size_t used = sizeof(buffer_head);
    std::byte* memory = nullptr;
  };

  struct in_box {
    int rank = 0;
    unsigned stage = 0;
    unsigned slot = 0;
    bool ended = false;
  };

  [[nodiscard]] unsigned stages() const noexcept { return lanes_ * node_grid::dimensions; }
  /// All offsets in the boxes are valid: any error that is not the network's means that a rank has dropped its boxes.
  static void check(status s) {
    if (s == status::done || s == status::posted) return;
    if (s == status::peer_failed) throw Error(s, "Aggregator: a rank has died");
    if (s == status::transfer_failed)
      throw Error(s, "Aggregator: a transfer failed, or another rank has left its scope by an exception");
    throw Error(status::revoked, "Aggregator: another rank has left its scope by an exception");
  }

  /// Makes the boxes of a stage, and returns their number at both ends.
  std::size_t make_stage(unsigned s) {
    const unsigned dimension = s % node_grid::dimensions;
    const bool reply = s >= node_grid::dimensions;
    first_out_[s] = out_.size();
    first_in_[s] = in_.size();
    for (const int rank : grid_.receivers(dimension, reply)) {
      out_box box;
      box.rank = rank;
      box.signal = signal_at(rank, s);
      out_.push_back(box);
    }
    for (const int rank : grid_.senders(grid_.me(), dimension, reply)) in_.push_back({rank, s, 0, false});
    first_out_[s + 1] = out_.size();
    first_in_[s + 1] = in_.size();
    return out_.size() - first_out_[s] + in_.size() - first_in_[s];
  }
  /// The number of this rank's box of stage `s` at another rank.
  [[nodiscard]] unsigned signal_at(int rank, unsigned s) const {
    std::size_t before = 0;
    for (unsigned earlier = 0; earlier < s; ++earlier)
      before += grid_.senders(rank, earlier % node_grid::dimensions, earlier >= node_grid::dimensions).size();
    const std::vector<int> there = grid_.senders(rank, s % node_grid::dimensions, s >= node_grid::dimensions);
    const auto at = std::find(there.begin(), there.end(), grid_.me());
    RMA_ASSERT(at != there.end());
    return static_cast<unsigned>(before + static_cast<std::size_t>(at - there.begin()));
  }
  static std::size_t chosen_bytes(const AggregatorOptions& options, std::uint64_t boxes) {
    if (options.buffer_bytes != 0) return std::min<std::size_t>(options.buffer_bytes / 8 * 8, 1U << 20);
    if (boxes == 0) return buffer_bytes_max;
    return std::clamp<std::size_t>(options.memory_bytes / (boxes * slots) / 8 * 8, 512, buffer_bytes_max);
  }

  std::byte* append(int target, std::size_t bytes, unsigned which) {
    const node_grid::hop next = grid_.next(target, which != 0);
    const unsigned s = which * node_grid::dimensions + next.dimension;
    out_box& box = out_[first_out_[s] + next.index];
    if (box.used + bytes > buffer_bytes_) send(s, box, false);
    std::byte* const at = box.memory + box.slot * buffer_bytes_ + box.used;
    box.used += bytes;
    return at;
  }

  void send(unsigned s, out_box& box, bool last) {
    const auto credit = static_cast<unsigned>(in_.size() + static_cast<std::size_t>(&box - out_.data()));
    while (box.credits == 0) {
      list_boxes(s);
      signals_.push_back(credit);
      const unsigned raised = signals_[mail_.wait_any_signal(signals_)];
      if (raised == credit) {
        ++box.credits;
      } else {
        take(raised);
      }
    }
    std::byte* const buffer = box.memory + box.slot * buffer_bytes_;
    const buffer_head head{static_cast<std::uint32_t>(box.used), last ? std::uint16_t{1} : std::uint16_t{0},
                           static_cast<std::uint16_t>(credit)};
    std::memcpy(buffer, &head, sizeof head);
    const std::size_t at = (box.signal * slots + box.slot) * buffer_bytes_;
    check(mail_.try_put_signal(std::span<const std::byte>(buffer, box.used), box.rank, at, box.signal));
    --box.credits;
    ++counts_.buffers;
    box.slot = (box.slot + 1) % slots;
    box.used = sizeof head;
    if (++box.sent >= slots) mail_.flush_local(box.rank);  // the buffer that is filled next has been sent before
    if (!last) serve_later(s);
  }

  /// Handles buffers of others while this rank sends many of its own.
  void serve_later(unsigned s) {
    list_boxes(s);
    while (!signals_.empty()) {
      const auto found = mail_.test_any_signal(signals_);
      if (!found) return;
      take(signals_[*found]);
      list_boxes(s);
    }
  }

  /// Sets signals_ to the boxes of stages from `s` on that may get a buffer before the next flush.
  void list_boxes(unsigned s) {
    signals_.clear();
    for (std::size_t i = first_in_[std::min(s, stages())]; i < in_.size(); ++i) {
      if (!in_[i].ended) signals_.push_back(static_cast<unsigned>(i));
    }
  }
  [[nodiscard]] bool is_open(unsigned s) const noexcept {
    return std::any_of(in_.begin() + static_cast<std::ptrdiff_t>(first_in_[s]),
                       in_.begin() + static_cast<std::ptrdiff_t>(first_in_[s + 1]),
                       [](const in_box& box) { return !box.ended; });
  }

  /// Handles a buffer that has arrived.
  void take(unsigned number) {
    in_box& box = in_[number];
    const std::byte* const buffer = mail_.data() + (number * slots + box.slot) * buffer_bytes_;
    buffer_head head;
    std::memcpy(&head, buffer, sizeof head);
    RMA_ASSERT(head.bytes >= sizeof head && head.bytes <= buffer_bytes_);
    const unsigned which = box.stage / node_grid::dimensions;
    for (std::size_t at = sizeof head; at < head.bytes;) {
      const auto& record = *reinterpret_cast<const aggregated_record*>(buffer + at);
      RMA_ASSERT(record.bytes >= sizeof record && at + record.bytes <= head.bytes);
      take_record(record, which);
      at += record.bytes;
    }
    box.slot = (box.slot + 1) % slots;
    box.ended = head.last != 0;
    check(mail_.try_put_signal({}, box.rank, 0, head.credit_signal));
  }
  void take_record(const aggregated_record& record, unsigned which) {
    if (grid_.is_here(record.target, which != 0)) {
      ++counts_.applied;
      return run_(self_, record);
    }
    ++counts_.forwarded;
    std::memcpy(append(record.target, record.bytes, which), &record, record.bytes);
  }

  Team team_;
  node_grid grid_;
  deliver run_;
  void* self_;
  unsigned lanes_;
  std::array<std::size_t, 2 * node_grid::dimensions + 1> first_out_{};
  std::array<std::size_t, 2 * node_grid::dimensions + 1> first_in_{};
  std::vector<out_box> out_;
  std::vector<in_box> in_;
  std::size_t buffer_bytes_ = 0;
  std::vector<std::byte> memory_;
  Window<std::byte> mail_;
  std::vector<unsigned> signals_;
  AggregatorCounts counts_;
  bool abandoned_ = false;
};

record_router::record_router(const Team& team, bool mapped, const AggregatorOptions& options, deliver run, void* self)
    : routes_(std::make_unique<routes>(team, mapped, options, run, self)),
      groups_(routes_->grid().groups()),
      my_group_(routes_->grid().my_group()) {}
record_router::~record_router() = default;
std::byte* record_router::store(int target, std::size_t bytes, bool reply) {
  return routes_->store(target, bytes, reply);
}
void record_router::serve() { routes_->serve(); }
void record_router::flush() { routes_->flush(); }
void record_router::abandon() noexcept { routes_->abandon(); }
const AggregatorCounts& record_router::counts() const noexcept { return routes_->counts(); }

}  // namespace rma::detail

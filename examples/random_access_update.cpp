// SPDX-License-Identifier: Apache-2.0
#include "random_access_update.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <vector>

namespace random_access {

namespace {

/// HPCC_GMP. A get is not complete before its epoch ends, so that the put needs another one. Whoever updates the same
/// word between the two loses: the benchmark allows it for 1 % of the words.
class GetModifyPut : public Updater {
 public:
  explicit GetModifyPut(Table& table) : table_(table) {}

  void apply(std::span<const word> randoms) override {
    auto& window = table_.window();
    for (const word x : randoms) {
      const auto [rank, offset] = table_.place_of(x);
      word value = 0;
      {
        const auto epoch = window.lock(rma::shared, rank);
        window.get(std::span(&value, 1), rank, offset);
      }
      value ^= x;
      {
        const auto epoch = window.lock(rma::shared, rank);
        window.put(std::span<const word>(&value, 1), rank, offset);
      }
    }
  }

 private:
  Table& table_;
};

/// The same without the race: the value form of get is complete when it returns, and nobody else is in the epoch.
class ExclusiveGetModifyPut : public Updater {
 public:
  explicit ExclusiveGetModifyPut(Table& table) : table_(table) {}

  void apply(std::span<const word> randoms) override {
    auto& window = table_.window();
    for (const word x : randoms) {
      const auto [rank, offset] = table_.place_of(x);
      const auto epoch = window.lock(rma::exclusive, rank);
      window.put(window.get(rank, offset) ^ x, rank, offset);
    }
  }

 private:
  Table& table_;
};

/// Accumulates are atomic by themselves: nobody asks for an exclusive lock, and the shared ones need not be taken.
rma::assertion promises_of(Epochs epochs) {
  return epochs == Epochs::no_check ? rma::assertion::no_check : rma::assertion::none;
}

/// HPCC_ACC, HPCC_ACC_MOD and DIRECT_ACC: the operator and the window's mode tell them apart.
template <class Operation>
class Accumulate : public Updater {
 public:
  Accumulate(Table& table, Operation op, Epochs epochs, bool negate = false)
      : table_(table), op_(op), minus_(negate ? ~word{0} : 0), promises_(promises_of(epochs)) {
    if (epochs == Epochs::batch) epoch_.emplace(table.window().lock_all());
  }

  void apply(std::span<const word> randoms) override {
    auto& window = table_.window();
    for (const word x : randoms) {
      const auto [rank, offset] = table_.place_of(x);
      const word operand = (x ^ minus_) - minus_;  // x or -x, without a branch
      if (epoch_) {
        window.accumulate(operand, rank, offset, op_);
      } else {
        const auto epoch = window.lock(rma::shared, rank, promises_);
        window.accumulate(operand, rank, offset, op_);
      }
    }
    if (epoch_) epoch_->flush();
  }

  void finish() override {
    if (epoch_) epoch_->unlock();
    epoch_.reset();
  }

 private:
  Table& table_;
  Operation op_;
  word minus_;
  rma::assertion promises_;
  std::optional<rma::Epoch> epoch_;
};

/// HPCC_ACC_AGG: what is stored is sorted by target; each target gets one accumulate.
class AggregatedAccumulate : public Updater {
 public:
  AggregatedAccumulate(Table& table, Epochs epochs)
      : table_(table), ends_(static_cast<std::size_t>(table.window().team().size())), promises_(promises_of(epochs)) {
    if (epochs == Epochs::batch) epoch_.emplace(table.window().lock_all());
  }

  void apply(std::span<const word> randoms) override {
    sort_by_target(randoms);
    std::size_t begin = 0;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      const std::size_t count = ends_[rank] - begin;
      if (count > 0) send(static_cast<int>(rank), begin, count);
      begin = ends_[rank];
    }
    if (epoch_) epoch_->flush();
  }

  void finish() override {
    if (epoch_) epoch_->unlock();
    epoch_.reset();
  }

 private:
  /// A counting sort: afterwards the updates for rank r end at ends_[r].
  void sort_by_target(std::span<const word> randoms) {
    ends_.assign(ends_.size(), 0);
    for (std::size_t i = 0; i < randoms.size(); ++i) {
      places_[i] = table_.place_of(randoms[i]);
      ++ends_[static_cast<std::size_t>(places_[i].rank)];
    }
    std::size_t begin = 0;
    for (std::size_t& end : ends_) {
      const std::size_t count = end;
      end = begin;
      begin += count;
    }
    for (std::size_t i = 0; i < randoms.size(); ++i) {
      const std::size_t to = ends_[static_cast<std::size_t>(places_[i].rank)]++;
      offsets_[to] = static_cast<std::ptrdiff_t>(places_[i].offset);
      values_[to] = randoms[i];
    }
  }

  void send(int rank, std::size_t begin, std::size_t count) {
    auto& window = table_.window();
    const auto from = rma::Layout::contiguous<word>(count);
    const auto to = rma::Layout::indexed<word>(1, std::span<const std::ptrdiff_t>(offsets_).subspan(begin, count));
    if (epoch_) {
      window.accumulate(&values_[begin], from, rank, 0, to, rma::bxor);
    } else {
      const auto epoch = window.lock(rma::shared, rank, promises_);
      window.accumulate(&values_[begin], from, rank, 0, to, rma::bxor);
    }
  }

  Table& table_;
  std::vector<std::size_t> ends_;
  rma::assertion promises_;
  std::array<Partition::Place, stored_updates_max> places_{};
  std::array<std::ptrdiff_t, stored_updates_max> offsets_{};
  std::array<word, stored_updates_max> values_{};
  std::optional<rma::Epoch> epoch_;
};

/// An update goes in buffers by way of other ranks: more are stored than HPCC allows, and none is sent by itself.
class Routed : public Updater {
 public:
  explicit Routed(Table& table) : table_(table), aggregator_(table.window(), {.gets = false}) {}

  void apply(std::span<const word> randoms) override {
    for (const word x : randoms) {
      const auto [rank, offset] = table_.place_of(x);
      aggregator_.accumulate(x, rank, offset, rma::bxor);
    }
  }

  void finish() override { aggregator_.finish(); }

 private:
  Table& table_;
  rma::Aggregator<word> aggregator_;
};

/// The updates of a program that knows its ranks to share memory: the limit for all other variants.
class SharedMemory : public Updater {
 public:
  explicit SharedMemory(Table& table) : table_(table) {
    for (int rank = 0; rank < table.window().team().size(); ++rank) parts_.push_back(table.window().pointer_to(rank));
  }

  void apply(std::span<const word> randoms) override {
    for (const word x : randoms) {
      const auto [rank, offset] = table_.place_of(x);
      std::atomic_ref(parts_[static_cast<std::size_t>(rank)][offset]).fetch_xor(x, std::memory_order_relaxed);
    }
  }

 private:
  Table& table_;
  std::vector<word*> parts_;
};

}  // namespace

std::unique_ptr<Updater> make_updater(Table& table, Variant variant, Epochs epochs) {
  switch (variant) {
    case Variant::gmp: return std::make_unique<GetModifyPut>(table);
    case Variant::gmp_excl: return std::make_unique<ExclusiveGetModifyPut>(table);
    case Variant::acc_agg: return std::make_unique<AggregatedAccumulate>(table, epochs);
    case Variant::shared: return std::make_unique<SharedMemory>(table);
    case Variant::routed: return std::make_unique<Routed>(table);
    case Variant::acc_mod:
    case Variant::direct: return std::make_unique<Accumulate<decltype(rma::sum)>>(table, rma::sum, epochs);
    case Variant::acc: break;
  }
  return std::make_unique<Accumulate<decltype(rma::bxor)>>(table, rma::bxor, epochs);
}

std::unique_ptr<Updater> make_undo(Table& table, Variant variant) {
  if (adds(variant)) return std::make_unique<Accumulate<decltype(rma::sum)>>(table, rma::sum, Epochs::batch, true);
  return std::make_unique<Accumulate<decltype(rma::bxor)>>(table, rma::bxor, Epochs::batch);
}

}  // namespace random_access

// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS IS: the ranks of integer keys in sorted order (NAS report RNR-94-007, section 2.6). Each process gets the keys
/// of a range of values from all others, and counts them.
///
/// \code
/// rmarun -n 4 nas_is --class W
/// \endcode

#include "kernel.hpp"
#include "verification.hpp"

namespace nas {
namespace {

struct Problem {
  int log_keys, log_values;
  int turns = 10;
};
constexpr Problem problem_of(char size) { return size == 'S' ? Problem{16, 11} : Problem{20, 16}; }

class Sorter {
 public:
  Sorter(Run& run, const Problem& p)
      : run_(run),
        p_(p),
        ranks_(static_cast<std::size_t>(run.ranks())),
        keys_((std::size_t{1} << p.log_keys) / ranks_),
        published_(published::is(run.size())) {
    Random random;
    random.skip(4 * keys_.size() * static_cast<std::size_t>(run.rank()));
    const double quarter = static_cast<double>(std::size_t{1} << p.log_values) / 4;
    for (int& key : keys_) {
      double sum = 0;
      for (int i = 0; i < 4; ++i) sum += random.next();
      key = static_cast<int>(quarter * sum);
    }
  }

  /// How many of the published ranks were found, or -1 if the keys are not in order at the end.
  int run() {
    turn(1);
    run_.start();
    int found = 0;
    for (int i = 1; i <= p_.turns; ++i) {
      turn(i);
      found += found_in(i);
    }
    run_.stop();
    found = run_.world().allreduce(found, rma::sum);
    return sorted() ? found : -1;
  }

 private:
  static constexpr int log_buckets = 10;

  [[nodiscard]] int bucket_of(int key) const { return key >> std::max(0, p_.log_values - log_buckets); }

  /// Changes two keys as the benchmark says, then counts how many keys there are of each value of this rank's range.
  void turn(int number) {
    if (run_.rank() == 0) {
      keys_[static_cast<std::size_t>(number)] = number;
      keys_[static_cast<std::size_t>(number + p_.turns)] = (1 << p_.log_values) - number;
    }
    std::vector<std::vector<int>> buckets(std::size_t{1} << log_buckets);
    std::vector<int> sizes;
    for (const int key : keys_) buckets[static_cast<std::size_t>(bucket_of(key))].push_back(key);
    for (const auto& bucket : buckets) sizes.push_back(static_cast<int>(bucket.size()));
    run_.charge(4 * static_cast<double>(keys_.size()));
    run_.waiting([&] { run_.world().allreduce(std::span(sizes), rma::sum); });
    // Consecutive buckets for each rank, so that all get about equally many keys.
    const std::size_t total = keys_.size() * ranks_;
    std::vector<std::vector<int>> for_rank(ranks_);
    std::size_t before = 0;
    first_ = -1;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const std::size_t owner = std::min(before * ranks_ / total, ranks_ - 1);
      if (owner == static_cast<std::size_t>(run_.rank())) {
        if (first_ < 0) {
          first_ = static_cast<int>(b) << std::max(0, p_.log_values - log_buckets);
          smaller_ = static_cast<int>(before);
        }
        end_ = static_cast<int>(b + 1) << std::max(0, p_.log_values - log_buckets);
      }
      for_rank[owner].insert(for_rank[owner].end(), buckets[b].begin(), buckets[b].end());
      before += static_cast<std::size_t>(sizes[b]);
    }
    exchange(for_rank);
    if (first_ < 0) first_ = end_ = 0;  // no bucket is left for this rank
    counts_.assign(static_cast<std::size_t>(end_ - first_), 0);
    for (const auto& part : received_) {
      for (const int key : part) ++counts_[static_cast<std::size_t>(key - first_)];
    }
    run_.charge(4 * static_cast<double>(keys_.size()));
  }

  void exchange(std::vector<std::vector<int>>& for_rank) {
    std::vector<int> lengths;
    for (const auto& part : for_rank) lengths.push_back(static_cast<int>(part.size()));
    run_.waiting([&] {
      const std::vector<int> incoming = run_.world().alltoall(std::span(lengths));
      received_.resize(ranks_);
      std::vector<rma::MessageRequest> requests;
      const auto me = static_cast<std::size_t>(run_.rank());
      for (std::size_t step = 1; step < ranks_; ++step) {
        const std::size_t from = me ^ step;
        received_[from].resize(static_cast<std::size_t>(incoming[from]));
        requests.push_back(run_.world().irecv(std::span(received_[from]), static_cast<int>(from), 0));
      }
      for (std::size_t step = 1; step < ranks_; ++step) {
        const std::size_t to = me ^ step;
        requests.push_back(run_.world().isend(std::span(for_rank[to]), static_cast<int>(to), 0));
      }
      received_[me] = for_rank[me];
      rma::wait_all(requests);
    });
  }

  /// How many of the five published ranks are right, of keys in this rank's range.
  [[nodiscard]] int found_in(int turn) {
    int found = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto number = static_cast<std::size_t>(published_.key[i]);
      int key = number / keys_.size() == static_cast<std::size_t>(run_.rank()) ? keys_[number % keys_.size()] : 0;
      run_.waiting([&] { key = run_.world().allreduce(key, rma::sum); });
      if (key < first_ || key >= end_) continue;
      int rank = smaller_;
      for (int value = first_; value < key; ++value) rank += counts_[static_cast<std::size_t>(value - first_)];
      // The small keys of each turn push up, and its large ones leave out, what stands between.
      const bool lower = run_.size() == 'S' ? i <= 2 : i < 2;
      const int by = run_.size() == 'S' || !lower ? turn : turn - 2;
      found += rank == published_.rank[i] + (lower ? by : -by) ? 1 : 0;
    }
    return found;
  }

  /// The keys are in order over all ranks, and none is lost.
  [[nodiscard]] bool sorted() {
    std::size_t count = 0;
    for (const int n : counts_) count += static_cast<std::size_t>(n);
    const std::size_t all = run_.world().allreduce(count, rma::sum);
    const auto starts = run_.world().allgather(smaller_ + static_cast<int>(count));
    bool ordered = all == keys_.size() * ranks_;
    for (std::size_t i = 1; i < starts.size(); ++i) ordered = ordered && starts[i] >= starts[i - 1];
    return ordered && starts.back() == static_cast<int>(all);
  }

  Run& run_;
  Problem p_;
  std::size_t ranks_;
  std::vector<int> keys_;
  published::Ranked published_;
  int first_ = 0, end_ = 0, smaller_ = 0;  // this rank's values, and how many keys are below them
  std::vector<std::vector<int>> received_;
  std::vector<int> counts_;
};

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  return nas::run_kernel(argc, argv, "is", false, [](nas::Run& run) {
    nas::Sorter sorter(run, nas::problem_of(run.size()));
    return run.report({static_cast<double>(sorter.run())}, {50}, 0);
  });
}
